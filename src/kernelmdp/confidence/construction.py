"""Building the confidence sets of an episode: β, slack and coverage."""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from kernelmdp.confidence import beta as formulas
from kernelmdp.confidence import dual_sets
from kernelmdp.confidence.beliefs import Beliefs
from kernelmdp.confidence.coverage import Coverage
from kernelmdp.confidence.gains import gain_before
from kernelmdp.confidence.likelihood_sets import likelihood_sets
from kernelmdp.confidence.nets import Net, log_count, net
from kernelmdp.confidence.sets import EVERYTHING, ConfidenceSets, Plausible, PlausibleModel
from kernelmdp.confidence.suprema import slope_bound
from kernelmdp.confidence.theorem import Evidence
from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError
from kernelmdp.gp import Posterior
from kernelmdp.gp.output_layouts import DenseLayout
from kernelmdp.gp.regularisation import has_spectrum, with_regularisers
from kernelmdp.mdp import Noise
from kernelmdp.numerics.tracing import array_library, as_float, is_traced

#: β of Theorem 1 by the setting ``Confidence.beta``.
BETAS = {
    "paper": formulas.rkhs_beta,
    "mixture": formulas.mixture_beta,
    "dual": formulas.mixture_beta,
}
#: Coverage of sets within a compiled program.
UNCHECKED = Coverage(None, ("the sets belong to a compiled program",))


class _Width(NamedTuple):
    """β and slack of one set."""

    beta: float
    slack: float


def build(
    confidence: Any,
    beliefs: Beliefs,
    *,
    episode: int,
    horizon: int,
    domain: Domain,
    reward_noise: Noise,
    transition_noise: Noise,
    slope: float | None,
) -> ConfidenceSets:
    """Build the sets of a ``Confidence``.

    Args:
        confidence: The rule.
        beliefs: Posteriors of reward and transition from the episodes before.
        episode: The number of the episode, counted from 1.
        horizon: H.
        domain: Where z = (s, a) lies.
        reward_noise: Noise of rewards.
        transition_noise: Noise of next states, in units of the state.
        slope: A bound of all partial derivatives of the learned functions, for the setting "gp";
            None computes it from the kernels.

    Returns:
        The sets.
    """
    learned: list[tuple[str, Posterior, np.ndarray, float]] = []
    norm_reward, norm_transition = confidence.norms
    posteriors = beliefs.learned
    if "reward" in posteriors:
        deviations = reward_noise.sub_gaussian_proxies(1)
        learned.append(("reward", posteriors["reward"], deviations, norm_reward))
    outputs = beliefs.transition.outputs
    scaled = transition_noise.sub_gaussian_proxies(outputs) / np.asarray(beliefs.scale, dtype=float)
    learned.append(("transition", beliefs.transition, scaled, norm_transition))
    # A known reward needs no set. Its share of δ goes to the others (note B27).
    share = 1.0 + len(learned) if confidence.split else 1.0
    cells: Net | None = None
    if confidence.setting == "rkhs":
        _require_regularisers(confidence, learned, horizon)
        widths = {
            name: _rkhs(confidence, posterior, noise, norm, share, domain, horizon, episode)
            for name, posterior, noise, norm in learned
        }
    else:
        delta = 3 * confidence.delta / share
        widths, cells = _gp(confidence, [row[:2] for row in learned], delta, domain, episode, slope)
    evidence = Evidence(
        confidence=confidence,
        reward_known=beliefs.reward_known,
        beliefs=beliefs,
        reward_noise=reward_noise,
        transition_noise=transition_noise,
    )
    reward, transition = (widths.get(name, _Width(0.0, 0.0)) for name in ("reward", "transition"))
    balls = Plausible(
        beliefs=beliefs,
        beta_reward=_scalar(confidence.scale * reward.beta),
        beta_transition=_scalar(confidence.scale * transition.beta),
        slack_reward=_scalar(reward.slack),
        slack_transition=_scalar(transition.slack),
        net=cells,
        shape=confidence.shape,
        reward_range=EVERYTHING,
        joint=confidence.setting == "rkhs",
    )
    plausible: PlausibleModel = balls
    if confidence.shape == "likelihood":
        plausible = likelihood_sets(
            balls,
            log_odds=_log_odds(share, confidence.delta),
            deviation=reward_noise.sub_gaussian_proxies(1)[0],
            norm=norm_reward,
            transition_noise=transition_noise,
        )
    elif confidence.beta == "dual" and confidence.setting == "rkhs":
        plausible = _intersection(confidence, balls, learned, share)
    # Within a compiled program, assumptions that depend on numbers cannot be checked.
    traced = is_traced(plausible)
    coverage = UNCHECKED if traced else confidence.theorem.coverage(evidence, "sets")
    return ConfidenceSets(plausible, coverage)


def _intersection(
    confidence: Any,
    plausible: Plausible,
    learned: list[tuple[str, Posterior, np.ndarray, float]],
    share: float,
) -> PlausibleModel:
    """Intersect the sets over regularisers, for posteriors that know their spectrum."""
    choices = {}
    for role, posterior, noise, norm in learned:
        if not has_spectrum(posterior):
            continue
        posteriors, spectrum = with_regularisers(posterior, dual_sets.MULTIPLIERS)
        library = array_library(posterior.regularisers)
        regulariser = as_float(library.min(posterior.regularisers))
        missed = 0.0 if confidence.scale < 1 else posterior.count * posterior.error / regulariser
        betas = dual_sets.dual_betas(
            spectrum,
            norm_bound=norm,
            variance_proxy=as_float(library.max(noise)) ** 2 / regulariser,
            log_odds=_log_odds(share, confidence.delta),
            scale=confidence.scale,
            missed=_scalar(missed),  # an array, so that one program serves all episodes
        )
        choices[role] = (posteriors, betas)
    return dual_sets.intersection(plausible, choices) if choices else plausible


def _log_odds(share: float, delta: float) -> Any:
    return as_float(array_library(delta).log(share / delta))


def _scalar(value: Any) -> Any:
    """An array of one number: NumPy's, or a traced one."""
    return array_library(value).asarray(value, float)


def _rkhs(
    confidence: Any,
    posterior: Posterior,
    noise: np.ndarray,
    norm: float,
    share: float,
    domain: Domain,
    horizon: int,
    episode: int,
) -> _Width:
    """β and slack of Theorem 1.

    If every output has its own λ_j, rows divided by √λ_j have λ = 1 and noise σ_j/√λ_j.
    """
    regulariser = posterior.regularisers
    if confidence.gain == "maximum":
        if is_traced(episode):
            raise ArgumentError("gain", "'realised' where episodes are compiled", "'maximum'")
        gain = gain_before(posterior.kernel, domain, regulariser, horizon=horizon, episode=episode)
    else:
        gain = posterior.information_gain
    library = array_library(regulariser)
    proxies = noise / library.sqrt(regulariser) if confidence.divide else noise
    beta = BETAS[confidence.beta](
        norm_bound=norm,
        noise_proxy=as_float(library.max(proxies)),
        regulariser=1.0,
        delta=confidence.delta,
        gain=gain + confidence.margin,
        share=share,
    )
    # The error bounds the diagonal of one output. For all outputs together it is m times larger,
    # unless outputs are independent up to a rotation, as in every layout but the dense one.
    error = posterior.error * (
        posterior.outputs if isinstance(posterior.layout, DenseLayout) else 1
    )
    # With an unknown error, or with a scaled β, the sets are not covered (``assumptions``).
    # They are not widened then.
    if not math.isfinite(error):
        error = 0.0
    scaled_down = confidence.scale < 1
    if error > 0 and (is_traced(scaled_down) or not scaled_down):
        wider = formulas.misspecified_beta(
            beta,
            norm_bound=norm,
            error=error,
            count=posterior.count,
            regulariser=as_float(regulariser.min()),
        )
        beta = jnp.where(scaled_down, beta, wider)
    slack = array_library(scaled_down, norm).where(scaled_down, 0.0, norm * math.sqrt(error))
    return _Width(as_float(beta), as_float(slack))


def _gp(
    confidence: Any,
    learned: list[tuple[str, Posterior]],
    delta: float,
    domain: Domain,
    episode: int,
    slope: float | None,
) -> tuple[dict[str, _Width], Net | None]:
    cells, log_points = None, log_count(domain)
    if not domain.finite:
        if slope is None:
            slope = max(slope_bound(p.kernel, domain, delta=delta) for _, p in learned)
        if not math.isfinite(slope):
            raise ArgumentError(
                "slope",
                "a bound on partial derivatives, for a kernel that is not known to be smooth",
                [str(p.kernel) for _, p in learned],
            )
        cells, log_cells = net(domain, slope=slope, episode=episode)

    def single(outputs: int) -> float:
        if cells is None:
            points = math.exp(log_points)
            return as_float(
                formulas.finite_beta(points=points, episode=episode, delta=delta, outputs=outputs)
            )
        return as_float(
            formulas.gp_beta(log_cells=log_cells, episode=episode, delta=delta, outputs=outputs)
        )

    widths = {}
    for name, posterior in learned:
        m = posterior.outputs
        by_output = name == "reward" or confidence.shape == "trace"
        value = single(m) if by_output else as_float(formulas.joint_beta(single(1), m))
        slack = 0.0 if cells is None else math.sqrt(m) / episode**2
        widths[name] = _Width(value, slack)
    return widths, cells


def _require_regularisers(
    confidence: Any,
    learned: list[tuple[str, Posterior, np.ndarray, float]],
    horizon: int,
) -> None:
    if confidence.regulariser != "paper":
        return
    for name, posterior, _, _ in learned:
        expected = float(horizon * posterior.outputs)
        actual = np.asarray(posterior.noise_variance, dtype=float)
        if not np.allclose(actual, expected, rtol=1e-6):
            message = f"a {name} with noise_variance {expected:g}, as the paper"
            raise ArgumentError("beliefs", message, actual.tolist())
