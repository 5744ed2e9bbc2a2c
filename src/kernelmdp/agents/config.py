"""Settings of agents, shared by Python, the command line and study files."""

import dataclasses
import inspect
import math
import numbers
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax.numpy as jnp

from kernelmdp.agents.given_settings import as_bounds, as_noise_law, as_reward, imported
from kernelmdp.agents.kernel_note import note_fixed_kernel
from kernelmdp.agents.system import System, as_system
from kernelmdp.errors import ArgumentError
from kernelmdp.kernels import as_kernel, as_output_kernel
from kernelmdp.learners import LearnerLike
from kernelmdp.mdp import Problem
from kernelmdp.mdp.constraint_parsing import named_coordinates
from kernelmdp.mdp.measured_cost import COST, OfInputs
from kernelmdp.mdp.memory import Memory
from kernelmdp.mdp.model import reward_values
from kernelmdp.mdp.prior_motion import with_known_motion
from kernelmdp.mdp.safe_problem import with_safety
from kernelmdp.mdp.schedules import needs_clock
from kernelmdp.numerics.checks import choice, integer, require_finite, with_suggestion
from kernelmdp.planners.risk_budget import RiskBudget
from kernelmdp.settings import Settings, setting

#: Number of points at which a known reward function is tried when an agent is made. A few points
#: show a wrong shape or a value that is not finite before any time is spent.
REWARD_PROBES = 4
#: Settings that may be functions. The command line and files name them: ``module:function``.
FUNCTIONS = ("reward", "fallback", "constraints", "prior_model")


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
        "Confidence sets: 'paper', 'valid', 'dual', 'adaptive', 'likelihood', 'practical', "
        "'fitted', your own rule, or changes to a preset. The default is 'fitted' for fitted "
        "kernels, else 'practical'.",
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

    history: int = setting(
        1,
        "Number of last observations that the state tells, with the actions between them. 2 if "
        "velocities are not measured, more if observations are noisy.",
    )
    delay: int = setting(0, "Number of periods after which an action takes effect.")
    known: Any = setting(
        None,
        "Coordinates whose motion you know, by name: a function of (state, action) with the next "
        "value, or a schedule of values at the times 0 to H, which plans see ahead.",
    )
    prior_model: Any = setting(
        None,
        "A rough model of the motion: a function of (state, action) with the next state, or with "
        "a mapping from names to next values; or matrices (A, B). What it misses is learned.",
    )
    prior_error: float = setting(
        0.1,
        "How wrong the rough model may be where nothing was observed, as a share of the change of "
        "the state. A tenth is less than a rough model misses; the data raise it where they must.",
    )
    forgetting: float = setting(
        0.0,
        "For a plant that changes: the share of its weight that an episode loses with each later "
        "one (below 1), or the number of last episodes whose motion is learned from (1 or more). "
        "0 forgets nothing. Rewards are not forgotten.",
    )

    pessimism: float | None = setting(
        None,
        "Standard deviations by which predict lowers learned rewards, so that places without data "
        "do not attract it. The default is 1 where kernels are fitted and for the agent Frugal. "
        "Otherwise it is 0, the mean, and so it is with Riccati plans: rewards must be quadratic.",
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
        for name in FUNCTIONS:
            object.__setattr__(self, name, imported(getattr(self, name), name))
        self.check_safety()
        if self.pessimism is not None and not (
            math.isfinite(self.pessimism) and self.pessimism >= 0
        ):
            raise ArgumentError("pessimism", "a finite number of at least 0", self.pessimism)
        choice("update", self.update, ("episode", "step"))
        integer("history", self.history, least=1)
        integer("delay", self.delay, least=0)
        for name in ("prior_error", "forgetting"):
            value = getattr(self, name)
            is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
            if not (is_number and math.isfinite(value) and value >= 0):
                raise ArgumentError(name, "a finite number of at least 0", repr(value))
        if self.forgetting >= 1 and self.forgetting != int(self.forgetting):
            expected = "a share below 1, or a whole number of episodes"
            raise ArgumentError("forgetting", expected, self.forgetting)
        if self.known is not None and not isinstance(self.known, Mapping):
            expected = "functions or schedules by the name of their coordinate"
            raise ArgumentError("known", expected, repr(self.known))
        if self.first_episode is not None:
            choice("first_episode", self.first_episode, ("random", "smooth", "prior", "fallback"))
        if self.kernel not in (None, "auto"):
            expected = "'auto', or reward_kernel and transition_kernel"
            raise ArgumentError("kernel", expected, with_suggestion(self.kernel, ("auto",)))

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

    def system_for(self, task: object, **options: Any) -> System:
        """Make the system of a task. It has a measured cost if a constraint names one.

        Args:
            task: The task.
            **options: Options of ``as_system``.

        Returns:
            The system.
        """
        system = as_system(task, **options)
        limited = named_coordinates(self.constraints) - set(system.problem.coordinates)
        system = system.with_cost() if COST in limited else system
        clock = needs_clock(self.known)
        problem = system.problem
        if problem.memory is not None or not (self.history > 1 or self.delay or clock):
            return system
        spaces = problem.states, problem.actions, problem.horizon
        return system.with_memory(Memory(*spaces, self.history, self.delay, clock))

    def update_for(self, problem: Problem) -> str:
        """Return when the agent learns.

        Args:
            problem: The problem.

        Returns:
            The setting ``update``.

        Raises:
            ArgumentError: If an agent learns at every step whose states tell the past.
        """
        by_episode = problem.memory is not None or problem.forgetting > 0
        if self.update == "step" and by_episode:
            expected = "'episode' with history, delay, a schedule or forgetting"
            raise ArgumentError("update", expected, repr(self.update))
        return self.update

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
            if problem.learner == "fitted" and self.reward == "learned":
                note_fixed_kernel(self.given_kernels)
        if self.reward != "learned" or not system.offline:
            changes["reward"] = as_reward(self.reward, system.known_reward)
        if callable(self.reward):
            if problem.measured:
                changes["reward"] = OfInputs(self.reward, problem.inputs)
            elif problem.memory is not None:
                changes["reward"] = OfInputs(self.reward, problem.memory.seen)
            changes["norm_reward"] = None  # the problem's bound is for its own reward
        if self.reward_kernel is not None:
            # Norm bounds belong to the problem's kernel and do not hold for another one.
            changes |= {"norm_reward": None, "assumed_norms": (1.0, 1.0)}
            changes["drawn_from_prior"] = False
            reward_kernel = imported(self.reward_kernel, "kernel")
            changes["reward_kernel"] = as_kernel("reward_kernel", reward_kernel)
        if self.transition_kernel is not None:
            changes |= {"norm_transition": None, "assumed_norms": (1.0, 1.0)}
            changes["drawn_from_prior"] = False
            changes["transition_kernel"] = as_output_kernel(
                "transition_kernel",
                imported(self.transition_kernel, "kernel"),
                problem.mean_dimension,
            )
        if self.reward_bounds is not None:
            changes["reward_bounds"] = as_bounds(self.reward_bounds)
        if self.noise is not None:
            changes["reward_noise"] = changes["transition_noise"] = as_noise_law(self.noise)
        problem = dataclasses.replace(problem, **changes)
        problem = with_known_motion(
            dataclasses.replace(problem, forgetting=float(self.forgetting)),
            known=self.known,
            prior_model=self.prior_model,
            prior_error=self.prior_error,
        )
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
