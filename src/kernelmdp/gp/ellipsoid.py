"""Ellipsoids of functions: all weights within a radius of a posterior's mean, at once.

With f(z) = g(z)ᵀw and the posterior w ~ N(μ, S Sᵀ), an ellipsoid is {w : ‖S⁻¹(w − μ)‖ ≤ β}. In the
norm of an RKHS it is {f : ‖f − μ‖_{V + λ} ≤ β√λ} (docs/theory.md, Lemma 7). At each z its functions
lie within β σ(z) of the mean. They cannot be extreme at all points, because each is one function.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.errors import UnknownPropertyError
from kernelmdp.gp.posterior import Posterior
from kernelmdp.gp.samples import FunctionSample
from kernelmdp.numerics.modules import Module, replace_fields
from kernelmdp.types import ArrayLike

#: Weights of a function, or a gradient with respect to them: an array (r, p) for each engine.
Weights: TypeAlias = tuple[Array, ...]
#: Added to squared lengths, so that the direction of a zero gradient is zero and not NaN.
TINY = 1e-300


class WeightEllipsoid(NamedTuple):
    """The weights of an ellipsoid of functions.

    Attributes:
        centre: μ for each engine.
        roots: S for each engine.
        radius: β, a scalar.
    """

    centre: Weights
    roots: tuple[Float[Array, "r r"], ...]
    radius: Any

    def extreme(self, gradient: Weights) -> tuple[Weights, Float[Array, ""]]:
        """Find the member that maximises a linear functional: μ + β S Sᵀg / ‖Sᵀg‖.

        Args:
            gradient: g, the gradient of the functional.

        Returns:
            The member, and the maximum.
        """
        whitened = [root.T @ each for root, each in zip(self.roots, gradient, strict=True)]
        squares = jnp.stack([jnp.sum(each**2) for each in whitened])
        length = jnp.sqrt(jnp.sum(squares) + TINY)
        weights = tuple(
            centre + self.radius * (root @ (each / length))
            for centre, root, each in zip(self.centre, self.roots, whitened, strict=True)
        )
        means = [jnp.sum(g * c) for g, c in zip(gradient, self.centre, strict=True)]
        return weights, jnp.sum(jnp.stack(means)) + self.radius * length


class FunctionSet(Module):
    """The functions whose weights lie in one ellipsoid, or in several.

    Attributes:
        mean: The posterior mean, fast at the cached points of the posterior.
        ellipsoids: The ellipsoids.

    >>> import kernelmdp as km
    >>> line = km.Box([0.0], [1.0])
    >>> prior = km.gp.posterior(km.kernel("linear"), noise_variance=0.1, domain=line)
    >>> functions = function_set([prior], [2.0])  # f(z) = wz with |w| ≤ 2
    >>> points = jnp.array([[0.5], [1.0]])
    >>> weights = functions.extreme(points, jnp.array([1.0, 1.0]))  # the largest f(0.5) + f(1)
    >>> functions.function(weights)(points)
    Array([1., 2.], dtype=float64)
    """

    mean: FunctionSample
    ellipsoids: tuple[WeightEllipsoid, ...]

    def function(self, weights: Weights) -> FunctionSample:
        """Return the function with given weights.

        Args:
            weights: The weights.

        Returns:
            The function.
        """
        functions: Any = self.mean.functions
        changed = [
            replace_fields(function, coefficients=each)
            for function, each in zip(functions, weights, strict=True)
        ]
        return replace_fields(self.mean, functions=tuple(changed))

    def extreme(self, points: Float[Array, "n d"], directions: Array) -> Weights:
        """Find the function that maximises Σ_i ⟨directions_i, f(z_i)⟩.

        In the intersection of {‖f − y‖² + α‖f‖² ≤ r(α)²} over all α > 0 the maximum is the least of
        the maxima, by strong duality (Proposition 8). With a few α, the function is in the set of
        the least maximum, and the intersection may be smaller.

        Args:
            points: z, (n, d).
            directions: One for each point, (n,), or (n, m) for m outputs.

        Returns:
            The weights of the function.
        """
        gradient = self._gradient(points, directions)
        if len(self.ellipsoids) == 1:
            return self.ellipsoids[0].extreme(gradient)[0]
        pairs = [each.extreme(gradient) for each in self.ellipsoids]
        members, maxima = zip(*pairs, strict=True)
        least = jnp.argmin(jnp.stack(maxima))
        return tuple(jax.tree.map(lambda *each: jnp.stack(each)[least], *members))

    def _gradient(self, points: Array, directions: Array) -> Weights:
        """The gradient of Σ_i ⟨directions_i, f(z_i)⟩ with respect to the weights of f."""
        layout = self.mean.layout
        rows, centre = layout.rows(points), self.ellipsoids[0].centre

        def values(weights: Weights) -> Array:
            return layout.values([each(rows) for each in self.function(weights).functions])

        shape = (points.shape[0], layout.outputs)
        (gradient,) = jax.linear_transpose(values, centre)(
            directions.reshape(shape).astype(centre[0].dtype)
        )
        return tuple(gradient)


def function_set(posteriors: Sequence[Posterior], radii: Sequence[ArrayLike]) -> FunctionSet:
    """Make the intersection of ellipsoids of posteriors.

    Args:
        posteriors: Posteriors over the same weights.
        radii: β for each of them.

    Returns:
        The set.

    Raises:
        UnknownPropertyError: If a posterior has no weights.
    """
    ellipsoids = []
    for posterior, radius in zip(posteriors, radii, strict=True):
        moments = [engine.weight_moments for engine in posterior.engines]
        if None in moments:
            raise UnknownPropertyError(
                f"the posterior has no weights (engine {posterior.engine!r}): whole functions need "
                "kernels of finite rank, or compiled ones on a bounded domain. With less accuracy "
                "more kernels compile: learner={'name': 'fixed', 'accuracy': 1e-3}"
            )
        centre, roots = zip(*moments, strict=True)
        ellipsoids.append(WeightEllipsoid(centre, roots, radius))
    first = posteriors[0]
    mean = first.mean_function().with_cache_of(first.engines)
    return FunctionSet(mean, tuple(ellipsoids))
