"""Widths of the members of a family of kernels, and which of them data contradict (Theorem 11).

With probability 1 − δ/share, |f − y|² ≤ R_j² at once for all laws j of Gaussian functions, whatever
f is. A function with ‖f‖ ≤ B in the RKHS of kernel i then satisfies, for every regulariser α,

    |f(z) − μ_iα(z)| ≤ r(α) σ_iα(z)/√α,    r(α)² = α B² + min_j R_j² − α yᵀ(K_i + α)⁻¹y.

If some r(α)² is negative, there is no such function: the data contradict the member (i, B).
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from kernelmdp.confidence.beta import Number
from kernelmdp.confidence.dual_sets import MIXTURES, MULTIPLIERS, SECTIONS
from kernelmdp.gp.regularisation import DataSpectrum
from kernelmdp.numerics.modules import jit

#: Share of |y|² that is added to every r(α)², for the rounding of its terms.
ROUNDING = 1e-9


class FamilyBetas(NamedTuple):
    """β of each member and regulariser, and which members survive.

    Attributes:
        betas: β such that |f − μ_α| ≤ β σ_α, for members and ``MULTIPLIERS``.
        survives: Whether the data do not contradict a member.
        squares: The least of r(α)² over α, negative for members that data contradict.
    """

    betas: Float[Array, "n k"]
    survives: Bool[Array, " n"]
    squares: Float[Array, " n"]


class _Law(NamedTuple):
    """A law of Gaussian functions, given the data.

    Attributes:
        kernel: The number of the kernel with which the law was made.
        weights: The coordinates of the posterior mean.
        fit: |y|² less the term with y in R².
        price: The information gain.
    """

    kernel: int
    weights: Float[Array, "r p"]
    fit: Float[Array, ""]
    price: Float[Array, ""]


@jit
def family_betas(
    spectra: tuple[DataSpectrum, ...],
    *,
    kernels: tuple[int, ...],
    norm_bounds: tuple[float, ...],
    missed: Float[Array, " k"],
    squared_length: Number,
    variance_proxy: Number,
    log_odds: Number,
) -> FamilyBetas:
    """Compute β for every member of a family, and which members data contradict.

    Args:
        spectra: The data as each kernel sees them, in units of the posteriors' λ.
        kernels: The number of the kernel of each member.
        norm_bounds: B of each member.
        missed: N e_i/λ, where e_i bounds the error of the compiled kernel i.
        squared_length: |y|²/λ.
        variance_proxy: ν = σ²/λ, the sub-Gaussian variance proxy in units of λ.
        log_odds: ln(share/δ).

    Returns:
        The numbers.
    """
    laws = [
        law
        for i, spectrum in enumerate(spectra)
        if i in kernels  # the shorter of two families is repeated at its end
        for law in _laws(
            i, spectrum, [b for k, b in zip(kernels, norm_bounds, strict=True) if k == i],
            variance_proxy,
        )
    ]  # fmt: skip
    length = jnp.asarray(squared_length, float)
    prices = jnp.stack([law.price for law in laws])
    noise = 2 * variance_proxy * (prices + log_odds + math.log(len(laws)))
    excess = noise - jnp.stack([law.fit for law in laws])  # R_j² − |y|²
    betas, least = [], []
    for kernel, norm in zip(kernels, norm_bounds, strict=True):
        spectrum, shift = spectra[kernel], norm * jnp.sqrt(missed[kernel])
        squares = []
        for a in MULTIPLIERS:
            weights = spectrum.weights(a)
            fit = jnp.sum(spectrum.coefficients * weights)
            residual = jnp.sqrt(jnp.maximum(length - fit, 0.0))
            # What the compiled kernel misses changes r² by at most the allowance.
            allowances = [
                2 * shift * _distance(spectrum, weights - law.weights) + shift**2
                if law.kernel == kernel
                else 2 * shift * residual
                for law in laws
            ]
            candidates = a * norm**2 + fit + excess + jnp.stack(allowances)
            # Without noise some laws have no numbers. The price of choosing is paid.
            finite = jnp.where(jnp.isfinite(candidates), candidates, jnp.inf)
            squares.append(jnp.min(finite) + ROUNDING * length)
        stacked = jnp.stack(squares)
        radii = jnp.sqrt(jnp.maximum(stacked, 0.0)) + shift
        betas.append(radii / jnp.sqrt(jnp.asarray(MULTIPLIERS)))
        least.append(jnp.min(stacked))
    return FamilyBetas(jnp.stack(betas), jnp.stack(least) >= 0, jnp.stack(least))


def _laws(kernel: int, spectrum: DataSpectrum, norms: list[float], noise: Number) -> list[_Law]:
    """The laws of Proposition 8 for one kernel, with sections of the size of each member."""
    pairs = [(spectrum.weights(c), spectrum.gain(c)) for c in MIXTURES]
    if spectrum.sections is not None:
        outputs = spectrum.coefficients.shape[1]
        unit = 1 / (outputs * jnp.sum(spectrum.sections**2))
        sizes = sorted({norm**2 for norm in norms} | {SECTIONS[-1] * min(norms) ** 2})
        pairs += [spectrum.section_prior(size * unit, noise) for size in sizes]
    return [
        _Law(kernel, weights, jnp.sum(spectrum.coefficients * weights), gain)
        for weights, gain in pairs
    ]


def _distance(spectrum: DataSpectrum, change: Array) -> Array:
    """How far apart two functions are on the data, from the difference of their coordinates."""
    return jnp.sqrt(jnp.sum(spectrum.information[:, None] * change**2))
