"""Settings of agents, shared by Python, the command line and study files."""

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from kernelmdp.agents.system import System, as_system
from kernelmdp.errors import ArgumentError, KernelMDPError
from kernelmdp.kernels import as_kernel, as_output_kernel
from kernelmdp.learners import LearnerLike
from kernelmdp.mdp import Noise, Problem
from kernelmdp.mdp.constraint_parsing import named_coordinates
from kernelmdp.mdp.measured_cost import COST, OfInputs
from kernelmdp.mdp.model import reward_values
from kernelmdp.mdp.noise import as_noise
from kernelmdp.mdp.safe_problem import with_safety
from kernelmdp.numerics.checks import choice, float_array, require_finite
from kernelmdp.planners.risk_budget import RiskBudget
from kernelmdp.registry import import_object, is_reference
from kernelmdp.settings import Settings, setting

#: Number of points at which a known reward function is tried when an agent is made. A few points
#: show a wrong shape or a value that is not finite before any time is spent.
REWARD_PROBES = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class AgentConfig(Settings):
    """Settings that every agent has.

    Attributes:
        part: "agent", the word for these settings in error messages.

    >>> AgentConfig(update="step").update
    'step'
    """

    part: ClassVar[str] = "agent"

    reward: Any = setting(
        "learned",
        "The mean reward: 'learned', 'known' (the environment's function), or your function of "
        "points z = (s, a), shape (n, d), with values (n,).",
    )
    reward_kernel: Any = setting(
        None, "Kernel of the mean reward, or its text. The default is the problem's kernel."
    )
    transition_kernel: Any = setting(
        None,
        "Kernel of the scaled residuals of the transition, or its text. A scalar kernel is used "
        "for every coordinate independently.",
    )
    noise: Any = setting(
        None, "A noise law, or standard deviations of Gaussian noise, for states and rewards."
    )
    confidence: Any = setting(
        None,
        "Confidence sets: 'paper', 'valid', 'practical', 'fitted', your own rule, or changes to "
        "a preset. The default is 'fitted' for fitted kernels, else 'practical'.",
    )
    planner: Any = setting(
        "auto",
        "The planner: 'auto' (chosen for the problem), 'grid', 'bonus', 'paper' (a grid, refined "
        "until its estimated error is √(H/l)), 'mpc', 'riccati', 'arms', 'certified', or yours.",
    )
    learner: Any = setting(
        "auto", "The learner: 'auto' (chosen for the problem), 'fixed', 'fitted', or a learner."
    )
    kernel: Any = setting(
        None,
        "'auto' fits kernels to the data, including kernels that you pass. It is the default for "
        "Gymnasium environments unless you pass kernels.",
    )
    update: str = setting(
        "episode",
        "'episode', as in the paper, or 'step': learn and plan again at every step, which no "
        "theorem covers.",
    )
    first_episode: str | None = setting(
        None,
        "The first episode: 'random' actions, 'smooth' ones that begin small and last, 'prior', a "
        "plan for the prior, or 'fallback', with small changes in trusted states. Where kernels "
        "are fitted once an episode, a fit needs data: the default is then the fallback, or "
        "'random' without one.",
    )
    reward_bounds: Any = setting(
        None,
        "(low, high) between which every mean reward lies, if you know it. Without bounds, an "
        "agent that explores may keep searching for rewards that do not exist.",
    )

    pessimism: float | None = setting(
        None,
        "Standard deviations by which predict lowers learned rewards, so that places without data "
        "do not attract it. The default is 1 where kernels are fitted, else 0: the mean.",
    )

    constraints: Any = setting(
        None,
        "What must stay within limits: a Box of allowed states, text such as 'temperature <= 80', "
        "functions of states, or of states and actions, that must stay at or below 0, or a list. "
        "'known' takes those of the environment.",
    )
    fallback: Any = setting(
        None,
        "A safe controller f(state, period) -> action, alone or as a pair with the set of states "
        "that it does not leave. 'known' takes that of the environment.",
    )
    risk: Any = setting(
        0.05, "The probability of breaking a constraint that is accepted while learning."
    )
    risk_for: Any = setting(
        "learning",
        "What the risk is for: 'learning' (all episodes together), a number of episodes, which "
        "then share it equally, or 'episode' (each one).",
    )
    at_least: float | None = setting(
        None,
        "Share α of the fallback's return v that each episode is expected to earn: v − (1 − α)|v| "
        "or more. Plans that may earn less are played in part, or the fallback is. None asks for "
        "nothing.",
    )

    def __post_init__(self) -> None:
        self.check_safety()
        if self.pessimism is not None and not (
            math.isfinite(self.pessimism) and self.pessimism >= 0
        ):
            raise ArgumentError("pessimism", "a finite number of at least 0", self.pessimism)
        choice("update", self.update, ("episode", "step"))
        if self.first_episode is not None:
            choice("first_episode", self.first_episode, ("random", "smooth", "prior", "fallback"))
        if self.kernel not in (None, "auto"):
            expected = "'auto', or reward_kernel and transition_kernel"
            raise ArgumentError("kernel", expected, self.kernel)

    def check_safety(self) -> None:
        """Check risk, fallback and constraints, as far as they need no problem.

        Raises:
            ArgumentError: If one of them is invalid, or needs another one that is missing.
        """
        RiskBudget(self.risk, self.risk_for)
        needs_fallback = self.first_episode == "fallback" or self.at_least is not None
        if self.fallback is None and needs_fallback:
            raise ArgumentError("fallback", "a controller to fall back to", None)
        if self.at_least is not None:
            if not 0 < self.at_least <= 1:
                raise ArgumentError("at_least", "a share above 0 and at most 1", self.at_least)
            if self.update != "episode":
                raise ArgumentError("update", "'episode' with at_least", repr(self.update))

    @property
    def fits_kernels(self) -> bool:
        """Whether kernels are to be fitted to the data."""
        learner = self.learner.get("name") if isinstance(self.learner, Mapping) else self.learner
        return self.kernel == "auto" or learner == "fitted"

    @property
    def given_kernels(self) -> dict[str, Any]:
        """Kernels that the user passed, by the name of their setting."""
        names = ("reward_kernel", "transition_kernel")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def system_for(self, task: object, **options: int | None) -> System:
        """Make the system of a task. It has a measured cost if a constraint names one.

        Args:
            task: The task.
            **options: Options of ``as_system``.

        Returns:
            The system.
        """
        system = as_system(task, **options)
        limited = named_coordinates(self.constraints) - set(system.problem.coordinates)
        return system.with_cost() if COST in limited else system

    def problem_for(self, system: System) -> Problem:
        """Make the problem that an agent learns: the system's, changed by these settings.

        Args:
            system: The system.

        Returns:
            The problem.
        """
        system = self.system_for(system)
        problem, changes = system.problem, dict[str, Any]()
        if self.fits_kernels:
            problem = problem.with_fitted_kernels()
        elif self.given_kernels:
            system.require_bounds()  # a fixed kernel needs a domain
            changes["learner"] = "fixed"
        if self.reward != "learned" or not system.offline:
            changes["reward"] = as_reward(self.reward, system.known_reward)
        if callable(self.reward):
            if problem.measured:
                changes["reward"] = OfInputs(self.reward, problem.inputs)
            changes["norm_reward"] = None  # the problem's bound is for its own reward
        if self.reward_kernel is not None:
            # Norm bounds belong to the problem's kernel and do not hold for another one.
            changes |= {"norm_reward": None, "assumed_norms": (1.0, 1.0)}
            changes["drawn_from_prior"] = False
            reward_kernel = _import_kernel(self.reward_kernel)
            changes["reward_kernel"] = as_kernel("reward_kernel", reward_kernel)
        if self.transition_kernel is not None:
            changes |= {"norm_transition": None, "assumed_norms": (1.0, 1.0)}
            changes["drawn_from_prior"] = False
            changes["transition_kernel"] = as_output_kernel(
                "transition_kernel", _import_kernel(self.transition_kernel), problem.mean_dimension
            )
        if self.reward_bounds is not None:
            changes["reward_bounds"] = _as_bounds(self.reward_bounds)
        if self.noise is not None:
            changes["reward_noise"] = changes["transition_noise"] = _as_noise_law(self.noise)
        problem = dataclasses.replace(problem, **changes)
        problem = with_safety(problem, self.constraints, self.fallback)
        if problem.reward is not None:
            points = jnp.asarray(problem.points.spread_points(REWARD_PROBES))
            require_finite("reward", reward_values(problem.reward, points))
        return problem

    def learner_for(self, problem: Problem) -> LearnerLike:
        """Choose the learner. Kernels that are passed and fitted become settings of it.

        Args:
            problem: The problem, with kernels as objects.

        Returns:
            A learner, its name, or its name with settings.
        """
        if not (self.fits_kernels and self.given_kernels):
            return "fitted" if self.fits_kernels and self.learner == "auto" else self.learner
        changes = dict(self.learner) if isinstance(self.learner, Mapping) else {}
        fitted = {name: getattr(problem, name) for name in self.given_kernels}
        return {"name": "fitted"} | fitted | changes


def as_reward(reward: object, truth: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Convert the setting ``reward`` to a function.

    Args:
        reward: "learned", "known" or a function.
        truth: The environment's mean reward, if it is known.

    Returns:
        None for "learned", the environment's function for "known", or the user's function.

    Raises:
        ArgumentError: If it is none of these, or "known" where the reward is not known.
    """
    if callable(reward):
        return reward
    if reward == "learned":
        return None
    if reward == "known" and truth is not None:
        return truth
    raise ArgumentError(
        "reward", "'learned', a function of points (n, d), or 'known' where it is", repr(reward)
    )


def _import_kernel(kernel: object) -> Any:
    """Import a kernel given as ``module:Name``; return any other kernel or text unchanged."""
    if not (isinstance(kernel, str) and is_reference(kernel)):
        return kernel
    target: Any = import_object(kernel, "kernel")
    return target() if isinstance(target, type) else target


def _as_bounds(reward_bounds: object) -> tuple[float, float]:
    bounds = np.asarray(float_array(reward_bounds, "reward_bounds"))
    if bounds.shape != (2,) or not bounds[0] < bounds[1]:
        raise ArgumentError("reward_bounds", "two numbers, the lower one first", reward_bounds)
    return float(bounds[0]), float(bounds[1])


def _as_noise_law(noise: object) -> Noise:
    try:
        return as_noise(noise)
    except KernelMDPError:
        raise
    except (TypeError, ValueError):
        raise ArgumentError("noise", "a noise law or a standard deviation", repr(noise)) from None


def signature_with(function: Callable[..., Any], config: type[AgentConfig]) -> inspect.Signature:
    """Make the signature of a constructor, with the settings in place of ``**settings``.

    Args:
        function: The constructor. Its last parameter collects the settings.
        config: The class of the settings.

    Returns:
        The signature, without ``self``.
    """
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = list(inspect.signature(function).parameters.values())[1:-1]
    fields = [
        inspect.Parameter(name, kind, default=getattr(config, name)) for name in config.meanings()
    ]
    return inspect.Signature([*parameters, *fields])
