"""An environment: the truth, where episodes start, and what an agent may be told of it."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import FiniteSet
from kernelmdp.errors import ArgumentError, ShapeError, UnknownPropertyError
from kernelmdp.kernels import Kernel, OutputKernel
from kernelmdp.mdp import MDP, Episode, Known, Policy, StateGrid, Value, action_grid, play
from kernelmdp.mdp.evaluation import Optimum, solve
from kernelmdp.mdp.linear import QuadraticTruth
from kernelmdp.numerics.checks import choice, float_array, require_finite
from kernelmdp.types import Key

#: Nodes along each axis when nothing is said, by the number of axes.
STATE_POINTS, ACTION_POINTS, FEW = {1: 101, 2: 61, 3: 25}, {1: 21, 2: 9}, 5
#: What a field is that nobody gave; it is replaced when an environment is made.
USUAL: Any = None


@dataclasses.dataclass(frozen=True, eq=False)
class Environment:
    """A known MDP to learn in, with suggestions for those who do not know it.

    Kernels act on points z = (state, action). Transitions are learned as the scaled residual
    (outcome − offset)/scale, where the offset is 0 ("zero") or the state ("identity").

    >>> from kernelmdp import Box, kernel, kernels
    >>> from kernelmdp.mdp import Gaussian
    >>> box, noise = Box([-1.0], [1.0]), Gaussian(0.1)
    >>> truth = Known(lambda z: -(z[:, 0] ** 2), lambda z: 0.9 * z[:, :1] + 0.3 * z[:, 1:])
    >>> mdp = MDP(truth, states=box, actions=box, horizon=5, reward_noise=noise,
    ...           transition_noise=noise)
    >>> smooth = kernel("se(0.8)")
    >>> env = Environment("drift", mdp, (0.8,), smooth, smooth @ kernels.Index(1))
    >>> env.state_points, env.offset
    ((101,), 'identity')
    """

    name: str
    #: The truth; its model is ``Known``.
    mdp: MDP
    #: A state, or a function from a key to one.
    start: tuple[float, ...] | Callable[[Key], Any]
    reward_kernel: Kernel
    transition_kernel: OutputKernel
    offset: str = "identity"
    #: One number for each coordinate of the state; 1 unless given.
    scale: tuple[float, ...] = USUAL
    #: Nodes along each axis that a grid planner needs for a sensible policy; a usual number unless
    #: given.
    state_points: tuple[int, ...] = USUAL
    action_points: tuple[int, ...] = USUAL
    #: The same for the optimal value, at least as fine; half the spacing unless given.
    optimum_points: tuple[tuple[int, ...], ...] = USUAL
    #: Norms of R̄ and of the scaled residual for these kernels; None where there is none or it is
    #: not known.
    norm_reward: float | None = None
    norm_transition: float | None = None
    #: Norms to go by where they are not known: sets of that size are of use, but not covered.
    assumed_norms: tuple[float, float] = (1.0, 1.0)
    #: By which rule ``lipschitz`` was found.
    lipschitz_rule: str = "none: infinite"
    #: Least standard deviations to regress with, of rewards and of scaled residuals: for truths
    #: without noise, and for those that are not quite what their kernel says.
    noise_floors: tuple[float, float] = (1e-3, 1e-3)
    #: How closely kernels need to be compiled, as a share of the noise variance.
    accuracy: float = 1e-3
    #: The optimal value at the fixed start when it was computed beforehand.
    optimum: Value | None = None
    #: V*_1 as a function of the state, where a grid is no way to find it.
    reference: Callable[[tuple[float, ...]], Value] | None = None
    #: Which planner suits it: "grid", "mpc" for more coordinates than a grid can have, "riccati"
    #: for linear-quadratic control, "arms" for bandits.
    planner: str = "grid"
    #: The MDP as an agent is told to see it, where that is not the truth.
    believed: MDP | None = None
    #: A picture of a state, as bytes (rows, columns, 3).
    drawing: Callable[[np.ndarray], np.ndarray] | None = None
    #: What ``make`` was asked for, to make it again.
    spec: dict[str, Any] | None = None
    _values: dict[tuple[float, ...], Value] = dataclasses.field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        m, q = self.mdp.states.dimension, self.mdp.actions.dimension
        choice("offset", self.offset, ("zero", "identity", "uniform"))
        choice("planner", self.planner, ("grid", "mpc", "riccati", "arms"))
        usual = {
            "scale": (1.0,) * self.seen.mean_dimension,
            "state_points": (STATE_POINTS.get(m, FEW),) * m,
            "action_points": (ACTION_POINTS.get(q, FEW),) * q,
        }
        for name, value in usual.items():
            if getattr(self, name) is USUAL:
                object.__setattr__(self, name, value)
        if self.optimum_points is USUAL:
            # An odd number of nodes, so that half the cells are a grid too.
            finer = (tuple(2 * n - 1 for n in self.state_points), self.action_points)
            object.__setattr__(self, "optimum_points", finer)
        fine_states, fine_actions = self.optimum_points
        for argument, given, size in (
            ("scale", self.scale, self.seen.mean_dimension),
            ("state_points", self.state_points, m),
            ("action_points", self.action_points, q),
            ("optimum_points", fine_states, m),
            ("optimum_points", fine_actions, q),
        ):
            if len(given) != size:
                raise ShapeError(argument, f"{size} numbers", given)
        outputs = self.transition_kernel.outputs
        if outputs != self.seen.mean_dimension:
            raise ShapeError("transition_kernel", f"{self.seen.mean_dimension} outputs", outputs)
        if not isinstance(self.mdp.model, Known):
            raise ArgumentError("mdp", "one with a Known model", type(self.mdp.model).__name__)
        if not callable(self.start):
            object.__setattr__(self, "start", self._state(self.start))

    @property
    def seen(self) -> MDP:
        """What an agent is told of: the truth, but for embeddings that it does not fit."""
        return self.mdp if self.believed is None else self.believed

    @property
    def known_reward(self) -> Callable[..., Any]:
        """The true mean reward: points (n, d) -> (n,)."""
        assert isinstance(self.mdp.model, Known)
        return self.mdp.model.reward

    @functools.cached_property
    def quadratic(self) -> QuadraticTruth:
        """The truth as linear-quadratic control; an error when it is none."""
        return QuadraticTruth(self.mdp)

    @property
    def lipschitz(self) -> float:
        """L, a bound of how fast U_h changes with the mean next state; see ``lipschitz_rule``."""
        return float(self.seen.lipschitz)

    @property
    def residual_noise(self) -> np.ndarray:
        """Standard deviations to regress scaled residuals with: the truth's, or the floor, (m,)."""
        deviations = self.seen.transition_noise.standard_deviations(len(self.scale))
        return np.maximum(deviations / np.array(self.scale), self.noise_floors[1])

    @property
    def grid(self) -> StateGrid:
        """The default grid of states."""
        return StateGrid(self.mdp.states, self.state_points, self.mdp.transition_noise)

    @property
    def actions(self) -> np.ndarray:
        """The default actions of a grid planner, (A, q); all of a finite set."""
        return action_grid(self.mdp.actions, self.action_points)

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
        before = points[:, : outcomes.shape[1]] if self.offset == "identity" else 0 * outcomes
        return (outcomes - before) / jnp.asarray(self.scale)[None, :]

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
        if self.planner == "riccati":
            return self.quadratic.optimum(state)
        if self.planner == "mpc":
            raise UnknownPropertyError(f"{self.name}: no optimal value is known")
        return self._solved.at(state)

    @functools.cached_property
    def _solved(self) -> Optimum:
        """V*_1 on the fine grid, for every state at once."""
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
        if isinstance(self.mdp.states, FiniteSet):
            return tuple(float(x) for x in array)
        # A periodic axis has one name for its two ends.
        return tuple(float(x) for x in np.asarray(self.mdp.states.nearest(row))[0])

    def __repr__(self) -> str:
        mdp = self.mdp
        size = f"L={self.lipschitz:.3g}" if math.isfinite(self.lipschitz) else "L=inf"
        return (
            f"Environment({self.name!r}, states={mdp.states}, actions={mdp.actions}, "
            f"horizon={mdp.horizon}, {size})"
        )
