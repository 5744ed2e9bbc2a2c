"""An environment: the truth, where episodes start, and what an agent may be told of it."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.errors import ArgumentError, ShapeError, UnknownPropertyError
from kernelmdp.kernels import Kernel, OutputKernel
from kernelmdp.mdp import (
    MDP,
    Episode,
    MeanModel,
    Policy,
    Problem,
    StateGrid,
    Value,
    action_grid,
    play,
)
from kernelmdp.mdp.evaluation import Optimum, solve
from kernelmdp.mdp.linear_policy import QuadraticTruth
from kernelmdp.numerics.checks import float_array, require_finite
from kernelmdp.types import Key

#: Nodes along each axis when nothing is said, by the number of axes.
STATE_POINTS, ACTION_POINTS, FEW = {1: 101, 2: 61, 3: 25}, {1: 21, 2: 9}, 5


@dataclasses.dataclass(frozen=True, eq=False)
class Environment:
    """A known MDP to learn in, with the problem that agents are told of. See ``of``.

    >>> from kernelmdp import Box, kernel, kernels
    >>> from kernelmdp.mdp import Gaussian
    >>> box, noise = Box([-1.0], [1.0]), Gaussian(0.1)
    >>> truth = MeanModel(lambda z: -(z[:, 0] ** 2), lambda z: 0.9 * z[:, :1] + 0.3 * z[:, 1:])
    >>> mdp = MDP(truth, states=box, actions=box, horizon=5, reward_noise=noise,
    ...           transition_noise=noise)
    >>> smooth = kernel("se(0.8)")
    >>> env = Environment.of(mdp, (0.8,), name="drift", reward_kernel=smooth,
    ...                      transition_kernel=smooth @ kernels.Index(1))
    >>> env.problem.state_points, env.problem.offset
    ((101,), 'identity')
    """

    #: The truth; its model is ``MeanModel``.
    mdp: MDP
    #: A state, or a function from a key to one.
    start: tuple[float, ...] | Callable[[Key], Any]
    #: What agents are told.
    problem: Problem
    #: Nodes along each axis for the optimal value, of states and of actions; half the spacing of
    #: the problem's grid unless given.
    optimum_points: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    #: The optimal value at the fixed start when it was computed beforehand.
    optimum: Value | None = None
    #: V*_1 as a function of the state, where a grid is no way to find it.
    reference: Callable[[tuple[float, ...]], Value] | None = None
    #: The MDP as an agent is told to see it, where that is not the truth.
    believed: MDP | None = None
    #: A picture of a state, as bytes (rows, columns, 3).
    drawing: Callable[[np.ndarray], np.ndarray] | None = None
    #: What ``make`` was asked for, to make it again.
    spec: dict[str, Any] | None = None
    _values: dict[tuple[float, ...], Value] = dataclasses.field(
        default_factory=dict, init=False, repr=False
    )

    @classmethod
    def of(
        cls,
        mdp: MDP,
        start: Any,
        *,
        name: str,
        reward_kernel: Kernel,
        transition_kernel: OutputKernel,
        believed: MDP | None = None,
        optimum_points: tuple[tuple[int, ...], tuple[int, ...]] | None = None,
        optimum: Value | None = None,
        reference: Callable[[tuple[float, ...]], Value] | None = None,
        drawing: Callable[[np.ndarray], np.ndarray] | None = None,
        **fields: Any,
    ) -> "Environment":
        """An environment around an MDP, with the problem made from it.

        Args:
            mdp: The truth; its model is ``MeanModel``.
            start: A state, or a function from a key to one.
            name: What the environment is called in tables and files.
            reward_kernel: Of the mean reward, on points z = (s, a).
            transition_kernel: Of the scaled residuals (outcome − offset)/scale.
            believed: The MDP as an agent is told to see it, where that is not the truth.
            optimum_points: Nodes along each axis for the optimal value, of states and of actions.
            optimum: The optimal value at the fixed start when it was computed beforehand.
            reference: V*_1 as a function of the state, where a grid is no way to find it.
            drawing: A picture of a state, as bytes (rows, columns, 3).
            **fields: Other fields of the ``Problem``, such as ``scale`` and ``planner``.
        """
        m, q = mdp.states.dimension, mdp.actions.dimension
        grid = {
            "state_points": (STATE_POINTS.get(m, FEW),) * m,
            "action_points": (ACTION_POINTS.get(q, FEW),) * q,
        }
        problem = Problem.from_mdp(
            mdp if believed is None else believed,
            name=name,
            reward_kernel=reward_kernel,
            transition_kernel=transition_kernel,
            **grid | fields,
        )
        return cls(mdp, start, problem, optimum_points, optimum, reference, believed, drawing)

    def __post_init__(self) -> None:
        if not callable(self.start):
            object.__setattr__(self, "start", self._state(self.start))
        if not isinstance(self.mdp.model, MeanModel):
            raise ArgumentError("mdp", "one with a Known model", type(self.mdp.model).__name__)
        states, actions = self.problem.state_points, self.problem.action_points
        if states is None or actions is None:
            raise ArgumentError("problem", "state_points and action_points", None)
        if self.optimum_points is None:
            # An odd number of nodes, so that half the cells are a grid too.
            finer = (tuple(2 * n - 1 for n in states), actions)
            object.__setattr__(self, "optimum_points", finer)
        assert self.optimum_points is not None
        sizes = self.mdp.states.dimension, self.mdp.actions.dimension
        for given, size in zip(self.optimum_points, sizes, strict=True):
            if len(given) != size:
                raise ShapeError("optimum_points", f"{size} numbers", given)

    @property
    def name(self) -> str:
        """What the environment is called in tables and files."""
        return self.problem.name

    @property
    def seen(self) -> MDP:
        """What an agent is told of: the truth, but for embeddings that it does not fit."""
        return self.mdp if self.believed is None else self.believed

    @property
    def known_reward(self) -> Callable[..., Any]:
        """The true mean reward: points (n, d) -> (n,)."""
        assert isinstance(self.mdp.model, MeanModel)
        return self.mdp.model.reward

    @functools.cached_property
    def quadratic(self) -> QuadraticTruth:
        """The truth as linear-quadratic control; an error when it is none."""
        return QuadraticTruth(self.mdp)

    @property
    def grid(self) -> StateGrid:
        """The default grid of states."""
        assert self.problem.state_points is not None
        return StateGrid(self.mdp.states, self.problem.state_points, self.mdp.transition_noise)

    @property
    def actions(self) -> np.ndarray:
        """The default actions of a grid planner, (A, q); all of a finite set."""
        assert self.problem.action_points is not None
        return action_grid(self.mdp.actions, self.problem.action_points)

    def starts(self, key: Key) -> Float[Array, " m"]:
        """The state in which an episode starts; a fixed start needs nothing of the key."""
        if callable(self.start):
            return jnp.asarray(self._state(self.start(key)))
        return self._fixed_start

    @functools.cached_property
    def _fixed_start(self) -> Float[Array, " m"]:
        """On the device once: it was checked when the environment was made."""
        return jnp.asarray(self.start, float)

    def reset(self, *, key: Key, state: Any = None) -> Float[Array, " m"]:
        """The start of an episode: ``state`` when it is given, else as ``starts``."""
        return self.starts(key) if state is None else jnp.asarray(self._state(state))

    def play(self, policy: Policy, start: Float[Array, " m"], *, key: Key) -> Episode:
        """One episode of a policy in the truth; it is shorter than H when it terminates."""
        episode = play(self.mdp, policy, start, key=key)
        if self.mdp.termination is None:
            return episode
        ends = np.asarray(self.mdp.termination(jnp.asarray(episode.points), episode.states[1:]))
        if not ends.any():
            return episode
        last = int(ends.argmax()) + 1
        return Episode(
            episode.states[: last + 1],
            episode.actions[:last],
            episode.rewards[:last],
            episode.outcomes[:last],
            terminated=True,
        )

    def residuals(
        self, points: Float[Array, "n d"], outcomes: Float[Array, "n m"]
    ) -> Float[Array, "n m"]:
        """(outcome − offset)/scale: what transitions are learned as, from points and outcomes."""
        before = (
            points[:, : outcomes.shape[1]] if self.problem.offset == "identity" else 0 * outcomes
        )
        return (outcomes - before) / jnp.asarray(self.problem.scale)[None, :]

    def optimal_value(self, start: Any = None) -> Value:
        """V*_1 at a state (the fixed start unless given), with its error; computed once."""
        if start is None:
            if callable(self.start):
                raise ArgumentError("start", f"a state, as {self.name} has no fixed start", None)
            start = self.start
        state = self._state(start)
        if self.optimum is not None and state == self.start:
            return self.optimum
        if state not in self._values:
            self._values[state] = self._optimum_at(state)
        return self._values[state]

    def _optimum_at(self, state: tuple[float, ...]) -> Value:
        if self.reference is not None:
            return self.reference(state)
        if self.problem.planner == "riccati":
            return self.quadratic.optimum(state)
        if self.problem.planner == "mpc":
            raise UnknownPropertyError(f"{self.name}: no optimal value is known")
        return self._solved.at(state)

    @functools.cached_property
    def _solved(self) -> Optimum:
        """V*_1 on the fine grid, for every state at once."""
        assert self.optimum_points is not None
        states, actions = self.optimum_points
        return solve(self.mdp, state_points=states, action_points=actions)

    def _state(self, value: Any) -> tuple[float, ...]:
        """A state as a tuple, checked to be one of this environment's."""
        m = self.mdp.states.dimension
        array = np.asarray(float_array(value, "start"))
        if array.shape != (m,):
            raise ShapeError("start", f"a state of {m} numbers", f"shape {array.shape}")
        require_finite("start", array)
        row = jnp.asarray(array, float)[None, :]
        self.mdp.states.require_inside("start", row)
        if self.mdp.states.finite:
            return tuple(float(x) for x in array)
        # A periodic axis has one name for its two ends.
        return tuple(float(x) for x in np.asarray(self.mdp.states.nearest(row))[0])

    def __repr__(self) -> str:
        mdp, lipschitz = self.mdp, self.problem.lipschitz
        size = f"L={lipschitz:.3g}" if math.isfinite(lipschitz) else "L=inf"
        return (
            f"Environment({self.name!r}, states={mdp.states}, actions={mdp.actions}, "
            f"horizon={mdp.horizon}, {size})"
        )
