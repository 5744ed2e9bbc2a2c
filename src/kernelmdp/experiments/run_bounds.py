"""The bound that a theorem gives for a run: a curve beside its regret, or why there is none.

What an agent does decides, not what it is called: its sets, prior, planner, noise and kernels. A
theorem's curve holds for all numbers of episodes at once (math B19), or in expectation.
"""

import csv
import dataclasses
import functools
import math
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernelmdp.agents import GPUCRL, PSRL, Agent
from kernelmdp.domains import Box
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.theorem_inputs import (
    kernel_errors,
    lipschitz_of,
    noise_lipschitz,
    prior_suprema_of,
    regularisers_of,
    reward_bound,
    theorem_arguments,
)
from kernelmdp.mdp import Gaussian
from kernelmdp.numerics.checks import integer
from kernelmdp.priors import as_prior
from kernelmdp.theory import Bound, gain_bound, theorem1, theorem2, theorem3, theorem4
from kernelmdp.theory.bound import log

#: Ratio of neighbouring numbers of episodes at which a curve is computed.
STEP = 1.5


@dataclasses.dataclass(frozen=True)
class RunBound:
    """What a theorem says of a run, in ``text``; with ``at``, after any number of episodes.

    ``gains`` are certified bounds of the information about reward and transition that so many
    episodes can give, from which the theorem's bound is made.

    >>> import kernelmdp as km
    >>> run_bound(km.Random("riverswim", seed=0)).at is None
    True
    """

    text: str
    at: Callable[[int], Bound] | None = None
    gains: Callable[[int], tuple[float, float]] | None = None

    @property
    def covered(self) -> bool:
        """Whether there is a curve."""
        return self.at is not None

    def curve(self, episodes: int) -> list[Bound]:
        """The bound after ever more episodes, up to these.

        Bounds grow, so between two of them the later one holds.
        """
        if self.at is None:
            return []
        numbers, last = [1], integer("episodes", episodes, least=1)
        while numbers[-1] < last:
            numbers.append(min(last, max(numbers[-1] + 1, math.ceil(STEP * numbers[-1]))))
        return [self.at(number) for number in numbers]


def run_bound(agent: Agent) -> RunBound:
    """Which theorem is about this agent and its task, with its curve; nothing is computed yet.

    >>> import kernelmdp as km
    >>> run_bound(km.GPUCRL("riverswim", confidence="valid", seed=0)).at is not None
    True
    """
    theorem = next((rule for kind, rule in RULES.items() if isinstance(agent, kind)), None)
    if theorem is None:
        return RunBound("not covered: no theorem is about this agent")
    why = _apart(agent)
    try:
        if why is None:
            return dataclasses.replace(theorem(agent), gains=functools.partial(_gains, agent))
    except ArgumentError as error:  # such as a kernel whose draws are too rough
        why = str(error)
    return RunBound(f"not covered: {why}")


def write_curve(
    bounds: Sequence[Bound],
    path: pathlib.Path,
    gains: Callable[[int], tuple[float, float]] | None = None,
) -> None:
    """As CSV, with the maximum gains where they are given."""
    names = ("maximum_gain_reward", "maximum_gain_transition") if gains is not None else ()
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("episode", "bound", "trivial", *names))
        for own in bounds:
            most = gains(own.episodes) if gains is not None else ()
            writer.writerow((own.episodes, own.value, own.trivial, *most))


def _gains(agent: Agent, episodes: int) -> tuple[float, float]:
    """By closed forms, which the bound has computed already; 0 of a reward that is known."""
    problem, steps = agent.problem, episodes * agent.problem.horizon
    # The smallest λ of several outputs: with it the most can be learned.
    noises = [float(np.min(regulariser)) for regulariser in regularisers_of(agent)]
    kernels: tuple[Any, Any] = (problem.reward_kernel, problem.transition_kernel)
    reward, transition = (
        functools.partial(gain_bound, kernel, domain=problem.points, n=steps, noise_variance=noise)
        for kernel, noise in zip(kernels, noises, strict=True)
    )
    return 0.0 if problem.reward is not None else reward(), transition()


def _apart(agent: Agent) -> str | None:
    """What takes any agent out of every theorem."""
    problem = agent.problem
    if agent.broken_assumptions:
        return agent.broken_assumptions[0]
    if agent.first_episode == "random":
        return "the first episode is random"
    if problem.termination is not None:
        return "episodes may end early"
    if not agent.planner.optimal:
        return f"no theorem is about plans of {type(agent.planner).__name__}"
    finite = problem.states.finite and problem.horizon > 1
    if finite and not problem.transition_noise.categorical:
        return "plans in a finite set do not know additive noise"
    return None


def _optimist(agent: GPUCRL) -> RunBound:
    problem = agent.problem
    settings: Any = agent.confidence
    if not agent.coverage.covered:
        return RunBound(str(agent.coverage))
    if settings.scale != 1 or settings.margin > 0 or not settings.divide:
        return RunBound("not covered: beta is larger than the theorem's")
    slope, caveats = lipschitz_of(agent)
    if not math.isfinite(slope):
        return RunBound(f"not covered: L is not known ({problem.lipschitz_rule})")
    words = theorem_arguments(agent) | {"delta": settings.delta, "anytime": True}
    holds = f"for all T at once with probability {1 - settings.delta:g}"
    if settings.setting == "gp":
        if problem.reward is not None:
            return RunBound("not covered: Theorem 3 is about rewards that are learned")
        words |= {"lipschitz": slope, "sizes": prior_suprema_of(agent)}
        at = _values(theorem3, words)
        return RunBound(_text("Theorem 3, improved", holds, caveats), at)
    printed = (settings.regulariser, settings.gain, settings.shape) == ("paper", "maximum", "trace")
    version = "paper" if printed and _printable(agent) else "improved"
    words |= {"lipschitz": slope, "version": version, "reward_bound": reward_bound(agent)}
    if not math.isfinite(words["reward_bound"]):
        words["reward_bound"] = None  # B_R√κ with the norm that the user gave
    if version == "improved":
        regularisers = regularisers_of(agent)
        words |= {"regulariser_reward": regularisers[0], "regulariser_transition": regularisers[1]}
    else:
        low, high = problem.states.bounds
        words["diameter"] = float(np.linalg.norm((high - low) / np.array(problem.scale)))
    text = _text(f"Theorem 1, {version}", holds, caveats)
    return RunBound(text, functools.partial(_theorem1, agent, words))


def _theorem1(agent: GPUCRL, words: dict[str, Any], episodes: int) -> Bound:
    """With what a compiled kernel adds to β and to the widths (``misspecified_beta``).

    As β = B + …, more β is a larger B.
    """
    problem, norms = agent.problem, agent.confidence.norms
    errors = kernel_errors(agent)
    drift = [
        norm * math.sqrt(episodes * problem.horizon * error / noise)
        for norm, error, noise in zip(norms, errors, regularisers_of(agent), strict=True)
    ]
    slack = [norm * math.sqrt(error) for norm, error in zip(norms, errors, strict=True)]
    found = theorem1(
        episodes=episodes,
        norm_reward=norms[0] + drift[0],
        norm_transition=norms[1] + drift[1],
        **words,
    )
    more = 2 * episodes * problem.horizon * (slack[0] + words["lipschitz"] * slack[1])
    return dataclasses.replace(found, log_parts={**found.log_parts, "kernel": log(more)})


def _sampler(agent: PSRL) -> RunBound:
    problem = agent.problem
    noises = {"reward": problem.reward_noise, "transition": problem.transition_noise}
    for role, noise in noises.items():
        if not isinstance(noise, Gaussian) or noise.estimated:
            return RunBound(f"not covered: the noise of the {role} is not Gaussian of known size")
    if agent.config.inflate != 1.0:
        return RunBound("not covered: draws are inflated")
    if problem.reward is not None:
        return RunBound("not covered: the theorems about PSRL are about rewards that are learned")
    words = theorem_arguments(agent)
    prior = as_prior(agent.config.prior)
    if prior is None:
        if (
            problem.name != "gp-prior"
            or agent.config.given_kernels
            or agent.config.noise is not None
        ):
            return RunBound("not covered: the truth is no draw of the prior (Theorem 4 wants that)")
        words["sizes"] = prior_suprema_of(agent)
        text = _text("Theorem 4, improved", "in expectation over truths of the prior", [])
        return RunBound(text, _values(theorem4, words))
    if prior.name != "norm-ball":
        return RunBound(str(agent.coverage))
    given = [getattr(prior, f"norm_{role}") for role in noises]
    known = [problem.norm_reward, problem.norm_transition]
    both = [own if own is not None else typical for own, typical in zip(given, known, strict=True)]
    norms = [float(own) for own in both if own is not None]
    if len(norms) < len(both):
        return RunBound("not covered: the norms of the ball are not known")
    top = norms[0] * math.sqrt(problem.reward_kernel.variance_bound(problem.points))
    words |= {
        "norm_reward": norms[0],
        "norm_transition": norms[1],
        # Gaussian noise provides it for every truth in the ball (math B8).
        "lipschitz": noise_lipschitz(agent, top),
    }
    text = _text("Theorem 2, improved", "in expectation over truths of the prior", [])
    return RunBound(text, _values(theorem2, words))


#: Which rule finds the theorem of an agent.
RULES: dict[type[Agent], Callable[[Any], RunBound]] = {GPUCRL: _optimist, PSRL: _sampler}


def _values(theorem: Callable[..., Bound], words: dict[str, Any]) -> Callable[[int], Bound]:
    return lambda episodes: theorem(episodes=episodes, **words)


def _printable(agent: GPUCRL) -> bool:
    """Whether the printed theorem applies: κ ≤ 1, learned rewards, and states in a box."""
    problem = agent.problem
    kernels = (problem.reward_kernel, problem.transition_kernel)
    normal = all(own.variance_bound(problem.points) <= 1 + 1e-12 for own in kernels)
    return normal and problem.reward is None and isinstance(problem.states, Box)


def _text(theorem: str, holds: str, caveats: Sequence[str]) -> str:
    return "; ".join([f"{theorem}, {holds}", *caveats])
