"""An unknown function in weight space: f_j(z) = φ(z)ᵀξ_j with ξ_j ~ N(0, I) a priori.

φ(z) = rootᵀg(z) for the basis g and the root of the posterior's engine (gp/weight_engine.py). So
|ξ_j| is the norm of f_j in the RKHS of the finite-rank kernel. Outputs must be independent:
k ⊗ identity, or a kernel for each.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.errors import ArgumentError
from kernelmdp.gp import FunctionSample, Posterior
from kernelmdp.gp.basis import Basis
from kernelmdp.gp.engine import Engine
from kernelmdp.gp.mean_functions import Mean
from kernelmdp.gp.output_layouts import Layout
from kernelmdp.gp.weight_engine import WeightFunction
from kernelmdp.numerics.modules import Module, jit
from kernelmdp.types import Key

#: Number of points at which function values are recorded to judge whether chains mix. Diagnostics
#: cost proportionally.
PROBES = 8


class WeightColumns(Module):
    """p functions with one kernel.

    Attributes:
        basis: g.
        root: The root of the prior covariance of the weights of g.
        probes: φ at the points at which mixing is judged.
        sizes: The size of the noise of each function.
    """

    basis: Basis
    root: Float[Array, "r r"]
    probes: Float[Array, "k r"]
    sizes: Float[Array, " p"]

    @property
    def rank(self) -> int:
        """The number of weights of one function."""
        return self.root.shape[0]

    @property
    def count(self) -> int:
        """The number of functions."""
        return self.sizes.shape[0]

    def features(self, points: Float[Array, "n d"]) -> Float[Array, "n r"]:
        """Compute φ at points.

        Args:
            points: (n, d).

        Returns:
            The features, (n, r).
        """
        return _features(self.basis, self.root, points)


class WeightSpaceFunction(Module):
    """An unknown function of one or several outputs, as groups of columns.

    Attributes:
        layout: How outputs are laid over engines.
        engines: The posterior's engines, for their caches.
        groups: The groups of outputs that share a kernel.
        mean: The prior mean.
        scalar: Whether values have shape (n,) and not (n, m).
        dtype: The precision.
    """

    layout: Layout
    engines: tuple[Engine, ...]
    groups: tuple[WeightColumns, ...]
    mean: Mean
    scalar: bool = eqx.field(static=True)
    dtype: Any = eqx.field(static=True)

    def targets(self, points: Any, values: Any) -> list[Float[Array, "n p"]]:
        """Split observations minus the prior mean into targets of the groups.

        Args:
            points: (n, d).
            values: Observations, (n, m).

        Returns:
            The targets of each group.
        """
        x = jnp.asarray(points, self.dtype)
        residuals = jnp.asarray(values, self.dtype).reshape(x.shape[0], -1) - self.mean(x)
        ends = np.cumsum([group.count for group in self.groups])[:-1].tolist()
        return jnp.split(residuals, ends, axis=1)

    def function(self, weights: list[Float[Array, "r p"]], *, exact: bool) -> FunctionSample:
        """Make the function with given weights.

        Args:
            weights: ξ of each group.
            exact: Whether the weights have exactly the posterior's law.

        Returns:
            The function.
        """
        pairs = zip(self.groups, weights, strict=True)
        functions = tuple(WeightFunction(group.basis, group.root @ xi) for group, xi in pairs)
        sample = FunctionSample(
            layout=self.layout,
            functions=functions,
            mean=self.mean,
            scalar=self.scalar,
            dtype=self.dtype,
            exact=exact,
        )
        return sample.with_cache_of(self.engines)


def weight_space_function(posterior: Posterior, sizes: Any) -> WeightSpaceFunction:
    """Make the weight-space form of a posterior without data.

    Args:
        posterior: The posterior.
        sizes: The size of the noise of each output, (m,).

    Returns:
        The unknown function.

    Raises:
        ArgumentError: If outputs are correlated, or the kernel has no features here.
    """
    layout, engines = posterior.layout, posterior.engines
    outputs = layout.groups()
    if outputs is None:
        raise ArgumentError(
            "prior",
            "'gaussian' for outputs that depend on one another; other priors take k ⊗ identity "
            "or one kernel for each output",
            str(posterior.kernel),
        )
    sizes = jnp.broadcast_to(jnp.asarray(sizes, posterior.dtype), (layout.outputs,))
    assert posterior.domain is not None
    points = posterior.domain.spread_points(PROBES)
    probes = jnp.asarray(points[:: max(1, len(points) // PROBES)][:PROBES], posterior.dtype)
    groups = []
    for engine, engine_outputs in zip(engines, outputs, strict=True):
        form = engine.weight_form(posterior.dimension)
        if form is None:
            raise ArgumentError(
                "prior",
                "'gaussian' for a kernel that is not of small rank here; other priors need "
                "features",
                str(posterior.kernel),
            )
        basis, root = form
        features = _features(basis, root, probes)
        groups.append(WeightColumns(basis, root, features, sizes[engine_outputs]))
    return WeightSpaceFunction(
        layout, engines, tuple(groups), posterior.mean, posterior.scalar, posterior.dtype
    )


@jit
def _features(basis: Basis, root: Array, points: Array) -> Array:
    return basis(points) @ root


def random_member(positions: Float[Array, "chains r p"], key: Key) -> Float[Array, "r p"]:
    """Choose one of the chains at random.

    Args:
        positions: The positions of all chains.
        key: Decides the choice.

    Returns:
        The position of one chain.
    """
    return positions[jax.random.randint(key, (), 0, positions.shape[0])]
