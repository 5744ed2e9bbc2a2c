"""An unknown function in weight space: f_j(z) = φ(z)ᵀξ_j with ξ_j ~ N(0, I) a priori.

φ(z) = rootᵀg(z) for the basis g and the root of the posterior's engine (gp/weight_engine.py), so |ξ_j| is
the norm of f_j in the space of the finite-rank kernel. Outputs must be independent: k ⊗ identity,
or a kernel for each.
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

#: Points at which functions are watched to see whether chains mix.
PROBES = 8


class WeightColumns(Module):
    """p functions with one kernel; ``sizes`` of their noise, ``probes`` φ at a few points."""

    basis: Basis
    root: Float[Array, "r r"]
    probes: Float[Array, "k r"]
    sizes: Float[Array, " p"]

    @property
    def rank(self) -> int:
        """Number of weights of one function."""
        return self.root.shape[0]

    @property
    def count(self) -> int:
        """Number of functions."""
        return self.sizes.shape[0]

    def features(self, points: Float[Array, "n d"]) -> Float[Array, "n r"]:
        """φ at points."""
        return _features(self.basis, self.root, points)


class WeightSpaceFunction(Module):
    """A function of one or several outputs, as groups of columns."""

    layout: Layout
    engines: tuple[Engine, ...]  # of the posterior, for what they remember
    groups: tuple[WeightColumns, ...]
    mean: Mean
    scalar: bool = eqx.field(static=True)
    dtype: Any = eqx.field(static=True)

    def targets(self, points: Any, values: Any) -> list[Float[Array, "n p"]]:
        """What each group is to explain, from values (n, m) seen at points."""
        x = jnp.asarray(points, self.dtype)
        rest = jnp.asarray(values, self.dtype).reshape(x.shape[0], -1) - self.mean(x)
        ends = np.cumsum([group.count for group in self.groups])[:-1].tolist()
        return jnp.split(rest, ends, axis=1)

    def function(self, weights: list[Float[Array, "r p"]], *, exact: bool) -> FunctionSample:
        """The function with these weights ξ."""
        pairs = zip(self.groups, weights, strict=True)
        functions = tuple(WeightFunction(group.basis, group.root @ xi) for group, xi in pairs)
        made = FunctionSample(
            layout=self.layout,
            functions=functions,
            mean=self.mean,
            scalar=self.scalar,
            dtype=self.dtype,
            exact=exact,
        )
        return made.with_cache_of(self.engines)


def weight_space_function(posterior: Posterior, sizes: Any) -> WeightSpaceFunction:
    """The function of a posterior without data, whose outputs have noise of these sizes (m,)."""
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
    places = posterior.domain.spread(PROBES)
    watched = jnp.asarray(places[:: max(1, len(places) // PROBES)][:PROBES], posterior.dtype)
    groups = []
    for engine, own in zip(engines, outputs, strict=True):
        form = engine.weight_form(posterior.dimension)
        if form is None:
            raise ArgumentError(
                "prior",
                "'gaussian' for a kernel that is not of small rank here; other priors need "
                "features",
                str(posterior.kernel),
            )
        basis, root = form
        groups.append(WeightColumns(basis, root, _features(basis, root, watched), sizes[own]))
    return WeightSpaceFunction(
        layout, engines, tuple(groups), posterior.mean, posterior.scalar, posterior.dtype
    )


@jit
def _features(basis: Basis, root: Array, points: Array) -> Array:
    return basis(points) @ root


def random_member(positions: Float[Array, "chains r p"], key: Key) -> Float[Array, "r p"]:
    """One of the chains, at random."""
    return positions[jax.random.randint(key, (), 0, positions.shape[0])]
