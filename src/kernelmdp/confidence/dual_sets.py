"""Confidence sets that are intersections over regularisers (docs/theory.md, Proposition 8).

With probability 1 − δ/share, ‖f − y‖² ≤ R_c² + 2σ² ln n at once for n mixture scales c, where R_c²
comes from the mixture with prior N(0, c k) (Flynn and Reeb 2024). A function with ‖f‖ ≤ B then
satisfies, for every regulariser α,

    |f(z) − μ_α(z)| ≤ r(α) σ_α(z)/√α,    r(α)² = α B² + min_c R_c² − min_g {‖g − y‖² + α‖g‖²}.

So the truth is in the intersection of all these sets. None of them costs a share of δ.
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.confidence.beliefs import Beliefs
from kernelmdp.confidence.beta import Number
from kernelmdp.confidence.joint_sets import family_of
from kernelmdp.confidence.sets import Plausible, PlausibleModel
from kernelmdp.gp import Posterior
from kernelmdp.gp.regularisation import DataSpectrum
from kernelmdp.mdp import Prediction
from kernelmdp.mdp.model import FunctionFamily
from kernelmdp.numerics.modules import jit, replace_fields

#: Regularisers α as multiples of the posterior's. Smaller steps than a factor of 10 make sets less
#: than 5 % narrower.
MULTIPLIERS = (1.0, 10.0, 100.0, 1000.0)
#: Regularisers σ²/c of the mixtures with prior c k, as multiples. The first is that of Lemma 7.
MIXTURES = (1.0, 10.0)
#: E‖f‖²/B² of the mixtures of sections k(·, u): random functions as smooth as those of the RKHS.
#: Draws of c k are rougher, and their gain is larger.
SECTIONS = (1.0, 0.1)


class _Mixture(NamedTuple):
    """The mean of a mixture given the data, and its information gain."""

    weights: Float[Array, "r p"]
    gain: Float[Array, ""]


@jit
def dual_betas(
    spectrum: DataSpectrum,
    *,
    norm_bound: Number,
    variance_proxy: Number,
    log_odds: Number,
    scale: Number = 1.0,
    missed: Number = 0.0,
) -> tuple[Float[Array, ""], ...]:
    """Compute β for each of ``MULTIPLIERS``, such that |f − μ_α| ≤ β σ_α for all of them.

    Args:
        spectrum: The data, in units of the posterior's λ.
        norm_bound: B.
        variance_proxy: ν = σ²/λ, the sub-Gaussian variance proxy in units of λ.
        log_odds: ln(share/δ).
        scale: The factor of β.
        missed: η²/B², where η² bounds Σ_t r(z_t)²/λ for the part r of f outside a compiled kernel.

    Returns:
        The β.
    """
    mixtures = [_Mixture(spectrum.weights(c), spectrum.gain(c)) for c in MIXTURES]
    if spectrum.sections is not None:
        outputs = spectrum.coefficients.shape[1]
        # E‖f‖² is the trace of the prior covariance, which is that of S Sᵀ times the factor.
        largest = norm_bound**2 / (outputs * jnp.sum(spectrum.sections**2))
        mixtures += [
            _Mixture(*spectrum.section_prior(share * largest, variance_proxy)) for share in SECTIONS
        ]
    shift = norm_bound * jnp.sqrt(jnp.asarray(missed, float))
    betas = []
    for a in MULTIPLIERS:
        weights, squares = spectrum.weights(a), []
        for mixture in mixtures:
            change = weights - mixture.weights
            misfit = jnp.sum(spectrum.coefficients * change)
            # What the compiled kernel misses of the data changes the misfit by at most this much.
            length = jnp.sqrt(jnp.sum(spectrum.information[:, None] * change**2))
            misfit = misfit + 2 * shift * length + shift**2
            noise = variance_proxy * 2 * (mixture.gain + log_odds + math.log(len(mixtures)))
            square = a * norm_bound**2 + misfit + noise
            # Without noise the law of sections has no numbers. The price of choosing is paid, so a
            # mixture may be left out.
            squares.append(jnp.where(jnp.isfinite(square), square, jnp.inf))
        least = jnp.maximum(jnp.min(jnp.stack(squares)), 0.0)
        betas.append(scale * (jnp.sqrt(least) + shift) / math.sqrt(a))
    return tuple(betas)


class Intersection(PlausibleModel):
    """All models that lie in several confidence sets.

    Intervals are intersected. In two dimensions or more the smallest ball is taken, because balls
    with several centres do not intersect in a ball; boxes are intersected.

    Attributes:
        beliefs: The beliefs of the first set.
        beta_reward: β_R of the first set.
        beta_transition: β_P of the first set.
        members: The sets.
    """

    beliefs: Beliefs
    beta_reward: Any
    beta_transition: Any
    members: tuple[Plausible, ...]

    def whole_functions(self) -> FunctionFamily:
        return family_of([(s.beliefs, s.beta_reward, s.beta_transition) for s in self.members])

    def within(self, reward_range: tuple[Any, Any]) -> "Intersection":
        members = tuple(member.within(reward_range) for member in self.members)
        return replace_fields(self, members=members)

    def __call__(self, points: Float[Array, "n d"]) -> Prediction:
        predictions = [member(points) for member in self.members]
        widths = [(p.reward, p.reward_width) for p in predictions]
        reward, reward_width = _intersected(widths)
        first = predictions[0]
        if first.sides is not None or first.state.shape[1] == 1:
            scale = self.beliefs.scale.astype(points.dtype)[None, :]
            sides = [
                (p.state, p.sides if p.radius is None else p.radius[:, None] * scale)
                for p in predictions
            ]
            state, half = _intersected(sides)
            if first.sides is not None:
                return Prediction(reward, state, reward_width, sides=half)
            return Prediction(reward, state, reward_width, radius=half[:, 0] / scale[0, 0])
        radii = jnp.stack([p.radius for p in predictions])
        states = jnp.stack([p.state for p in predictions])
        smallest = jnp.argmin(radii, axis=0)
        rows = jnp.arange(points.shape[0])
        return Prediction(
            reward, states[smallest, rows], reward_width, radius=radii[smallest, rows]
        )


def _intersected(intervals: list[tuple[Any, Any]]) -> tuple[Array, Array]:
    """Centre and half-width of the intersection; a point where there is none."""
    low = jnp.max(jnp.stack([centre - width for centre, width in intervals]), axis=0)
    high = jnp.min(jnp.stack([centre + width for centre, width in intervals]), axis=0)
    return (low + high) / 2, jnp.maximum(high - low, 0.0) / 2


def intersection(
    plausible: Plausible, choices: dict[str, tuple[list[Posterior], Any]]
) -> Intersection:
    """Make the intersection from posteriors and β of each role.

    Args:
        plausible: The set of the posteriors' own regulariser.
        choices: For "reward" and "transition" the posteriors and their β.

    Returns:
        The intersection. A role that is missing keeps its set.
    """
    made = []
    for i in range(len(MULTIPLIERS)):
        changed = {role: posteriors[i] for role, (posteriors, _) in choices.items()}
        betas = {f"beta_{role}": values[i] for role, (_, values) in choices.items()}
        beliefs = replace_fields(plausible.beliefs, **changed)
        made.append(replace_fields(plausible, beliefs=beliefs, **betas))
    first = made[0]
    return Intersection(first.beliefs, first.beta_reward, first.beta_transition, tuple(made))
