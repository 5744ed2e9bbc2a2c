"""Gaussian noise of unknown variance v ~ inverse-gamma(shape, rate): note E, non-conjugate (iv).

In finite rank the functions can be integrated out. With ΦᵀΦ = U diag(λ) Uᵀ and c = UᵀΦᵀy,

    ln p(y | v) = −½ [n ln v + Σ_j ln(1 + λ_j/v) + (yᵀy − Σ_j c_j²/(λ_j + v))/v] + const,

a function of one number. It is tabulated in ln v, first coarsely over sixteen powers of ten, then
finely where the mass is. v is drawn by inverting its integral, then ξ | v exactly, without chains.
"""

import dataclasses
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.numerics.checks import positive_number
from kernelmdp.numerics.modules import Module, jit
from kernelmdp.priors.diagnostics import EXACT, Diagnostics
from kernelmdp.priors.prior import Prior, PriorProblem
from kernelmdp.priors.sufficient_statistics import Spectrum, Statistics
from kernelmdp.priors.weight_space import WeightColumns
from kernelmdp.types import Key

#: Half the width of the table of ln p(v | y), in ln v: eight powers of ten to either side.
REACH = math.log(1e8)
#: Number of entries of the coarse table, which only locates the mass.
COARSE = 512
#: Number of entries of the fine table, between which the density is linear.
FINE = 2048
#: The fine table includes all entries whose log-density is within this distance of the maximum.
#: exp(−60) is far below rounding.
DEPTH = 60.0


class UnknownNoiseState(Module):
    """The state of a group: statistics of its data, and the prior of the variances.

    Attributes:
        statistics: Sufficient statistics of the data.
        shape: The shape of the inverse-gamma prior.
        rates: The rate of the inverse-gamma prior of each column.
    """

    statistics: Statistics
    shape: Float[Array, ""]
    rates: Float[Array, " p"]


@dataclasses.dataclass(frozen=True)
class UnknownNoise(Prior):
    """A Gaussian process prior and Gaussian noise whose variance is learned for each output.

    v ~ inverse-gamma(shape, shape·guess²), so E[1/v] = 1/guess². Plans still use the problem's
    noise law.

    Attributes:
        name: "unknown-noise".
        exact: True: draws are exact.
        shape: The shape of the prior; larger values are more certain.
        guess: The standard deviation about which the prior is centred. None means that of the
            problem's noise law.

    >>> UnknownNoise(shape=3.0).name
    'unknown-noise'
    """

    name: ClassVar[str] = "unknown-noise"
    exact: ClassVar[bool] = True

    shape: float = 2.0
    guess: float | None = None

    def __post_init__(self) -> None:
        positive_number("shape", self.shape)
        if self.guess is not None:
            positive_number("guess", self.guess)

    def start(
        self, columns: WeightColumns, problem: PriorProblem, role: str, *, key: Key
    ) -> tuple[Any, Diagnostics]:
        sizes = columns.sizes
        if self.guess is not None:
            sizes = jnp.full_like(sizes, self.guess)
        shape = jnp.asarray(self.shape, sizes.dtype)
        return UnknownNoiseState(Statistics.none(columns), shape, shape * sizes**2), EXACT

    def update(
        self,
        learned: Any,
        features: Float[Array, "h r"],
        targets: Float[Array, "h p"],
        *,
        key: Key,
    ) -> tuple[Any, Diagnostics]:
        statistics = learned.statistics.after(features, targets)
        return UnknownNoiseState(statistics, learned.shape, learned.rates), EXACT

    def weights(self, learned: Any, *, key: Key) -> Float[Array, "r p"]:
        return draw_weights_and_variances(learned, key)[0]

    def expected(self, learned: Any) -> Float[Array, "r p"]:
        return _expected(learned)


def log_posterior(
    logs: Float[Array, " k"], spectrum: Spectrum, statistics: Statistics, shape: Array, rates: Array
) -> Float[Array, "k p"]:
    """Compute the log-density of ln v, up to a constant.

    Args:
        logs: k values of ln v.
        spectrum: The spectrum of the statistics.
        statistics: Sufficient statistics of the data.
        shape: The shape of the inverse-gamma prior.
        rates: The rate of the inverse-gamma prior of each column.

    Returns:
        The log-density for each column, (k, p).
    """
    v = jnp.exp(logs)[:, None, None]
    total = spectrum.values[None, :, None] + v
    log_determinant = jnp.sum(jnp.log(total / v), axis=1)
    explained = jnp.sum(spectrum.products[None] ** 2 / total, axis=1)
    residual = jnp.maximum(statistics.squares[None, :] - explained, 0.0)
    log_v = logs[:, None]
    likelihood = -0.5 * (statistics.count * log_v + log_determinant + residual * jnp.exp(-log_v))
    return likelihood - shape * log_v - rates[None, :] * jnp.exp(-log_v)


@jit
def draw_weights_and_variances(
    learned: UnknownNoiseState, key: Key
) -> tuple[Float[Array, "r p"], Float[Array, " p"]]:
    """Draw weights and noise variances from the posterior.

    Args:
        learned: The state of a group.
        key: Decides the draws.

    Returns:
        Weights (r, p) and noise variances (p,).
    """
    statistics, spectrum = learned.statistics, learned.statistics.spectrum()
    variance_key, weight_key = jax.random.split(key)

    def draw_variance(products: Array, squares: Array, rate: Array, key: Array) -> Array:
        column_spectrum = Spectrum(spectrum.values, spectrum.vectors, products[:, None])
        column = Statistics(statistics.gram, products[:, None], squares[None], statistics.count)

        def density(logs: Array) -> Array:
            return log_posterior(logs, column_spectrum, column, learned.shape, rate[None])[:, 0]

        return jnp.exp(draw_tabulated(density, jnp.log(rate / learned.shape), key=key))

    keys = jax.random.split(variance_key, learned.rates.shape[0])
    variances = jax.vmap(draw_variance, in_axes=(1, 0, 0, 0))(
        spectrum.products, statistics.squares, learned.rates, keys
    )
    mean, deviation = spectrum.moments(variances)
    noise = jax.random.normal(weight_key, mean.shape, mean.dtype)
    return spectrum.vectors @ (mean + deviation * noise), variances


def draw_tabulated(log_density: Any, centre: Float[Array, ""], *, key: Key) -> Float[Array, ""]:
    """Draw a number with a given log-density, within REACH of a centre.

    The density is linear between the entries of the fine table, and its integral is inverted
    exactly.

    Args:
        log_density: A function of an array of numbers.
        centre: The centre of the table.
        key: Decides the draw.

    Returns:
        The number.
    """
    coarse = centre + jnp.linspace(-REACH, REACH, COARSE)
    heights = log_density(coarse)
    spacing = coarse[1] - coarse[0]
    has_mass = heights > jnp.max(heights) - DEPTH
    low = jnp.min(jnp.where(has_mass, coarse, jnp.inf)) - spacing
    high = jnp.max(jnp.where(has_mass, coarse, -jnp.inf)) + spacing
    fine = low + (high - low) * jnp.linspace(0.0, 1.0, FINE)
    heights = log_density(fine)
    density = jnp.exp(heights - jnp.max(heights))
    areas = 0.5 * (density[1:] + density[:-1])
    cumulative = jnp.cumsum(areas)
    target = jax.random.uniform(key, (), cumulative.dtype) * cumulative[-1]
    cell = jnp.minimum(jnp.searchsorted(cumulative, target), FINE - 2)
    area = target - (cumulative[cell] - areas[cell])
    a, b = density[cell], density[cell + 1]
    # area = a x + (b − a) x²/2 for the share x of the cell.
    root = jnp.sqrt(jnp.maximum(a**2 + 2 * (b - a) * area, 0.0))
    tiny = jnp.finfo(cumulative.dtype).tiny
    share = jnp.clip(2 * area / jnp.maximum(a + root, tiny), 0.0, 1.0)
    return fine[cell] + share * (fine[1] - fine[0])


@jit
def _expected(learned: UnknownNoiseState) -> Array:
    """The mean given the most likely variances."""
    statistics, spectrum = learned.statistics, learned.statistics.spectrum()
    centre = jnp.log(jnp.mean(learned.rates) / learned.shape)
    logs = centre + jnp.linspace(-REACH, REACH, FINE)
    heights = log_posterior(logs, spectrum, statistics, learned.shape, learned.rates)
    mean, _ = spectrum.moments(jnp.exp(logs[jnp.argmax(heights, axis=0)]))
    return spectrum.vectors @ mean
