"""The regret bound that a theorem gives for a run, as a curve; or the reason why there is none.

The assumptions of the agent's theorem decide whether there is one (``confidence.assumptions``). A
curve holds for all numbers of episodes at once (note B19), or in expectation.
"""

import contextlib
import csv
import dataclasses
import functools
import math
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernelmdp.agents import GPUCRL, PSRL, Agent
from kernelmdp.confidence.assumptions import THEOREM_1, THEOREM_2, THEOREM_3, THEOREM_4
from kernelmdp.confidence.dual_sets import MIXTURES, SECTIONS
from kernelmdp.confidence.noise_assumptions import THEOREM_16, THEOREM_16_BONUS
from kernelmdp.confidence.theorem import Theorem
from kernelmdp.domains import Box
from kernelmdp.errors import ArgumentError, CompilationError
from kernelmdp.experiments.noise_bounds import ball_curve, optimistic_curve, prior_curve
from kernelmdp.experiments.theorem_inputs import (
    REWARD_POINTS,
    compilation_drift,
    lipschitz_of,
    noise_lipschitz,
    prior_suprema_of,
    regularisers_of,
    reward_bound,
    theorem_arguments,
)
from kernelmdp.numerics.checks import integer
from kernelmdp.theory import Bound, gain_bound, theorem1, theorem2, theorem3, theorem4
from kernelmdp.theory.bound import log
from kernelmdp.theory.few_plans import with_few_plans

#: Ratio of neighbouring numbers of episodes at which a curve is computed. A smaller ratio gives a
#: finer curve, and every point takes time.
CURVE_RATIO = 1.5
#: When the bounds of PSRL hold.
IN_EXPECTATION = "in expectation over truths of the prior"


@dataclasses.dataclass(frozen=True)
class RunBound:
    """The regret bound of a run.

    Attributes:
        text: Which theorem gives the bound and when it holds, or why there is none.
        at: A function from the number of episodes to the bound; None if there is none.
        gains: A function from the number of episodes to certified bounds of the information gains
            about reward and transition. The theorem's bound is computed from them.

    >>> import kernelmdp as km
    >>> run_bound(km.Random("riverswim", seed=0)).at is None
    True
    """

    text: str
    at: Callable[[int], Bound] | None = None
    gains: Callable[[int], tuple[float, float]] | None = None

    @property
    def covered(self) -> bool:
        """Whether a theorem gives a bound."""
        return self.at is not None

    def curve(self, episodes: int) -> list[Bound]:
        """Compute the bound after 1, 2, 3, 5, … episodes.

        Bounds grow with the number of episodes. Between two points of the curve, the later one
        holds.

        Args:
            episodes: The last number of episodes.

        Returns:
            The bounds; empty if there are none.
        """
        if self.at is None:
            return []
        numbers, last = [1], integer("episodes", episodes, least=1)
        while numbers[-1] < last:
            numbers.append(min(last, max(numbers[-1] + 1, math.ceil(CURVE_RATIO * numbers[-1]))))
        return [self.at(number) for number in numbers]


def run_bound(agent: Agent) -> RunBound:
    """Find the theorem that applies to an agent and its task. The bound is not computed yet.

    Args:
        agent: The agent.

    Returns:
        The bound, or why there is none.

    >>> import kernelmdp as km
    >>> run_bound(km.GPUCRL("riverswim", confidence="valid", seed=0)).at is not None
    True
    """
    if agent.theorem is None:
        return RunBound("not covered: no theorem is about this agent")
    theorem, coverage = agent.theorem, agent.theorem.coverage(agent.evidence, "regret")
    if not coverage.covered and theorem is THEOREM_1:
        # Gaussian noise can take the place of L. Or it takes less to be covered.
        by_noise = THEOREM_16.coverage(agent.evidence, "regret")
        is_gaussian = agent.problem.transition_noise.gaussian
        if by_noise.covered or (is_gaussian and len(by_noise.reasons) <= len(coverage.reasons)):
            theorem, coverage = THEOREM_16, by_noise
    if not coverage.covered:
        return RunBound(str(coverage))
    try:
        bound = BOUND_RULES[theorem](agent)
    except ArgumentError as error:  # for example, samples of the kernel are too rough
        return RunBound(f"not covered: {error}")
    gains = functools.partial(_gains, agent)
    return dataclasses.replace(_for_kept_plans(agent, bound), gains=gains)


def _for_kept_plans(agent: Agent, bound: RunBound) -> RunBound:
    """Change a bound for an agent that keeps plans (docs/theory.md, Theorem 10)."""
    c, at = agent.evidence.replan_gain, bound.at
    if c is None or at is None:
        return bound
    text = f"{bound.text}; plans are kept until a gain has grown by {c:g} (Theorem 10)"
    return RunBound(text, lambda episodes: with_few_plans(at(episodes), c))


def write_curve(
    bounds: Sequence[Bound],
    path: pathlib.Path,
    gains: Callable[[int], tuple[float, float]] | None = None,
) -> None:
    """Write a curve as CSV, with the maximum information gains if they are known.

    Args:
        bounds: The points of the curve.
        path: The file to write.
        gains: The function ``RunBound.gains``, or None.
    """
    names = ("maximum_gain_reward", "maximum_gain_transition") if gains is not None else ()
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("episode", "bound", "trivial", *names))
        for bound in bounds:
            maximum_gains = gains(bound.episodes) if gains is not None else ()
            writer.writerow((bound.episodes, bound.value, bound.trivial, *maximum_gains))


def _gains(agent: Agent, episodes: int) -> tuple[float, float]:
    """Return closed-form bounds of the gains, which the bound computed already.

    The gain about a known reward is 0.
    """
    problem, steps = agent.problem, episodes * agent.problem.horizon
    # The smallest λ of several outputs gives the largest gain.
    noises = [float(np.min(regulariser)) for regulariser in regularisers_of(agent)]
    kernels: tuple[Any, Any] = (problem.reward_kernel, problem.transition_kernel)
    reward, transition = (
        functools.partial(gain_bound, kernel, domain=problem.points, n=steps, noise_variance=noise)
        for kernel, noise in zip(kernels, noises, strict=True)
    )
    return 0.0 if problem.reward is not None else reward(), transition()


def _rkhs_bound(agent: GPUCRL) -> RunBound:
    """Return the bound of Theorem 1 (bounded norms)."""
    problem = agent.problem
    settings: Any = agent.confidence
    arguments = theorem_arguments(agent) | {"delta": settings.delta, "anytime": True}
    lipschitz = lipschitz_of(agent)
    if settings.shape == "box":
        # An optimistic next state lies within √m ρ of the centre and the truth within ρ, where
        # ρ = β √λ_max. The theorem counts 2ρ.
        lipschitz *= (1 + math.sqrt(problem.mean_dimension)) / 2
    printed = (settings.regulariser, settings.gain, settings.shape) == ("paper", "maximum", "trace")
    version = "paper" if printed and _paper_assumptions_hold(agent) else "improved"
    sharper = THEOREM_16.coverage(agent.evidence, "regret").covered
    if version == "improved" and sharper and not agent.planner.approximate:
        return _noise_bound(agent, lipschitz=lipschitz)
    arguments |= {"lipschitz": lipschitz, "version": version, "reward_bound": reward_bound(agent)}
    if not math.isfinite(arguments["reward_bound"]):
        arguments["reward_bound"] = None  # The theorem then uses B_R√κ with the user's norm.
    if version == "improved":
        regularisers = regularisers_of(agent)
        arguments |= {
            "regulariser_reward": regularisers[0],
            "regulariser_transition": regularisers[1],
            "beta": "paper" if settings.beta == "paper" else "mixture",
        }
    else:
        low, high = problem.states.bounds
        arguments["diameter"] = float(np.linalg.norm((high - low) / np.array(problem.scale)))
    searched = f"sup|R̄| is the largest of {REWARD_POINTS:,} values"
    caveats = [searched] if problem.reward is not None and problem.horizon > 1 else []
    text = "; ".join([f"Theorem 1, {version}, {_holds(agent)}", *caveats])
    return RunBound(text, functools.partial(_theorem1, agent, arguments))


def _noise_bound(
    agent: Agent, *, optimism: str = "search", lipschitz: float | None = None
) -> RunBound:
    """Return the bound of Theorem 16 (bounded norms, Gaussian noise)."""
    problem = agent.problem
    at = optimistic_curve(agent, optimism=optimism, lipschitz=lipschitz)
    searched = f"sup|R̄| is the largest of {REWARD_POINTS:,} values"
    caveats = [searched] if problem.reward is not None and problem.horizon > 1 else []
    return RunBound("; ".join([f"Theorem 16, {_holds(agent)}", *caveats]), at)


def _gp_bound(agent: GPUCRL) -> RunBound:
    """Return the bound of Theorem 3 (draws of a GP)."""
    arguments = theorem_arguments(agent) | {"delta": agent.confidence.delta, "anytime": True}
    arguments |= {"lipschitz": lipschitz_of(agent), "suprema": prior_suprema_of(agent)}
    return RunBound(f"Theorem 3, improved, {_holds(agent)}", _bound_function(theorem3, arguments))


def _theorem1(agent: GPUCRL, arguments: dict[str, Any], episodes: int) -> Bound:
    """Return Theorem 1's bound with the error of compiled kernels."""
    settings: Any = agent.confidence
    dual = settings.beta == "dual"
    problem, norms = agent.problem, agent.confidence.norms
    drift, slack = compilation_drift(agent, episodes)
    bound = theorem1(
        episodes=episodes,
        norm_reward=norms[0],
        norm_transition=norms[1],
        drift_reward=drift[0],
        drift_transition=drift[1],
        mixtures=len(MIXTURES) + len(SECTIONS) if dual else 1,
        **arguments,
    )
    kernel_part = 2 * episodes * problem.horizon * (slack[0] + arguments["lipschitz"] * slack[1])
    return dataclasses.replace(bound, log_parts={**bound.log_parts, "kernel": log(kernel_part)})


def _prior_bound(agent: PSRL) -> RunBound:
    """Return the bound of Theorem 18 (GP prior), or of Theorem 4.

    Theorem 4 is for approximate plans, and for kernels that have no finite rank.
    """
    if not agent.planner.approximate:
        with contextlib.suppress(CompilationError):  # rough kernels have no finite rank
            return RunBound(f"Theorem 18, {IN_EXPECTATION}", prior_curve(agent))
    arguments = theorem_arguments(agent) | {"suprema": prior_suprema_of(agent)}
    text = f"Theorem 4, improved, {IN_EXPECTATION}"
    return RunBound(text, _bound_function(theorem4, arguments))


def _ball_bound(agent: PSRL) -> RunBound:
    """Return the bound of Theorem 17 (prior on a norm ball), or of Theorem 2."""
    problem, prior = agent.problem, agent.evidence.prior
    norm_reward, norm_transition = (
        float(next(norm for norm in pair if norm is not None))
        for pair in (
            (prior.norm_reward, problem.norm_reward),
            (prior.norm_transition, problem.norm_transition),
        )
    )
    if not agent.planner.approximate:
        curve = ball_curve(agent, (norm_reward, norm_transition))
        return RunBound(f"Theorem 17, {IN_EXPECTATION}", curve)
    max_reward = norm_reward * math.sqrt(problem.reward_kernel.variance_bound(problem.points))
    arguments = theorem_arguments(agent) | {
        "norm_reward": norm_reward,
        "norm_transition": norm_transition,
        # Gaussian noise provides L for every truth in the ball (note B8).
        "lipschitz": noise_lipschitz(agent, max_reward),
    }
    text = f"Theorem 2, improved, {IN_EXPECTATION}"
    return RunBound(text, _bound_function(theorem2, arguments))


#: The function that computes the bound of each theorem.
BOUND_RULES: dict[Theorem, Callable[[Any], RunBound]] = {
    THEOREM_1: _rkhs_bound,
    THEOREM_2: _ball_bound,
    THEOREM_3: _gp_bound,
    THEOREM_4: _prior_bound,
    THEOREM_16: _noise_bound,
    THEOREM_16_BONUS: functools.partial(_noise_bound, optimism="bonus"),
}


def _bound_function(
    theorem: Callable[..., Bound], arguments: dict[str, Any]
) -> Callable[[int], Bound]:
    """Return the bound as a function of the number of episodes."""
    return lambda episodes: theorem(episodes=episodes, **arguments)


def _paper_assumptions_hold(agent: GPUCRL) -> bool:
    """Return whether the theorem as printed applies: κ ≤ 1, a learned reward, states in a box."""
    problem = agent.problem
    kernels = (problem.reward_kernel, problem.transition_kernel)
    normal = all(kernel.variance_bound(problem.points) <= 1 + 1e-12 for kernel in kernels)
    return normal and problem.reward is None and isinstance(problem.states, Box)


def _holds(agent: Agent) -> str:
    settings: Any = agent.confidence
    return f"for all T at once with probability {1 - settings.delta:g}"
