"""Widths of the members of a family of kernels, and which of them data contradict (Theorem 11).

With probability 1 − δ/share, |f − y|² ≤ R_j² at once for all laws j of Gaussian functions, whatever
f is. A function with ‖f‖ ≤ B_i in the RKHS of member i then satisfies, for every regulariser α,

    |f(z) − μ_iα(z)| ≤ r_i(α) σ_iα(z)/√α,    r_i(α)² = α B_i² + min_j R_j² − α yᵀ(K_i + α)⁻¹y.

If some r_i(α)² is negative, there is no such function: the data contradict the member.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from kernelmdp.confidence.beta import Number
from kernelmdp.confidence.dual_sets import MIXTURES, MULTIPLIERS, SECTIONS
from kernelmdp.gp.regularisation import DataSpectrum
from kernelmdp.numerics.modules import jit

#: Share of |y|² that is added to every r_i(α)², for the rounding of its terms.
ROUNDING = 1e-9


class FamilyBetas(NamedTuple):
    """β of each member and regulariser, and which members survive.

    Attributes:
        betas: β such that |f − μ_iα| ≤ β σ_iα, for members i and ``MULTIPLIERS``.
        survives: Whether the data do not contradict a member.
        squares: The least of r_i(α)² over α, negative for members that data contradict.
    """

    betas: Float[Array, "n k"]
    survives: Bool[Array, " n"]
    squares: Float[Array, " n"]


class _Law(NamedTuple):
    """A law of Gaussian functions, given the data.

    Attributes:
        member: The member with whose kernel the law was made.
        weights: The coordinates of the posterior mean.
        fit: |y|² less the term with y in R².
        price: The information gain.
    """

    member: int
    weights: Float[Array, "r p"]
    fit: Float[Array, ""]
    price: Float[Array, ""]


@jit
def family_betas(
    spectra: tuple[DataSpectrum, ...],
    *,
    norm_bounds: Float[Array, " n"],
    missed: Float[Array, " n"],
    squared_length: Number,
    variance_proxy: Number,
    log_odds: Number,
) -> FamilyBetas:
    """Compute β for every member of a family, and which members data contradict.

    Args:
        spectra: The data as each member sees them, in units of the posteriors' λ.
        norm_bounds: B_i.
        missed: N e_i/λ, where e_i bounds the error of the compiled kernel i.
        squared_length: |y|²/λ.
        variance_proxy: ν = σ²/λ, the sub-Gaussian variance proxy in units of λ.
        log_odds: ln(share/δ).

    Returns:
        The numbers.
    """
    laws = [law for i, spectrum in enumerate(spectra) for law in _laws(
        i, spectrum, norm_bounds[i], variance_proxy
    )]  # fmt: skip
    length = jnp.asarray(squared_length, float)
    betas, least = [], []
    for i, spectrum in enumerate(spectra):
        shift = norm_bounds[i] * jnp.sqrt(missed[i])
        squares = []
        for a in MULTIPLIERS:
            weights = spectrum.weights(a)
            fit = jnp.sum(spectrum.coefficients * weights)
            residual = jnp.sqrt(jnp.maximum(length - fit, 0.0))
            candidates = []
            for law in laws:
                # What the compiled kernel misses changes the difference by at most the allowance.
                if law.member == i:
                    change = weights - law.weights
                    moved = jnp.sqrt(jnp.sum(spectrum.information[:, None] * change**2))
                    allowance = 2 * shift * moved + shift**2
                else:
                    allowance = 2 * shift * residual
                noise = variance_proxy * 2 * (law.price + log_odds + math.log(len(laws)))
                square = a * norm_bounds[i] ** 2 + fit - law.fit + allowance + noise
                # Without noise some laws have no numbers. The price of choosing is paid.
                candidates.append(jnp.where(jnp.isfinite(square), square, jnp.inf))
            squares.append(jnp.min(jnp.stack(candidates)) + ROUNDING * length)
        radii = jnp.sqrt(jnp.maximum(jnp.stack(squares), 0.0)) + shift
        betas.append(radii / jnp.sqrt(jnp.asarray(MULTIPLIERS)))
        least.append(jnp.min(jnp.stack(squares)))
    return FamilyBetas(jnp.stack(betas), jnp.stack(least) >= 0, jnp.stack(least))


def _laws(member: int, spectrum: DataSpectrum, norm_bound: Array, noise: Number) -> list[_Law]:
    """The laws of Proposition 8 for one kernel."""
    pairs = [(spectrum.weights(c), spectrum.gain(c)) for c in MIXTURES]
    if spectrum.sections is not None:
        outputs = spectrum.coefficients.shape[1]
        largest = norm_bound**2 / (outputs * jnp.sum(spectrum.sections**2))
        pairs += [spectrum.section_prior(share * largest, noise) for share in SECTIONS]
    return [
        _Law(member, weights, jnp.sum(spectrum.coefficients * weights), gain)
        for weights, gain in pairs
    ]
