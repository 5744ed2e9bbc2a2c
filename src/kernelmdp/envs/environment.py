"""Environments: the true MDP, the first state of episodes, and the problem that agents learn."""

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
from kernelmdp.numerics.tracing import is_traced
from kernelmdp.types import Key

#: Default nodes of a grid along each axis of states, by the number of axes. More nodes are more
#: exact, and dynamic programming takes time in proportion to all of them.
STATE_POINTS = {1: 101, 2: 61, 3: 25}
#: The same for actions.
ACTION_POINTS = {1: 21, 2: 9}
#: Default nodes along each axis if there are more axes.
FEW_POINTS = 5


@dataclasses.dataclass(frozen=True, eq=False)
class Environment:
    """A known MDP in which agents learn, and the problem that agents see. ``of`` makes one.

    Attributes:
        mdp: The true MDP. Its model is a ``MeanModel``.
        start: The first state of episodes, (m,), or a function from a key to it.
        problem: What agents know before learning.
        optimum_points: Nodes along each axis of states and of actions for the optimal value. The
            default halves the spacing of the problem's grid of states.
        optimum: The optimal value at the fixed start, if it was computed before.
        reference: V*_1 as a function of the state, if a grid cannot compute it.
        approximate_mdp: The MDP as agents see it, if that is not the true one.
        drawing: A function from a state to a picture, as bytes (rows, columns, 3).
        spec: The name and options from which ``make`` made the environment.

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

    mdp: MDP
    start: tuple[float, ...] | Callable[[Key], Any]
    problem: Problem
    optimum_points: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    optimum: Value | None = None
    reference: Callable[[tuple[float, ...]], Value] | None = None
    approximate_mdp: MDP | None = None
    drawing: Callable[[np.ndarray], np.ndarray] | None = None
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
        approximate_mdp: MDP | None = None,
        optimum_points: tuple[tuple[int, ...], tuple[int, ...]] | None = None,
        optimum: Value | None = None,
        reference: Callable[[tuple[float, ...]], Value] | None = None,
        drawing: Callable[[np.ndarray], np.ndarray] | None = None,
        **fields: Any,
    ) -> "Environment":
        """Make an environment from an MDP. Its problem is derived from the MDP.

        Args:
            mdp: The true MDP. Its model is a ``MeanModel``.
            start: The first state of episodes, (m,), or a function from a key to it.
            name: The name of the environment in tables and files.
            reward_kernel: The kernel of the mean reward, on points z = (s, a).
            transition_kernel: The kernel of the scaled residuals (outcome − offset)/scale.
            approximate_mdp: The MDP as agents see it, if that is not the true one.
            optimum_points: Nodes along each axis of states and of actions for the optimal value.
            optimum: The optimal value at the fixed start, if it was computed before.
            reference: V*_1 as a function of the state, if a grid cannot compute it.
            drawing: A function from a state to a picture, as bytes (rows, columns, 3).
            **fields: Other fields of the ``Problem``, such as ``scale`` and ``planner``.

        Returns:
            The environment.
        """
        m, q = mdp.states.dimension, mdp.actions.dimension
        grid = {
            "state_points": (STATE_POINTS.get(m, FEW_POINTS),) * m,
            "action_points": (ACTION_POINTS.get(q, FEW_POINTS),) * q,
        }
        problem = Problem.from_mdp(
            mdp if approximate_mdp is None else approximate_mdp,
            name=name,
            reward_kernel=reward_kernel,
            transition_kernel=transition_kernel,
            **grid | fields,
        )
        return cls(
            mdp, start, problem, optimum_points, optimum, reference, approximate_mdp, drawing
        )

    def __post_init__(self) -> None:
        if not callable(self.start):
            object.__setattr__(self, "start", self._state(self.start))
        if not isinstance(self.mdp.model, MeanModel):
            raise ArgumentError("mdp", "one with a Known model", type(self.mdp.model).__name__)
        states, actions = self.problem.state_points, self.problem.action_points
        if states is None or actions is None:
            raise ArgumentError("problem", "state_points and action_points", None)
        if self.optimum_points is None:
            # An odd number of nodes, so that a grid of half the cells has some of the same nodes.
            finer = (tuple(2 * n - 1 for n in states), actions)
            object.__setattr__(self, "optimum_points", finer)
        assert self.optimum_points is not None
        sizes = self.mdp.states.dimension, self.mdp.actions.dimension
        for counts, size in zip(self.optimum_points, sizes, strict=True):
            if len(counts) != size:
                raise ShapeError("optimum_points", f"{size} numbers", counts)

    @property
    def name(self) -> str:
        """The name of the environment in tables and files."""
        return self.problem.name

    @property
    def agent_mdp(self) -> MDP:
        """The MDP as agents see it: ``approximate_mdp`` if there is one, else the true MDP."""
        return self.mdp if self.approximate_mdp is None else self.approximate_mdp

    @property
    def known_reward(self) -> Callable[..., Any]:
        """The true mean reward function, (n, d) -> (n,)."""
        assert isinstance(self.mdp.model, MeanModel)
        return self.mdp.model.reward

    @functools.cached_property
    def quadratic(self) -> QuadraticTruth:
        """The true MDP as linear-quadratic control. It is an error if it is not."""
        return QuadraticTruth(self.mdp)

    @property
    def grid(self) -> StateGrid:
        """The default grid of states."""
        assert self.problem.state_points is not None
        return StateGrid(self.mdp.states, self.problem.state_points, self.mdp.transition_noise)

    @property
    def actions(self) -> np.ndarray:
        """The default actions of a grid planner, (A, q); all actions of a finite set."""
        assert self.problem.action_points is not None
        return action_grid(self.mdp.actions, self.problem.action_points)

    def draw_start(self, key: Key) -> Float[Array, " m"]:
        """Draw the first state of an episode.

        Args:
            key: Decides the draw. A fixed start does not depend on it.

        Returns:
            The state, (m,).
        """
        if not callable(self.start):
            return self._fixed_start
        start = self.start(key)
        if is_traced(start):
            return jnp.asarray(start, float)
        return jnp.asarray(self._state(start))

    @functools.cached_property
    def _fixed_start(self) -> Float[Array, " m"]:
        """Keep the start on the device. It was checked when the environment was made."""
        return jnp.asarray(self.start, float)

    def reset(self, *, key: Key, state: Any = None) -> Float[Array, " m"]:
        """Return the first state of an episode.

        Args:
            key: Decides the draw, as in ``draw_start``.
            state: The state to start in, (m,). None means to draw it.

        Returns:
            The state, (m,), checked.
        """
        return self.draw_start(key) if state is None else jnp.asarray(self._state(state))

    def play(self, policy: Policy, start: Float[Array, " m"], *, key: Key) -> Episode:
        """Play one episode of a policy in the true MDP.

        Args:
            policy: The policy.
            start: The first state, (m,).
            key: Decides the noise.

        Returns:
            The episode. It is shorter than H if it terminates.
        """
        episode = play(self.mdp, policy, start, key=key)
        if self.mdp.termination is None:
            return episode
        ended = np.asarray(self.mdp.termination(jnp.asarray(episode.points), episode.states[1:]))
        if not ended.any():
            return episode
        length = int(ended.argmax()) + 1
        return Episode(
            episode.states[: length + 1],
            episode.actions[:length],
            episode.rewards[:length],
            episode.outcomes[:length],
            terminated=True,
        )

    def residuals(
        self, points: Float[Array, "n d"], outcomes: Float[Array, "n m"]
    ) -> Float[Array, "n m"]:
        """Compute (outcome − offset)/scale, from which transitions are learned.

        Args:
            points: z = (s, a), (n, d).
            outcomes: Next states before projection, (n, m).

        Returns:
            The scaled residuals, (n, m).
        """
        offsets = (
            points[:, : outcomes.shape[1]] if self.problem.offset == "identity" else 0 * outcomes
        )
        return (outcomes - offsets) / jnp.asarray(self.problem.scale)[None, :]

    def optimal_value(self, start: Any = None) -> Value:
        """Compute V*_1 at a state. The result is cached.

        Args:
            start: The state, (m,). None means the fixed start.

        Returns:
            The optimal value with its error.

        Raises:
            ArgumentError: If ``start`` is None and there is no fixed start.
            UnknownPropertyError: If the optimal value is unknown.
        """
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
        """V*_1 on the fine grid, for all states."""
        assert self.optimum_points is not None
        states, actions = self.optimum_points
        return solve(self.mdp, state_points=states, action_points=actions)

    def _state(self, value: Any) -> tuple[float, ...]:
        """Return a state as a tuple, after checking that it is in the state space."""
        m = self.mdp.states.dimension
        array = np.asarray(float_array(value, "start"))
        if array.shape != (m,):
            raise ShapeError("start", f"a state of {m} numbers", f"shape {array.shape}")
        require_finite("start", array)
        row = jnp.asarray(array, float)[None, :]
        self.mdp.states.require_inside("start", row)
        if self.mdp.states.finite:
            return tuple(float(x) for x in array)
        # The two ends of a periodic axis are the same state.
        return tuple(float(x) for x in np.asarray(self.mdp.states.nearest(row))[0])

    def __repr__(self) -> str:
        mdp, lipschitz = self.mdp, self.problem.lipschitz
        size = f"L={lipschitz:.3g}" if math.isfinite(lipschitz) else "L=inf"
        return (
            f"Environment({self.name!r}, states={mdp.states}, actions={mdp.actions}, "
            f"horizon={mdp.horizon}, {size})"
        )
