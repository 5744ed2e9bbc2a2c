"""What is known of a system before anything is learned of it: everything but the system itself."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelmdp.domains import Box, Domain, ProductDomain, join
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.kernels import Index, Kernel, OutputKernel, Periodic, SquaredExponential
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.model import Model
from kernelmdp.mdp.noise import Gaussian, Noise
from kernelmdp.numerics.checks import choice, integer

#: A known mean reward: points (n, d) to values (n,).
RewardFunction = Callable[..., Any]


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """Spaces, horizon, kernels, noise laws and constants; no truth.

    Transitions are learned as the scaled residual (outcome − offset)/scale. The offset is 0
    ("zero"), the state ("identity"), or 1/S for the probabilities of a table ("uniform").
    ``Problem.from_spaces`` makes a problem from spaces and a horizon alone.

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
    #: A known mean reward, or None when it is to be learned.
    reward: RewardFunction | None
    reward_noise: Noise
    transition_noise: Noise
    offset: str = "zero"
    #: One number for each coordinate of the mean next state; 1 unless given.
    scale: tuple[float, ...] = ()
    #: Least standard deviations to regress with, of rewards and of scaled residuals: for truths
    #: without noise, and for those that are not quite what their kernel says.
    noise_floors: tuple[float, float] = (1e-3, 1e-3)
    #: How closely kernels need to be compiled, as a share of the noise variance.
    accuracy: float = 1e-3
    #: Norms of R̄ and of the scaled residual for these kernels; None where they are not known.
    norm_reward: float | None = None
    norm_transition: float | None = None
    #: Norms to go by where they are not known: sets of that size are of use, but not covered.
    assumed_norms: tuple[float, float] = (1.0, 1.0)
    #: L, a bound of how fast U_h changes with the mean next state, and how it was found.
    lipschitz: float = math.inf
    lipschitz_rule: str = "none: infinite"
    #: Nodes along each axis that a grid planner needs; the planner's own numbers unless given.
    state_points: tuple[int, ...] | None = None
    action_points: tuple[int, ...] | None = None
    #: Names of the planner and of the learner that suit the problem.
    planner: str = "grid"
    learner: str = "fixed"
    #: Axes of the state whose bounds are provisional.
    unbounded: tuple[int, ...] = ()
    #: Which episodes end, from points (n, d) and next states (n, m); None when none does.
    termination: Callable[..., Any] | None = None
    #: What holds every mean reward, where a user knows it.
    reward_bounds: tuple[float, float] | None = None

    @classmethod
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
    ) -> "Problem":
        """A system of which no more is known than where it lives.

        Kernels and noise are fitted to the data. A grid plans up to two coordinates of the state,
        MPC more. Reward functions, kernels and noise that are known are settings of the agent.

        Args:
            states: The state space.
            actions: The action space.
            horizon: H.
            name: What the problem is called in tables and files.
            step: How far a state moves in a period, as a share of each axis.
            noise: Standard deviation of the noise, as a share of what it is noise of.
            lengthscale: Of kernels that are not fitted, as a share of each axis times √d.
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
        ).with_fitted_kernels(step=step)

    @classmethod
    def of_mdp(
        cls,
        mdp: MDP,
        *,
        name: str,
        reward_kernel: Kernel,
        transition_kernel: OutputKernel,
        **fields: Any,
    ) -> "Problem":
        """What an agent is told of a known MDP: its spaces, noise, L and termination.

        Args:
            mdp: The MDP.
            name: What the problem is called in tables and files.
            reward_kernel: Of the mean reward, on points z = (s, a).
            transition_kernel: Of the scaled residuals.
            **fields: Other fields of the problem; the offset is "identity" unless given.
        """
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
            lipschitz=float(mdp.lipschitz),
            termination=mdp.termination,
            **{"offset": "identity"} | fields,
        )

    def __post_init__(self) -> None:
        choice("offset", self.offset, ("zero", "identity", "uniform"))
        if not self.scale:
            object.__setattr__(self, "scale", (1.0,) * self.mean_dimension)
        for argument, given, size in (
            ("scale", self.scale, self.mean_dimension),
            ("state_points", self.state_points, self.states.dimension),
            ("action_points", self.action_points, self.actions.dimension),
        ):
            if given is not None and len(given) != size:
                raise ShapeError(argument, f"{size} numbers", given)
        if self.transition_kernel.outputs != self.mean_dimension:
            what = "state" if self.transition_noise.categorical else "coordinate"
            raise ArgumentError(
                "transition_kernel",
                f"{self.mean_dimension} outputs, one for each {what}",
                self.transition_kernel.outputs,
            )

    def with_fitted_kernels(self, *, step: float = 0.1) -> "Problem":
        """The problem with kernels to be fitted: increments in units of ``step`` of each axis."""
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
        """Coordinates of a mean next state: m, or the number of states of a table."""
        return self.transition_noise.mean_dimension(self.states)

    @functools.cached_property
    def points(self) -> ProductDomain:
        """Where z = (s, a) lives."""
        return join(state=self.states, action=self.actions)

    @functools.cached_property
    def residual_noise(self) -> np.ndarray:
        """Standard deviation of the scaled residuals along each axis, at least the floor."""
        sizes = self.transition_noise.standard_deviations(self.mean_dimension)
        return np.maximum(sizes / np.array(self.scale), self.noise_floors[1])

    @functools.cached_property
    def noise_variances(self) -> tuple[float, float]:
        """Variances to regress with: of rewards, and of scaled residuals (the largest axis)."""
        reward = float(self.reward_noise.standard_deviations(1)[0])
        return max(reward, self.noise_floors[0]) ** 2, float(self.residual_noise.max()) ** 2

    @functools.cached_property
    def reward_range(self) -> tuple[float, float]:
        """What holds every mean reward: as given, or ±B_R √κ (math B2) where B_R is known."""
        if self.reward is None and self.reward_bounds is not None:
            return self.reward_bounds
        # With one period a bound only makes ties of the best actions.
        if self.reward is not None or self.norm_reward is None or self.horizon == 1:
            return -math.inf, math.inf
        bound = self.norm_reward * math.sqrt(self.reward_kernel.variance_bound(self.points))
        return -bound, bound

    @property
    def lipschitz_norms(self) -> tuple[float, float, float, float, float]:
        """B_R, Λ_R, B_P, Λ_P and the slope of the offset in the state (math D6), in state units.

        Raises:
            ArgumentError: If a norm is not known, or outputs are not independent.
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

    def summary(self) -> dict[str, Any]:
        """What a saved agent must agree with to be loaded for this problem."""
        fixed = self.learner == "fixed"
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
        }

    def mdp(self, model: Model) -> MDP:
        """The MDP in which this model is the truth: what a planner gets."""
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
        )


def default_kernel(points: ProductDomain, lengthscale: float) -> Kernel:
    """A squared exponential on every coordinate, periodic on angles, scaled by the domain.

    Args:
        points: Where z = (s, a) lives.
        lengthscale: As a share of each axis times √d.
    """
    low, high = points.bounds
    angles = [points.names[name][i] for name, domain in points.factors for i in domain.periodic]
    lengths = lengthscale * math.sqrt(points.dimension) * np.maximum(high - low, 1e-9)
    straight = [i for i in range(points.dimension) if i not in angles]
    factors: list[Kernel] = [
        Periodic(lengthscale=1.0, period=float(high[i] - low[i])).on([i]) for i in angles
    ]
    if straight:
        factors.append(SquaredExponential(lengthscale=lengths[straight]).on(straight))
    return math.prod(factors[1:], start=factors[0])
