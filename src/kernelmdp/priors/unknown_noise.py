"""Gaussian noise of unknown variance v ~ inverse-gamma(shape, rate): math E, non-conjugate (iv).

In finite rank the functions can be integrated out. With ΦᵀΦ = U diag(λ) Uᵀ and c = UᵀΦᵀy,

    ln p(y | v) = −½ [n ln v + Σ_j ln(1 + λ_j/v) + (yᵀy − Σ_j c_j²/(λ_j + v))/v] + const,

a function of one number: it is tabulated in ln v, first coarsely over sixteen powers of ten, then
finely where the mass is, and v drawn by inverting its integral. Then ξ | v exactly. No chain.
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

#: The table of ln p(v | y): half its width in ln v, places of the coarse and of the fine one, and
#: how far below the top the fine one reaches.
REACH, COARSE, FINE, DEPTH = math.log(1e8), 512, 2048, 60.0


class UnknownNoiseState(Module):
    """What was seen, and the rate of the inverse-gamma prior of each column's variance."""

    statistics: Statistics
    shape: Float[Array, ""]
    rates: Float[Array, " p"]


@dataclasses.dataclass(frozen=True)
class UnknownNoise(Prior):
    """A Gaussian process prior and Gaussian noise whose variance is learned, for each output.

    v ~ inverse-gamma(shape, shape·guess²), so that E[1/v] = 1/guess²; ``guess`` is the standard
    deviation of the problem's noise law unless given. Plans still use the problem's law.

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
        self, columns: WeightColumns, setting: PriorProblem, place: str, *, key: Key
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
        seen = learned.statistics.after(features, targets)
        return UnknownNoiseState(seen, learned.shape, learned.rates), EXACT

    def weights(self, learned: Any, *, key: Key) -> Float[Array, "r p"]:
        return draw_weights(learned, key)[0]

    def expected(self, learned: Any) -> Float[Array, "r p"]:
        return _expected(learned)


def log_posterior(
    logs: Float[Array, " k"], spectrum: Spectrum, seen: Statistics, shape: Array, rates: Array
) -> Float[Array, "k p"]:
    """The log-density of ln v at k places for each column, up to a constant."""
    v = jnp.exp(logs)[:, None, None]
    total = spectrum.values[None, :, None] + v
    spread = jnp.sum(jnp.log(total / v), axis=1)
    explained = jnp.sum(spectrum.products[None] ** 2 / total, axis=1)
    left = jnp.maximum(seen.squares[None, :] - explained, 0.0)
    log_v = logs[:, None]
    likelihood = -0.5 * (seen.count * log_v + spread + left * jnp.exp(-log_v))
    return likelihood - shape * log_v - rates[None, :] * jnp.exp(-log_v)


@jit
def draw_weights(
    learned: UnknownNoiseState, key: Key
) -> tuple[Float[Array, "r p"], Float[Array, " p"]]:
    """Weights and noise variances from the posterior."""
    seen, spectrum = learned.statistics, learned.statistics.spectrum()
    variance_key, weight_key = jax.random.split(key)

    def one(products: Array, squares: Array, rate: Array, key: Array) -> Array:
        own = Spectrum(spectrum.values, spectrum.vectors, products[:, None])
        part = Statistics(seen.gram, products[:, None], squares[None], seen.count)

        def density(logs: Array) -> Array:
            return log_posterior(logs, own, part, learned.shape, rate[None])[:, 0]

        return jnp.exp(draw_tabulated(density, jnp.log(rate / learned.shape), key=key))

    keys = jax.random.split(variance_key, learned.rates.shape[0])
    variances = jax.vmap(one, in_axes=(1, 0, 0, 0))(
        spectrum.products, seen.squares, learned.rates, keys
    )
    mean, spread = spectrum.moments(variances)
    noise = jax.random.normal(weight_key, mean.shape, mean.dtype)
    return spectrum.vectors @ (mean + spread * noise), variances


def draw_tabulated(log_density: Any, centre: Float[Array, ""], *, key: Key) -> Float[Array, ""]:
    """A number with this log-density, which takes an array of places, within REACH of the centre.

    The density is linear between the places of the fine table, and so inverted exactly.
    """
    coarse = centre + jnp.linspace(-REACH, REACH, COARSE)
    heights = log_density(coarse)
    gap = coarse[1] - coarse[0]
    inside = heights > jnp.max(heights) - DEPTH
    low = jnp.min(jnp.where(inside, coarse, jnp.inf)) - gap
    high = jnp.max(jnp.where(inside, coarse, -jnp.inf)) + gap
    places = low + (high - low) * jnp.linspace(0.0, 1.0, FINE)
    heights = log_density(places)
    density = jnp.exp(heights - jnp.max(heights))
    areas = 0.5 * (density[1:] + density[:-1])
    ends = jnp.cumsum(areas)
    wanted = jax.random.uniform(key, (), ends.dtype) * ends[-1]
    cell = jnp.minimum(jnp.searchsorted(ends, wanted), FINE - 2)
    left = wanted - (ends[cell] - areas[cell])
    a, b = density[cell], density[cell + 1]
    # left = a x + (b − a) x²/2 for the share x of the cell.
    root = jnp.sqrt(jnp.maximum(a**2 + 2 * (b - a) * left, 0.0))
    share = jnp.clip(2 * left / jnp.maximum(a + root, jnp.finfo(ends.dtype).tiny), 0.0, 1.0)
    return places[cell] + share * (places[1] - places[0])


@jit
def _expected(learned: UnknownNoiseState) -> Array:
    """The mean given the most likely variances."""
    seen, spectrum = learned.statistics, learned.statistics.spectrum()
    centre = jnp.log(jnp.mean(learned.rates) / learned.shape)
    logs = centre + jnp.linspace(-REACH, REACH, FINE)
    heights = log_posterior(logs, spectrum, seen, learned.shape, learned.rates)
    mean, _ = spectrum.moments(jnp.exp(logs[jnp.argmax(heights, axis=0)]))
    return spectrum.vectors @ mean
