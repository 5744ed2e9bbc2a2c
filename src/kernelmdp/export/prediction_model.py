"""The learned model of an agent as pure data, from which its files are written."""

import dataclasses
import json
import pathlib
from typing import Any

import jax.numpy as jnp
import numpy as np

from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError, KernelMDPError
from kernelmdp.export.controller_inputs import action_names, coordinate_names
from kernelmdp.export.description import description_of_agent
from kernelmdp.export.kernel_sums import kernel_sums
from kernelmdp.export.numpy_model import NumpyModel
from kernelmdp.export.self_check import CHECKS, TOLERANCE

#: Range from which states without bounds are drawn for a check, around 0.
UNBOUNDED_RANGE = 3.0


@dataclasses.dataclass(frozen=True, eq=False)
class PredictionModel:
    """Means and standard deviations of the next state and of the reward.

    Attributes:
        arrays: All arrays by the names that they have in files.
        description: What the model is, as text and numbers.
        path: The file that was written, or None.

    >>> import kernelmdp as km
    >>> agent = km.Greedy("lqr-1d", seed=0, kernel="auto", planner="riccati")
    >>> result = agent.learn(1, progress=False)
    >>> print(prediction_model(agent))
    model of 'lqr-1d': next_mean, next_std, reward_mean, reward_std
    """

    arrays: dict[str, np.ndarray]
    description: dict[str, Any]
    path: pathlib.Path | None = None

    def __str__(self) -> str:
        size = "" if self.path is None else f" ({self.path.stat().st_size:,} bytes)"
        outputs = ", ".join(self.description["outputs"])
        return f"model of {self.description['task']!r}{size}: {outputs}"

    @property
    def dimensions(self) -> tuple[int, int]:
        """The numbers of coordinates of a state and of an action."""
        return len(self.description["states"]), len(self.description["actions"])

    @property
    def names(self) -> tuple[str, ...]:
        """The posteriors that the arrays hold: "transition", and "reward" unless it is known."""
        return ("transition", "reward") if "reward_level" in self.arrays else ("transition",)

    def saved(self) -> dict[str, np.ndarray]:
        """Return all arrays of a file.

        Returns:
            The arrays by name, with the description as JSON.
        """
        return self.arrays | {"description": np.array(json.dumps(self.description))}


def prediction_model(agent: Any) -> PredictionModel:
    """Write the beliefs of an agent as arrays.

    Args:
        agent: The agent. Its kernels are products of squared exponentials and periodic kernels,
            fitted to the data or compiled.

    Returns:
        The model, which was compared with the beliefs.

    Raises:
        ArgumentError: If the agent has no such beliefs, or a cost is measured.
        KernelMDPError: If the arrays predict something else than the beliefs.

    >>> import kernelmdp as km
    >>> prediction_model(km.Greedy("rkhs", seed=0)).dimensions  # before any data
    (1, 1)
    """
    problem = agent.problem
    beliefs = agent.learner.beliefs(agent.controller_state)
    if beliefs is None:
        raise ArgumentError("agent", "one with beliefs that are Gaussian processes", agent.name)
    if problem.measured:
        raise ArgumentError("agent", "one without a limit of a measured cost", problem.name)
    scale = np.asarray(beliefs.scale, float)
    sums = {"transition": kernel_sums(beliefs.transition, scale=scale, offset=beliefs.offset)}
    outputs = ["next_mean", "next_std"]
    if not beliefs.reward_known:
        sums["reward"] = kernel_sums(beliefs.reward, scale=np.ones(1), offset=None)
        outputs += ["reward_mean", "reward_std"]
    arrays = {f"{name}_{key}": array for name, each in sums.items() for key, array in each.items()}
    points = drawn_points(problem.points, CHECKS, seed=0)
    arrays |= {"check_points": points, "check_predictions": predictions(beliefs, scale, points)}
    names = problem.coordinates or coordinate_names("state", problem.states.dimension)
    described = description_of_agent(agent) | {
        "format": "kernelmdp model",
        "states": list(names),
        "actions": list(action_names(agent)),
        "periodic": list(problem.states.periodic),
        "outputs": outputs,
        "noise": "not included: deviations say what is unknown, not how much steps vary",
    }
    model = PredictionModel(arrays, described)
    difference = NumpyModel(model.saved()).self_check()
    if not difference <= TOLERANCE:
        raise KernelMDPError(f"the exported predictions differ by {difference:.3g}")
    return model


def predictions(beliefs: Any, scale: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Compute what beliefs predict, in the order of a model's outputs.

    Args:
        beliefs: The beliefs.
        scale: The unit of each coordinate of the state, (m,).
        points: The points z = (s, a), (n, d).

    Returns:
        The predictions, one column for each number, (n, 2 m) or (n, 2 m + 2).
    """
    z = jnp.asarray(points)
    mean, deviation = map(np.asarray, beliefs.predict_state(z))
    columns = [mean, scale * deviation]
    if not beliefs.reward_known:
        columns += [np.asarray(each)[:, None] for each in beliefs.predict_reward(z)]
    return np.concatenate(columns, axis=1)


def drawn_points(space: Domain, count: int, *, seed: int) -> np.ndarray:
    """Draw points evenly.

    Args:
        space: The space of z = (s, a).
        count: The number of points.
        seed: Decides the draw.

    Returns:
        The points, (count, d).
    """
    generator = np.random.default_rng(seed)
    low, high = space.bounds
    limited = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(limited, low, -UNBOUNDED_RANGE), np.where(limited, high, UNBOUNDED_RANGE)
    return generator.uniform(low, high, (count, len(low)))
