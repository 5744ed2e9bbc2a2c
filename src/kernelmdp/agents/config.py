"""Settings of agents: written once, used by Python, the command line and study files alike."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from kernelmdp.agents.system import System
from kernelmdp.errors import ArgumentError, KernelMDPError
from kernelmdp.kernels import as_kernel, as_output_kernel
from kernelmdp.learners import LearnerLike
from kernelmdp.mdp import Noise, Problem
from kernelmdp.mdp.model import reward_values
from kernelmdp.mdp.noise import as_noise
from kernelmdp.numerics.checks import choice, float_array, require_finite
from kernelmdp.registry import imported, is_reference
from kernelmdp.settings import Settings, setting

#: Points at which a known reward is tried before anything is planned with it.
REWARD_PROBES = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class AgentConfig(Settings):
    """What every agent can be told.

    >>> AgentConfig(update="step").update
    'step'
    """

    part: ClassVar[str] = "agent"

    reward: Any = setting(
        "learned",
        "'learned', 'known' (the environment's own function), or a function of points z = (s, a), "
        "shape (n, d), with values (n,).",
    )
    reward_kernel: Any = setting(
        None, "Kernel of the mean reward, or its text; the problem's own unless given."
    )
    transition_kernel: Any = setting(
        None,
        "Kernel of the scaled residuals, or its text; a scalar kernel is taken for every "
        "coordinate independently.",
    )
    noise: Any = setting(
        None, "A noise law, or standard deviations of a Gaussian one, for states and rewards."
    )
    confidence: Any = setting(
        None,
        "'paper', 'valid', 'practical', 'fitted', a rule of your own, or changes to a preset; "
        "'practical' unless given, 'fitted' where kernels are fitted.",
    )
    planner: Any = setting(
        "auto",
        "'auto' (what suits the problem), 'grid', 'bonus', 'paper' (a grid, each plan to "
        "ε_l = √(H/l), by estimate), 'mpc', 'riccati', 'arms', 'certified', or a planner.",
    )
    learner: Any = setting(
        "auto", "'auto' (what suits the problem), 'fixed', 'fitted', or a learner."
    )
    kernel: Any = setting(
        None,
        "'auto' fits kernels to the data, those that are given too. It is the default where "
        "nothing is known of a system (Gymnasium's, unless kernels are given).",
    )
    update: str = setting(
        "episode",
        "'episode', as in the paper, or 'step': learn and plan anew at every step, which no "
        "theorem covers.",
    )
    first_episode: str | None = setting(
        None,
        "The first episode: 'random' actions, or the 'prior''s own plan. Random where kernels are "
        "fitted by the episode, since nothing fits before there are data.",
    )
    reward_bounds: Any = setting(
        None,
        "(low, high) that hold every mean reward, where that much is known: without them an agent "
        "that explores may go on hoping for more than there is.",
    )

    def __post_init__(self) -> None:
        choice("update", self.update, ("episode", "step"))
        if self.first_episode is not None:
            choice("first_episode", self.first_episode, ("random", "prior"))
        if self.kernel not in (None, "auto"):
            expected = "'auto', or reward_kernel and transition_kernel"
            raise ArgumentError("kernel", expected, self.kernel)

    @property
    def fits_kernels(self) -> bool:
        """Whether the user asked for kernels fitted to the data."""
        learner = self.learner.get("name") if isinstance(self.learner, Mapping) else self.learner
        return self.kernel == "auto" or learner == "fitted"

    @property
    def given_kernels(self) -> dict[str, Any]:
        """Kernels that the user gave, by name."""
        names = ("reward_kernel", "transition_kernel")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def problem_for(self, system: System) -> Problem:
        """What an agent is told of a system, with the settings of its user put first."""
        problem, changes = system.problem, dict[str, Any]()
        if self.fits_kernels:
            problem = problem.with_fitted_kernels()
        elif self.given_kernels:
            system.require_bounds()  # kernels that are given live on a domain
            changes["learner"] = "fixed"
        if self.reward != "learned" or not system.offline:
            changes["reward"] = as_reward(self.reward, system.known_reward)
        if self.reward_kernel is not None:
            # A norm is that of one kernel and no other.
            changes |= {"norm_reward": None, "assumed_norms": (1.0, 1.0)}
            changes["reward_kernel"] = as_kernel("reward_kernel", _read(self.reward_kernel))
        if self.transition_kernel is not None:
            changes |= {"norm_transition": None, "assumed_norms": (1.0, 1.0)}
            changes["transition_kernel"] = as_output_kernel(
                "transition_kernel", _read(self.transition_kernel), problem.mean_dimension
            )
        if self.reward_bounds is not None:
            changes["reward_bounds"] = _ends(self.reward_bounds)
        if self.noise is not None:
            changes["reward_noise"] = changes["transition_noise"] = _noise(self.noise)
        problem = dataclasses.replace(problem, **changes)
        if problem.reward is not None:
            points = jnp.asarray(problem.points.spread(REWARD_PROBES))
            require_finite("reward", reward_values(problem.reward, points))
        return problem

    def learner_for(self, problem: Problem) -> LearnerLike:
        """The learner that was asked for; kernels that are given and fitted are settings of it."""
        if not (self.fits_kernels and self.given_kernels):
            return "fitted" if self.fits_kernels and self.learner == "auto" else self.learner
        changes = dict(self.learner) if isinstance(self.learner, Mapping) else {}
        fitted = {name: getattr(problem, name) for name in self.given_kernels}
        return {"name": "fitted"} | fitted | changes


def as_reward(given: object, truth: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """None for "learned", the environment's function for "known", or the user's function."""
    if callable(given):
        return given
    if given == "learned":
        return None
    if given == "known" and truth is not None:
        return truth
    raise ArgumentError(
        "reward", "'learned', a function of points (n, d), or 'known' where it is", repr(given)
    )


def _read(given: object) -> Any:
    """A kernel or its text as it is; ``module:Name`` becomes the kernel or one of its class."""
    if not (isinstance(given, str) and is_reference(given)):
        return given
    found: Any = imported(given, "kernel")
    return found() if isinstance(found, type) else found


def _ends(given: object) -> tuple[float, float]:
    ends = np.asarray(float_array(given, "reward_bounds"))
    if ends.shape != (2,) or not ends[0] < ends[1]:
        raise ArgumentError("reward_bounds", "two numbers, the lower one first", given)
    return float(ends[0]), float(ends[1])


def _noise(given: object) -> Noise:
    try:
        return as_noise(given)
    except KernelMDPError:
        raise
    except (TypeError, ValueError):
        raise ArgumentError("noise", "a noise law or a standard deviation", repr(given)) from None


def signature_with(function: Callable[..., Any], config: type[AgentConfig]) -> inspect.Signature:
    """The signature of a constructor with settings in the place of its ``**settings``."""
    kind = inspect.Parameter.KEYWORD_ONLY
    first = list(inspect.signature(function).parameters.values())[1:-1]
    fields = [
        inspect.Parameter(name, kind, default=getattr(config, name)) for name in config.meanings()
    ]
    return inspect.Signature([*first, *fields])
