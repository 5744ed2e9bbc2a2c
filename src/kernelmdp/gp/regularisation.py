"""Posteriors of the same data for several regularisers, without the data.

In coordinates in which the prior of the weights is N(0, I), the data of a posterior enter by a
matrix M = Σ_t φ(z_t)φ(z_t)ᵀ/λ and by c = Σ_t φ(z_t)y_t/λ. With M = U diag(e) Uᵀ and b = Uᵀc, the
posterior for the regulariser aλ has the mean φ(z)ᵀU (b/(e + a)) and the variance Σ_i (φ(z)ᵀU)_i²
a/(e_i + a). So one decomposition gives all of them.
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.gp.basis import FeatureBasis, NystromBasis
from kernelmdp.gp.engine import Engine
from kernelmdp.gp.output_layouts import SharedLayout
from kernelmdp.gp.posterior import Posterior
from kernelmdp.gp.table_engine import TableEngine
from kernelmdp.gp.weight_engine import WeightEngine
from kernelmdp.kernels.base import gram
from kernelmdp.numerics.factorisation import cholesky, solve_lower, solve_lower_transposed
from kernelmdp.numerics.modules import jit, replace_fields

#: A number, or a scalar array.
Number = float | Array
#: Lower limit of the share of the prior's variance that data leave. It is the square of a rounding.
LEAST_SHARE = 1e-30


class DataSpectrum(NamedTuple):
    """What data say along the principal directions of M; see the module's text.

    Attributes:
        information: e, at least 0.
        coefficients: b, a row for each direction and a column for each output.
        sections: A matrix S such that Sv are the coordinates of r^−½ Σ_i v_i k(·, u_i) for the
            centres u_i of a compiled kernel of rank r. None for other kernels.
    """

    information: Float[Array, " r"]
    coefficients: Float[Array, "r p"]
    sections: Float[Array, "r r"] | None = None

    def weights(self, multiplier: float) -> Float[Array, "r p"]:
        """Compute the posterior mean for the regulariser aλ.

        Args:
            multiplier: a.

        Returns:
            Its coordinates.
        """
        return self.coefficients / (self.information + multiplier)[:, None]

    def gain(self, multiplier: float) -> Float[Array, ""]:
        """Compute the information gain ½ p ln|I + M/a| of all outputs.

        Args:
            multiplier: a.

        Returns:
            The gain.
        """
        outputs = self.coefficients.shape[1]
        return 0.5 * outputs * jnp.sum(jnp.log1p(self.information / multiplier))

    def section_prior(
        self, variance: Number, noise: Number
    ) -> tuple[Float[Array, "r p"], Float[Array, ""]]:
        """Compute mean and gain for the prior N(0, variance · S Sᵀ) and noise of this variance.

        Args:
            variance: The factor of the prior covariance.
            noise: The variance of the noise, in units of λ.

        Returns:
            The coordinates of the posterior mean, and the information gain of all outputs.
        """
        assert self.sections is not None
        root = jnp.sqrt(variance / noise) * self.sections
        identity = jnp.eye(root.shape[1], dtype=root.dtype)
        factor = cholesky(identity + root.T @ (self.information[:, None] * root))
        solved = solve_lower(factor, root.T @ self.coefficients)
        mean = root @ solve_lower_transposed(factor, solved)
        outputs = self.coefficients.shape[1]
        return mean, outputs * jnp.sum(jnp.log(jnp.diagonal(factor)))


def has_spectrum(posterior: Posterior) -> bool:
    """Whether ``with_regularisers`` knows the posterior for other regularisers.

    Args:
        posterior: The posterior.

    Returns:
        True for outputs that share a kernel of finite rank, compiled or exact.
    """
    if not isinstance(posterior.layout, SharedLayout):
        return False
    engine = posterior.engines[0]
    if isinstance(engine, TableEngine):
        return True
    return isinstance(engine, WeightEngine) and isinstance(
        engine.basis, FeatureBasis | NystromBasis
    )


def with_regularisers(
    posterior: Posterior, multipliers: tuple[float, ...]
) -> tuple[list[Posterior], DataSpectrum]:
    """Change the regulariser λ of a posterior to aλ for several a.

    Args:
        posterior: The posterior, with ``has_spectrum``.
        multipliers: The numbers a. For 1 the posterior itself is returned.

    Returns:
        A posterior for each number, and the spectrum of the data.
    """
    cached = posterior.engines[0].cached
    bare = posterior.engines[0].with_cache(None) if cached is not None else posterior.engines[0]
    engines, spectrum = _decomposed(bare, multipliers)
    posteriors = [
        posterior
        if multiplier == 1
        else replace_fields(
            posterior,
            engines=(engine if cached is None else engine.with_cache(cached),),
            noise_variance=posterior.noise_variance * multiplier,
            few_data=None,
        )
        for multiplier, engine in zip(multipliers, engines, strict=True)
    ]
    return posteriors, spectrum


@jit
def _decomposed(
    engine: Engine, multipliers: tuple[float, ...]
) -> tuple[list[Engine], DataSpectrum]:
    if isinstance(engine, TableEngine):
        information = engine.variance * engine.precision
        spectrum = DataSpectrum(information, jnp.sqrt(engine.variance) * engine.sums)
        changed: list[Engine] = [
            replace_fields(engine, precision=engine.precision / a, sums=engine.sums / a)
            for a in multipliers
        ]
        return changed, spectrum
    assert isinstance(engine, WeightEngine)
    axes, spectrum = _weight_spectrum(engine)
    bare = replace_fields(engine, cache=None, moment_cache=None, lower=False)
    return [
        replace_fields(
            bare,
            root=axes * jnp.sqrt(a / (spectrum.information + a))[None, :],
            weights=axes @ spectrum.weights(a),
        )
        for a in multipliers
    ], spectrum


def _weight_spectrum(engine: WeightEngine) -> tuple[Array, DataSpectrum]:
    """A matrix T with g(z)ᵀT = φ(z)ᵀU, and the spectrum."""
    factor = prior_factor(engine)
    # In coordinates with the prior N(0, I), the posterior covariance is (I + M)⁻¹.
    root = factor.T @ engine.root
    share, directions = jnp.linalg.eigh(root @ root.T)
    share = jnp.clip(share, LEAST_SHARE, 1.0)
    coefficients = (directions.T @ (factor.T @ engine.weights)) / share[:, None]
    axes = solve_lower_transposed(factor, directions)
    sections = None
    if isinstance(engine.basis, NystromBasis):
        # The coordinates of k(·, u_i) are column i of Lᵀ.
        sections = (directions.T @ factor.T) / math.sqrt(factor.shape[0])
    return axes, DataSpectrum(1 / share - 1, coefficients, sections)


def prior_factor(engine: WeightEngine) -> Float[Array, "r r"]:
    """Factorise the prior precision of the weights as L Lᵀ.

    Args:
        engine: The engine, with the basis of a kernel of finite rank or of a compiled one.

    Returns:
        L.
    """
    if isinstance(engine.basis, NystromBasis):
        centres = engine.basis.centres
        return cholesky(gram(engine.basis.kernel, centres, centres))
    return jnp.eye(engine.root.shape[0], dtype=engine.root.dtype)


@jit
def log_evidence(posterior: Posterior) -> Float[Array, ""]:
    """Compute ln p(y) for y ~ N(0, K + λ), up to a number that depends on y and λ alone.

    Args:
        posterior: The posterior, with ``has_spectrum``.

    Returns:
        ½ yᵀK(K + λ)⁻¹y/λ − ½ ln|I + K/λ|.
    """
    engine: Any = posterior.engines[0]
    if isinstance(engine, TableEngine):
        fit = jnp.sum(engine.sums**2 / (engine.precision + 1 / engine.variance)[:, None])
    else:
        fit = jnp.sum(jnp.linalg.solve(engine.root, engine.weights) ** 2)
    return 0.5 * fit - posterior.information_gain
