"""A learning problem: everything about a system that is known before learning."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelmdp.domains import Box, Domain, ProductDomain, join
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.kernels import Index, Kernel, OutputKernel, Periodic, SquaredExponential
from kernelmdp.mdp.constraints import Constraint, Violation
from kernelmdp.mdp.fallback import Fallback
from kernelmdp.mdp.known_motion import KnownMotion, increments_learned
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.memory import Memory
from kernelmdp.mdp.model import Model
from kernelmdp.mdp.noise import Gaussian, Noise
from kernelmdp.mdp.observed_safety import ObservedCoordinates
from kernelmdp.numerics.checks import choice, integer
from kernelmdp.numerics.keywords import suggests_keywords

#: A known mean reward: from points (n, d) to values (n,).
RewardFunction = Callable[..., Any]


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """Spaces, horizon, kernels, noise and constants, without the true means.

    Transitions are learned as the scaled residual (outcome − offset)/scale.
    ``Problem.from_spaces`` makes a problem from spaces and a horizon alone.

    Attributes:
        name: The name of the problem in tables and files.
        states: The state space.
        actions: The action space.
        horizon: The number of periods H.
        reward_kernel: The kernel of the mean reward, on points z = (s, a).
        transition_kernel: The kernel of the scaled residuals.
        reward: A known mean reward. None if it is to be learned.
        reward_noise: The noise of the reward.
        transition_noise: The noise of the next state.
        offset: What is subtracted from outcomes: 0 ("zero"), the state ("identity"), or 1/S for the
            probabilities of a table ("uniform").
        scale: One number for each coordinate of the mean next state. The default is 1.
        noise_floors: Least standard deviations in the regressions of rewards and of scaled
            residuals. They are for systems without noise, and for those that do not quite fit their
            kernel.
        accuracy: How closely kernels are compiled, as a share of the noise variance.
        norm_reward: RKHS norm of R̄ for its kernel. None if it is unknown.
        norm_transition: RKHS norm of the scaled residual for its kernel. None if it is unknown.
        assumed_norms: Norms that are used where they are unknown. Confidence sets of that size are
            useful, but no theorem covers them.
        lipschitz: L, a bound of how fast U_h changes with the mean next state.
        lipschitz_rule: The rule that gave L.
        state_points: Nodes along each axis of the state for a grid planner. None means the
            planner's default.
        action_points: Actions along each axis for a grid planner. None means the planner's default.
        planner: The name of the planner that suits the problem.
        learner: The name of the learner that suits the problem.
        unbounded: Axes of the state whose bounds are provisional.
        measured: Coordinates of the state that hold what the last step was measured to cost.
            Nothing depends on them. They are the last ones.
        termination: Which episodes end, as a function of points (n, d) and next states (n, m). None
            if none does.
        reward_bounds: The lowest and the highest mean reward, if you know them.
        drawn_from_prior: Whether the means are draws of Gaussian processes with these kernels, as
            Theorems 3 and 4 assume.
        coordinates: The names of the coordinates of the state, for constraints as text.
        observation: What users see, if it is not the state. Constraints and fallbacks are then
            about observations.
        constraints: What must stay at or below 0. An agent keeps them if it is told so.
        fallback: A controller that keeps the constraints. None if there is none.
        motion: What is known of how the state moves. None if it is learned from increments alone.
        memory: What states tell of the past, if they are more than an observation; else None.
        prior_error: How wrong ``motion`` may be where nothing was observed, as a share of the
            change of the state.
        forgetting: The number of last episodes that are learned from (at least 1), or the share of
            its weight that an episode loses with each later one (below 1). 0 keeps everything.

    >>> heater = Problem.from_spaces(states=Box([10], [40]), actions=Box([0], [1]), horizon=30)
    >>> heater.planner, heater.learner
    ('grid', 'fitted')
    """

    name: str
    states: Domain
    actions: Domain
    horizon: int
    reward_kernel: Kernel
    transition_kernel: OutputKernel
    reward: RewardFunction | None
    reward_noise: Noise
    transition_noise: Noise
    offset: str = "zero"
    scale: tuple[float, ...] = ()
    noise_floors: tuple[float, float] = (1e-3, 1e-3)
    accuracy: float = 1e-3
    norm_reward: float | None = None
    norm_transition: float | None = None
    assumed_norms: tuple[float, float] = (1.0, 1.0)
    lipschitz: float = math.inf
    lipschitz_rule: str = "none: infinite"
    state_points: tuple[int, ...] | None = None
    action_points: tuple[int, ...] | None = None
    planner: str = "grid"
    learner: str = "fixed"
    unbounded: tuple[int, ...] = ()
    measured: tuple[int, ...] = ()
    termination: Callable[..., Any] | None = None
    reward_bounds: tuple[float, float] | None = None
    drawn_from_prior: bool = False
    coordinates: tuple[str, ...] = ()
    observation: ObservedCoordinates | None = None
    constraints: tuple[Constraint, ...] = ()
    fallback: Fallback | None = None
    motion: KnownMotion | None = None
    memory: Memory | None = None
    prior_error: float = 0.0
    forgetting: float = 0.0

    @classmethod
    @suggests_keywords
    def from_spaces(
        cls,
        *,
        states: Box,
        actions: Domain,
        horizon: int,
        name: str = "problem",
        step: float = 0.1,
        noise: float = 0.01,
        lengthscale: float = 0.2,
        coordinates: tuple[str, ...] = (),
    ) -> "Problem":
        """Make the problem of a system of which only the spaces and the horizon are known.

        Kernels and noise are fitted to the data. The planner is a grid for up to two coordinates of
        the state, and MPC for more. If you know the reward function, kernels or noise, pass them to
        the agent as settings.

        Args:
            states: The state space.
            actions: The action space.
            horizon: The number of periods H.
            name: The name of the problem in tables and files.
            step: How far a state typically moves in a period, as a share of each axis.
            noise: Standard deviation of the noise, as a share of the reward's or step's size.
            lengthscale: Lengthscale of kernels that are not fitted, as a share of each axis times
                √d.
            coordinates: The names of the coordinates of the state, for the agent's settings
                ``known`` and ``constraints``.

        Returns:
            The problem.
        """
        default = default_kernel(join(state=states, action=actions), lengthscale)
        low, high = states.bounds
        return cls(
            name=name,
            states=states,
            actions=actions,
            horizon=integer("horizon", horizon, least=1),
            reward_kernel=default,
            transition_kernel=default @ Index(states.dimension),
            reward=None,
            reward_noise=Gaussian(noise, estimated=True),
            transition_noise=Gaussian(noise * step * (high - low), estimated=True),
            planner="grid" if states.dimension <= 2 else "mpc",
            coordinates=tuple(coordinates),
        ).with_fitted_kernels(step=step)

    @classmethod
    def from_mdp(
        cls,
        mdp: MDP,
        *,
        name: str,
        reward_kernel: Kernel,
        transition_kernel: OutputKernel,
        **fields: Any,
    ) -> "Problem":
        """Make the problem of learning an MDP: its spaces, noise, L and termination are known.

        Args:
            mdp: The MDP. Its model is not used.
            name: The name of the problem in tables and files.
            reward_kernel: The kernel of the mean reward, on points z = (s, a).
            transition_kernel: The kernel of the scaled residuals.
            **fields: Other fields of the problem. The default offset is "identity".

        Returns:
            The problem.
        """
        # A problem measures distances in units of its scale, an MDP in its metric.
        scale = fields.get("scale") or (1.0,) * mdp.mean_dimension
        return cls(
            name=name,
            states=mdp.states,
            actions=mdp.actions,
            horizon=mdp.horizon,
            reward_kernel=reward_kernel,
            transition_kernel=transition_kernel,
            reward=None,
            reward_noise=mdp.reward_noise,
            transition_noise=mdp.transition_noise,
            lipschitz=float(mdp.lipschitz_in(scale)),
            termination=mdp.termination,
            **{"offset": "identity"} | fields,
        )

    def __post_init__(self) -> None:
        choice("offset", self.offset, ("zero", "identity", "uniform"))
        if not self.scale:
            object.__setattr__(self, "scale", (1.0,) * self.mean_dimension)
        for argument, values, size in (
            ("scale", self.scale, self.mean_dimension),
            ("state_points", self.state_points, self.states.dimension),
            ("action_points", self.action_points, self.actions.dimension),
            ("coordinates", self.coordinates or None, self.states.dimension),
        ):
            if values is not None and len(values) != size:
                raise ShapeError(argument, f"{size} entries", values)
        if len(set(self.coordinates)) < len(self.coordinates):
            raise ArgumentError("coordinates", "different names", ", ".join(self.coordinates))
        if self.transition_kernel.outputs != self.mean_dimension:
            output_name = "state" if self.transition_noise.categorical else "coordinate"
            raise ArgumentError(
                "transition_kernel",
                f"{self.mean_dimension} outputs, one for each {output_name}",
                self.transition_kernel.outputs,
            )

    def with_fitted_kernels(self, *, step: float = 0.1) -> "Problem":
        """Return the problem with kernels that are fitted to the data.

        Args:
            step: The unit of increments of the state, as a share of each axis.

        Returns:
            The problem, which no longer knows its norms.

        Raises:
            ArgumentError: If the states are finite.
        """
        if self.states.finite:
            raise ArgumentError("kernel", "kernels for a table", "'auto'")
        low, high = self.states.bounds
        return dataclasses.replace(
            self,
            learner="fitted",
            offset="identity",
            scale=tuple(step * (high - low)),
            norm_reward=None,
            norm_transition=None,
            assumed_norms=(1.0, 1.0),
        )

    @property
    def mean_dimension(self) -> int:
        """The dimension of a mean next state: m, or the number of states of a table."""
        return self.transition_noise.mean_dimension(self.states)

    @functools.cached_property
    def points(self) -> ProductDomain:
        """The space of z = (s, a), with coordinates named "state" and "action"."""
        return join(state=self.states, action=self.actions)

    @property
    def inputs(self) -> tuple[int, ...]:
        """The coordinates of z = (s, a) on which rewards and next states may depend."""
        hidden = set(self.measured)
        if self.memory is not None and self.memory.clock:
            hidden.add(self.memory.dimension - 1)
        return tuple(j for j in range(self.points.dimension) if j not in hidden)

    @property
    def warm_up(self) -> int:
        """The first steps of an episode that are not learned from: their state tells too little."""
        return 0 if self.memory is None else self.memory.history - 1

    @functools.cached_property
    def known_motion(self) -> KnownMotion:
        """What is known of how the state moves: ``motion``, or that the state stays."""
        return increments_learned(self.states.dimension) if self.motion is None else self.motion

    @property
    def motion_inputs(self) -> tuple[int, ...]:
        """The coordinates of z = (s, a) on which the learned motion may depend."""
        return tuple(j for j in self.inputs if j not in self.known_motion.ignored)

    @functools.cached_property
    def residual_noise(self) -> np.ndarray:
        """Standard deviation of the scaled residuals along each axis, at least the noise floor."""
        deviations = self.transition_noise.standard_deviations(self.mean_dimension)
        return np.maximum(deviations / np.array(self.scale), self.noise_floors[1])

    @functools.cached_property
    def noise_variances(self) -> tuple[float, float]:
        """Noise variances of the regressions: of rewards, and of the noisiest scaled residual."""
        reward = float(self.reward_noise.standard_deviations(1)[0])
        return max(reward, self.noise_floors[0]) ** 2, float(self.residual_noise.max()) ** 2

    @functools.cached_property
    def reward_range(self) -> tuple[float, float]:
        """The lowest and the highest mean reward: ``reward_bounds``, or ±B_R √κ (note B2)."""
        if self.reward_bounds is not None:
            return self.reward_bounds
        # With one period, clipping would only cause ties between the best actions.
        if self.norm_reward is None or self.horizon == 1:
            return -math.inf, math.inf
        bound = self.norm_reward * math.sqrt(self.reward_kernel.variance_bound(self.points))
        return -bound, bound

    @property
    def lipschitz_norms(self) -> tuple[float, float, float, float, float]:
        """B_R, Λ_R, B_P, Λ_P and the slope of the offset in the state (note D6), in state units.

        Raises:
            ArgumentError: If a norm is unknown, or outputs are not independent.
        """
        if self.reward is not None or self.norm_reward is None or self.norm_transition is None:
            raise ArgumentError("planner", "'grid' where norms are not known", "'certified'")
        if self.transition_kernel.decompose(same_noise=False) is None:
            raise ArgumentError("planner", "'grid' where outputs are correlated", "'certified'")
        parts = self.transition_kernel.parts()
        slopes = [
            kernel.constants(self.points).lipschitz for kernel in (self.reward_kernel, *parts)
        ]
        return (
            self.norm_reward,
            slopes[0],
            self.norm_transition,
            max(slopes[1:]) * max(self.scale),
            1.0 if self.offset == "identity" else 0.0,
        )

    @property
    def violation(self) -> Violation | None:
        """The signal "violation" of the constraints; None if there are none."""
        return Violation(self.constraints, self.states.dimension) if self.constraints else None

    def summary(self) -> dict[str, Any]:
        """Summarise the problem. A saved agent can be loaded if the summaries are equal.

        Returns:
            Texts and numbers by name.
        """
        fixed = self.learner == "fixed"
        names = [constraint.name for constraint in self.constraints]
        return {
            "name": self.name,
            "states": repr(self.states),
            "actions": repr(self.actions),
            "horizon": self.horizon,
            "reward": "learned" if self.reward is None else "known",
            "reward_kernel": str(self.reward_kernel) if fixed else "auto",
            "transition_kernel": str(self.transition_kernel) if fixed else "auto",
            "reward_noise": repr(self.reward_noise),
            "transition_noise": repr(self.transition_noise),
            "offset": self.offset,
            "scale": list(self.scale),
        } | ({"constraints": names} if names else {})

    def mdp(self, model: Model) -> MDP:
        """Make the MDP of a model, for a planner.

        Args:
            model: A model of the means, or a family.

        Returns:
            The MDP with the spaces, noise and constants of the problem.
        """
        return MDP(
            model,
            states=self.states,
            actions=self.actions,
            horizon=self.horizon,
            reward_noise=self.reward_noise,
            transition_noise=self.transition_noise,
            reward_range=self.reward_range,
            metric=self.scale,
            lipschitz=self.lipschitz,
            termination=self.termination,
            signals={} if self.violation is None else {"violation": self.violation},
        )


def default_kernel(points: ProductDomain, lengthscale: float) -> Kernel:
    """Make a squared exponential kernel over all coordinates, with periodic factors for angles.

    Args:
        points: The space of z = (s, a).
        lengthscale: The lengthscale, as a share of each axis times √d.

    Returns:
        The kernel.
    """
    low, high = points.bounds
    angles = [points.names[name][i] for name, domain in points.factors for i in domain.periodic]
    lengthscales = lengthscale * math.sqrt(points.dimension) * np.maximum(high - low, 1e-9)
    not_periodic = [i for i in range(points.dimension) if i not in angles]
    factors: list[Kernel] = [
        Periodic(lengthscale=1.0, period=float(high[i] - low[i])).on([i]) for i in angles
    ]
    if not_periodic:
        factors.append(SquaredExponential(lengthscale=lengthscales[not_periodic]).on(not_periodic))
    return math.prod(factors[1:], start=factors[0])
