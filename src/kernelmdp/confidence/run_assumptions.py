"""Assumptions about confidence sets, posteriors, the system and the data."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from kernelmdp.confidence.theorem import Assumption, Evidence
from kernelmdp.domains import Domain
from kernelmdp.mdp import Episode, Gaussian

#: Points at which a known reward is compared with that of the system. Functions that differ do so
#: on regions, and a hundred spread points hit them.
COMPARED_POINTS = 128
#: Relative differences below this are rounding.
ROUNDING = 1e-9


# Predicates about the settings of confidence sets.


def _beta_scaled(e: Evidence) -> Iterator[str]:
    if e.confidence.scale < 1:
        yield f"beta is scaled by {e.confidence.scale:g}"


def _delta_not_shared(e: Evidence) -> Iterator[str]:
    if not e.confidence.split:
        yield "delta is not shared between the sets"


def _norms_unknown(e: Evidence) -> Iterator[str]:
    for (role, _), norm in zip(e.learned, e.confidence.norms[-len(e.learned) :], strict=True):
        if getattr(e.confidence, f"norm_{role}") is None:
            yield f"norm_{role} is unknown ({norm:g} assumed)"


def _regulariser_not_noise(e: Evidence) -> Iterator[str]:
    if e.confidence.regulariser not in ("noise", 1):
        yield "the regulariser is not the noise variance"


# Predicates about posteriors and noise.


def _noise_estimated(e: Evidence) -> Iterator[str]:
    for role, noise in e.learned:
        if noise.estimated:
            yield f"the noise of the {role} is estimated"


def _noise_not_divided(e: Evidence) -> Iterator[str]:
    for role, posterior in e.posteriors:
        if not e.confidence.divide and (posterior.regularisers < 1).any():
            yield f"the noise of the {role} is not divided by √λ, and λ is below 1"


def _not_gaussian(e: Evidence) -> Iterator[str]:
    for role, noise in e.learned:
        if not isinstance(noise, Gaussian):
            yield f"the noise of the {role} is not Gaussian"


def _variance_is_not_that_of_the_noise(e: Evidence) -> Iterator[str]:
    laws = dict(e.learned)
    for role, posterior in e.posteriors:
        deviations = laws[role].sub_gaussian_proxies(posterior.outputs)
        if role == "transition":
            assert e.beliefs is not None
            deviations = deviations / np.asarray(e.beliefs.scale, float)
        if not np.allclose(posterior.regularisers, deviations**2, rtol=1e-6, atol=0.0):
            yield f"the {role}'s noise_variance is not that of the noise"


def _error_not_certified(e: Evidence) -> Iterator[str]:
    for role, posterior in e.posteriors:
        if not math.isfinite(posterior.error):
            yield f"the {role} is learned on inducing points, to an error that is not known"
        elif posterior.error > 0 and posterior.error_kind != "certified":
            yield f"the {role}'s kernel is approximate, to {posterior.error:.1e} as measured"


def _posterior_not_exact(e: Evidence) -> Iterator[str]:
    for role, posterior in e.posteriors:
        if not math.isfinite(posterior.error):
            yield f"the {role} is learned on inducing points, to an error that is not known"
        elif posterior.error > 0:
            yield f"the {role}'s kernel is approximate, to {posterior.error:.1e}"


def _not_in_64_bits(e: Evidence) -> Iterator[str]:
    for role, posterior in e.posteriors:
        if posterior.dtype != jnp.float64:
            yield f"the {role} is learned in 32 bits, and rounding is not counted"


# Predicates about the system, the learner and the data.


def _learner_breaks(e: Evidence) -> Iterator[str]:
    yield from e.learner_breaks


def _learns_by_the_step(e: Evidence) -> Iterator[str]:
    if e.update == "step":
        yield "policies change within an episode"


def _forgets(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    if e.problem.forgetting > 0:
        yield "old episodes are forgotten, for a system that changes"


def _not_drawn_from_the_prior(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    if not e.problem.drawn_from_prior:
        yield "the truth is not known to be drawn from the prior"


def _norms_below_the_system(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    assert e.system is not None
    for role, norm in zip(("reward", "transition"), e.confidence.norms, strict=True):
        known = getattr(e.system, f"norm_{role}")
        # Norms of other kernels cannot be compared.
        kernel = f"{role}_kernel"
        same_kernel = getattr(e.problem, kernel) is getattr(e.system, kernel)
        needed = role == "transition" or not e.reward_known
        if needed and same_kernel and known is not None and norm < known * (1 - ROUNDING):
            yield f"norm_{role} = {norm:g} is below that of the system, {known:g}"


def _ball_norms(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    assert e.system is not None
    for role in ("reward", "transition"):
        norm = getattr(e.prior, f"norm_{role}")
        known = getattr(e.problem, f"norm_{role}")
        if norm is None and known is None:
            yield f"the norm of the ball of the {role} is not known"
        elif norm is not None and known is not None and norm < known * (1 - ROUNDING):
            yield f"norm_{role} = {norm:g} is below that of the system, {known:g}"


def _noise_below_the_system(e: Evidence) -> Iterator[str]:
    yield from _noise_contradicts(e, lambda believed, actual: believed < actual, "below")


def _noise_differs_from_the_system(e: Evidence) -> Iterator[str]:
    yield from _noise_contradicts(e, lambda believed, actual: believed != actual, "not")


def _noise_contradicts(e: Evidence, differs: Callable[..., Any], word: str) -> Iterator[str]:
    assert e.problem is not None
    assert e.system is not None
    for role, believed in e.learned:
        actual = getattr(e.system, f"{role}_noise")
        if actual.estimated or believed is actual:
            continue
        if any(math.isfinite(noise.degrees) for noise in (believed, actual)):
            yield f"the noise of the {role} has heavy tails"
            continue
        size = e.problem.mean_dimension if role == "transition" else 1
        ours, theirs = (noise.sub_gaussian_proxies(size) for noise in (believed, actual))
        if (differs(ours, theirs) & ~np.isclose(ours, theirs, rtol=ROUNDING, atol=0.0)).any():
            yield f"the noise of the {role} is {word} that of the system"


def _reward_contradicts_the_system(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    if e.system_reward is None:
        return
    points = jnp.asarray(e.problem.points.spread_points(COMPARED_POINTS))
    actual = np.asarray(e.system_reward(points), float)
    allowance = ROUNDING * (1 + np.abs(actual))
    if e.problem.reward is not None and e.problem.reward is not e.system_reward:
        if (np.abs(np.asarray(e.problem.reward(points)) - actual) > allowance).any():
            yield "the reward function is not that of the system"
    if e.problem.reward_bounds is not None:
        low, high = e.problem.reward_bounds
        if ((actual < low - allowance) | (actual > high + allowance)).any():
            yield "reward_bounds do not contain the rewards of the system"


def _outcomes_clipped(e: Evidence) -> Iterator[str]:
    if e.clipped is not None:
        episode, step = e.clipped
        yield f"the outcome of step {step} of episode {episode} may have been clipped"


#: Assumptions about every run.
OF_ALL_RUNS = (
    Assumption(
        "kernels and noise were chosen before the data",
        "run",
        _learner_breaks,
        ("agent.learner", "agent.kernel", "problem.learner"),
    ),
    Assumption("policies are fixed for an episode", "run", _learns_by_the_step, ("agent.update",)),
    Assumption(
        "the system does not change",
        "run",
        _forgets,
        ("agent.forgetting", "problem.forgetting"),
    ),
    Assumption(
        "known rewards and their bounds agree with the system",
        "run",
        _reward_contradicts_the_system,
        ("agent.reward", "agent.reward_bounds", "problem.reward", "problem.reward_bounds"),
    ),
    Assumption(
        "outcomes are told before they are clipped to the state space (note B13)",
        "run",
        _outcomes_clipped,
        ("problem.states", "problem.unbounded"),
    ),
)
#: Assumptions about β and δ.
OF_BETA = (
    Assumption(
        "beta is not smaller than the theorem's", "settings", _beta_scaled, ("confidence.scale",)
    ),
    Assumption(
        "δ is shared between the sets", "settings", _delta_not_shared, ("confidence.split",)
    ),
)
#: Assumptions about noise and precision, in every setting.
OF_NOISE = (
    Assumption(
        "the noise is known",
        "sets",
        _noise_estimated,
        ("agent.noise", "problem.reward_noise", "problem.transition_noise"),
    ),
    Assumption("posteriors are computed in 64 bits", "sets", _not_in_64_bits),
)
#: Assumptions about means of bounded norm.
OF_NORMS = (
    Assumption(
        "norm bounds are not below the norms of the system",
        "run",
        _norms_below_the_system,
        ("confidence.norm_reward", "confidence.norm_transition"),
    ),
    Assumption(
        "the noise is not below that of the system",
        "run",
        _noise_below_the_system,
        ("agent.noise",),
    ),
    Assumption(
        "norm bounds are known",
        "settings",
        _norms_unknown,
        (
            *("confidence.norm_reward", "confidence.norm_transition"),
            *("confidence.assumed_norms", "problem.assumed_norms"),
            *("problem.norm_reward", "problem.norm_transition"),
            *("agent.reward_kernel", "agent.transition_kernel"),
            *("problem.reward_kernel", "problem.transition_kernel"),
        ),
    ),
    Assumption(
        "noise is divided by √λ, or λ is at least 1",
        "sets",
        _noise_not_divided,
        ("confidence.divide", "confidence.regulariser"),
    ),
    Assumption(
        "posteriors are exact up to a certified error",
        "sets",
        _error_not_certified,
        ("problem.accuracy",),
    ),
)
#: Assumptions about Gaussian noise that is known exactly.
OF_GAUSSIAN_NOISE = (
    Assumption("the noise is Gaussian", "sets", _not_gaussian),
    Assumption(
        "the noise is that of the system", "run", _noise_differs_from_the_system, ("agent.noise",)
    ),
)
#: Assumptions about means that are drawn from Gaussian processes.
OF_DRAWN_MEANS = (
    Assumption(
        "the truth is drawn from the prior",
        "run",
        _not_drawn_from_the_prior,
        ("problem.drawn_from_prior", "agent.reward_kernel", "agent.transition_kernel"),
    ),
)
#: Assumptions about the posteriors of means that are drawn from Gaussian processes.
OF_GP_POSTERIORS = (
    Assumption(
        "the regulariser is the noise variance",
        "settings",
        _regulariser_not_noise,
        ("confidence.regulariser",),
    ),
    Assumption(
        "posteriors have the variance of the noise",
        "sets",
        _variance_is_not_that_of_the_noise,
        ("problem.noise_floors",),
    ),
    Assumption("posteriors are exact", "sets", _posterior_not_exact, ("problem.accuracy",)),
)
#: Assumptions about a prior on norm balls.
OF_NORM_BALLS = (
    Assumption(
        "the norms of the ball are not below those of the system",
        "run",
        _ball_norms,
        ("prior.norm_reward", "prior.norm_transition"),
    ),
)


def first_clipped_step(episode: Episode, states: Domain) -> int | None:
    """Find the first outcome that may have been clipped: one that lies on the border of a box.

    Outcomes before projection lie on a border with probability 0 if there is noise.

    Args:
        episode: The episode.
        states: The state space.

    Returns:
        The step, counted from 1, or None.
    """
    if states.finite:
        return None
    low, high = (np.asarray(bound, float) for bound in states.bounds)
    bounded = np.isfinite(low) & np.isfinite(high)
    bounded[list(states.periodic)] = False
    outcomes = np.asarray(episode.outcomes, float)
    on_border = ((outcomes == low) | (outcomes == high)) & bounded
    rows = np.flatnonzero(on_border.any(axis=1))
    return int(rows[0]) + 1 if len(rows) else None
