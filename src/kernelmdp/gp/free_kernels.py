"""Any kernel expression with its parameters left free, to be fitted to data.

The given parameters are the medians of log-normal priors within relative bounds. Each output has a
signal factor and a noise of its own besides, in units of its size. Fits and posteriors evaluate the
expression itself: only draws of functions are approximate (random features, ``gp/basis.py``).
"""

import functools
import operator
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.errors import ArgumentError
from kernelmdp.gp.basis import Basis, prior_basis
from kernelmdp.gp.fit_config import InducingConfig
from kernelmdp.gp.hyperpriors import HyperPrior, LogNormalPrior
from kernelmdp.gp.kernel_families import BatchedKernels, KernelFamily, PriorDraw
from kernelmdp.kernels import Kernel
from kernelmdp.kernels.base import gram, variances
from kernelmdp.numerics.checks import integer, positive, positive_number
from kernelmdp.numerics.modules import Module, changed
from kernelmdp.types import Key

#: Belief about a place that an output's expression does not use, where another's does.
UNUSED = LogNormalPrior(1.0, 1.0, 0.5, 2.0)


class Template(Module):
    """A kernel expression of which some array leaves are free."""

    kernel: Kernel
    free: tuple[int, ...] = eqx.field(static=True)  # places of the free leaves

    @property
    def given(self) -> Float[Array, " k"]:
        """The free parameters, as they were given."""
        leaves = jax.tree.leaves(self.kernel)
        return jnp.concatenate([jnp.ravel(leaves[place]) for place in self.free] or [jnp.zeros(0)])

    @property
    def names(self) -> tuple[str, ...]:
        """Where each free parameter stands in the expression, such as ``left.lengthscale[0]``."""
        leaves = jax.tree_util.tree_leaves_with_path(self.kernel)
        found = []
        for path, leaf in (leaves[place] for place in self.free):
            where = jax.tree_util.keystr(path).removeprefix(".")
            found += [where] if leaf.ndim == 0 else [f"{where}[{j}]" for j in range(leaf.size)]
        return tuple(found)

    def filled(self, values: Float[Array, " k"]) -> Kernel:
        """The expression with these parameters; those beyond its own are not read."""
        leaves, structure = jax.tree.flatten(self.kernel)
        start = 0
        for place in self.free:
            size = leaves[place].size
            leaves[place] = values[start : start + size].reshape(leaves[place].shape)
            start += size
        return jax.tree.unflatten(structure, leaves)


class ExpressionKernels(BatchedKernels):
    """signal_i² times an expression, for each output i.

    One template serves all outputs, or each output has its own.
    """

    templates: tuple[Template, ...]
    values: Float[Array, "m k"]
    signal: Float[Array, " m"]
    noise: Float[Array, " m"]
    coordinates: int = eqx.field(static=True)

    @property
    def dimension(self) -> int:
        return self.coordinates

    def _groups(self) -> list[tuple[Template, Float[Array, "g k"], slice]]:
        """Outputs that share a template are treated as one batch."""
        if len(self.templates) == 1:
            return [(self.templates[0], self.values, slice(None))]
        places = [slice(i, i + 1) for i in range(len(self.templates))]
        return [(t, self.values[p], p) for t, p in zip(self.templates, places, strict=True)]

    def embed(self, points: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The points themselves."""
        return points

    def gram(
        self, first: Float[Array, "n d"], second: Float[Array, "k d"]
    ) -> Float[Array, "m n k"]:
        parts = [
            jax.vmap(lambda v, own=template: gram(own.filled(v), first, second))(values)
            for template, values, _ in self._groups()
        ]
        return self.signal[:, None, None] ** 2 * jnp.concatenate(parts)

    def variances(self, embedded: Float[Array, "n d"]) -> Float[Array, "n m"]:
        parts = [
            jax.vmap(lambda v, own=template: variances(own.filled(v), embedded))(values)
            for template, values, _ in self._groups()
        ]
        return (self.signal[:, None] ** 2 * jnp.concatenate(parts)).T

    def scale(
        self, embedded: Float[Array, "n d"], counted: Float[Array, " n"]
    ) -> Float[Array, " m"]:
        """The largest variance, or the signal's square where there is none."""
        largest = jnp.max(self.variances(embedded) * counted[:, None], axis=0, initial=0.0)
        return jnp.where(largest > 0, largest, self.signal**2)

    def prior_draw(self, config: InducingConfig, *, keys: tuple[Key, Key, Key]) -> PriorDraw:
        """Weights of exact features where parts have them, of random ones where they do not.

        A product has the products of its parts' features: where these are more than
        ``config.most_features``, fewer frequencies are drawn.

        Raises:
            UnknownPropertyError: For a part with neither features nor a spectral law.
        """
        basis_key, weight_key, _ = keys
        m = self.signal.shape[0]
        basis_keys, weight_keys = jax.random.split(basis_key, m), jax.random.split(weight_key, m)
        bases, weights = [], []
        for template, values, place in self._groups():
            count = self._frequencies(template, config, basis_key)
            made = functools.partial(self._basis, template, count)
            bases.append(jax.vmap(made)(values, basis_keys[place]))
            features = self._feature_count(template, count, basis_key)
            normal = functools.partial(jax.random.normal, shape=(features,), dtype=values.dtype)
            weights.append(jax.vmap(normal)(weight_keys[place]))
        return FeatureDraw(tuple(bases), tuple(weights), self.signal)

    def _basis(self, template: Template, count: int, values: Array, key: Key) -> Basis:
        kernel = template.filled(values).astype(values.dtype)
        return prior_basis(kernel, self.dimension, count, key=key)

    def _feature_count(self, template: Template, count: int, key: Key) -> int:
        point = jax.ShapeDtypeStruct((1, self.dimension), self.values.dtype)
        evaluate = lambda v, k, z: self._basis(template, count, v, k)(z)  # noqa: E731
        return jax.eval_shape(evaluate, self.values[0], key, point).shape[1]

    def _frequencies(self, template: Template, config: InducingConfig, key: Key) -> int:
        """As many as asked for, halved while they make too many features."""
        count = config.fourier_features
        while count > 1 and self._feature_count(template, count, key) > config.most_features:
            count //= 2
        return count

    def selection_kernel(self, points: Float[Array, "n d"]) -> "ExpressionKernels":
        """The average of the outputs' kernels, each divided by its largest variance."""
        largest = self.scale(points, jnp.ones(points.shape[0], points.dtype))
        share = self.signal**2 / (largest * self.signal.shape[0])
        parts = [
            template.filled(row) * share[place][j]
            for template, rows, place in self._groups()
            for j, row in enumerate(rows)
        ]
        total = functools.reduce(operator.add, parts)
        return ExpressionKernels(
            templates=(Template(total, ()),),
            values=jnp.zeros((1, 0), points.dtype),
            signal=jnp.ones(1, points.dtype),
            noise=jnp.ones(1, points.dtype),
            coordinates=self.coordinates,
        )

    def kernels(self) -> list[Kernel]:
        """The expressions with numbers in place."""
        factors = np.asarray(self.signal, float) ** 2
        filled = [template.filled(row) for template, rows, _ in self._groups() for row in rows]
        return [float(factor) * kernel for factor, kernel in zip(factors, filled, strict=True)]


class FeatureDraw(PriorDraw):
    """Features times weights, a set for every output; outputs with one template as one batch."""

    bases: tuple[Basis, ...]
    weights: tuple[Array, ...]  # (outputs, features) of each
    signal: Float[Array, " m"]

    def __call__(self, embedded: Float[Array, "n d"]) -> Float[Array, "n m"]:
        parts = [
            jax.vmap(lambda own, weights: own(embedded) @ weights)(basis, rows)
            for basis, rows in zip(self.bases, self.weights, strict=True)
        ]
        return (self.signal[:, None] * jnp.concatenate(parts)).T


class FreeKernel(KernelFamily):
    """Expressions with free parameters; made by ``free_kernel``.

    A parameter vector holds the logarithms of the expression's parameters in the order of
    ``names``, then that of the signal and of the noise in units of the output's size.
    """

    templates: tuple[Template, ...]
    sizes: Float[Array, " m"]
    dimension: int = eqx.field(static=True)
    width: int = eqx.field(static=True)  # parameters of the expression that has most
    spread: float = eqx.field(static=True)
    bounds: tuple[float, float] = eqx.field(static=True)

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """The free parameters of each template."""
        return tuple(template.names for template in self.templates)

    def parameter_priors(self, hyper_prior: HyperPrior) -> Float[np.ndarray, "m k 4"]:
        """Of the expression by the values given; of signal and noise as ``hyper_prior`` say."""
        low, high = self.bounds
        found = []
        for template in self.templates:
            given = np.asarray(template.given, float)
            own = [LogNormalPrior(each, self.spread, low * each, high * each) for each in given]
            unused = [UNUSED] * (self.width - len(own))
            found.append(np.array([*own, *unused, hyper_prior.signal, hyper_prior.noise]))
        return np.stack(found * (self.sizes.shape[0] // len(found)))

    def output(self, index: int) -> "FreeKernel":
        own = (self.templates[index % len(self.templates)],)
        return changed(self, templates=own, sizes=self.sizes[index][None])

    def kernels_at(self, logs: Float[Array, "m k"]) -> ExpressionKernels:
        numbers = jnp.exp(logs)
        return ExpressionKernels(
            templates=self.templates,
            values=numbers[:, : self.width],
            signal=numbers[:, self.width] * self.sizes,
            noise=numbers[:, self.width + 1] * self.sizes,
            coordinates=self.dimension,
        )


def free_kernel(
    kernel: Kernel | Sequence[Kernel],
    *,
    sizes: Any,
    dimension: int,
    spread: float = 1.0,
    bounds: tuple[float, float] = (1 / 20, 20.0),
    fixed: Sequence[str] = ("period",),
) -> FreeKernel:
    """The family of a kernel expression, for ``fit``, ``prior_median`` and ``inducing_posterior``.

    Free are all positive numbers and vectors of the expression (lengthscales, factors, constants;
    periods where ``fixed`` does not name them). Whole matrices, as of ``coregional``, stay. The
    sizes of the inputs are in the expression: lengthscales are in units of the coordinates.

    Args:
        kernel: An expression for all outputs, or a list of one for each; with coordinates bound to
            positions (``kernel.bind``).
        sizes: The size of each output, (m,): the unit of its signal and its noise.
        dimension: Number of coordinates of a point.
        spread: Standard deviation of the logarithm of a parameter, about the value given.
        bounds: Lowest and highest value of a parameter, in units of the value given.
        fixed: Names of parameters that are not fitted.

    Returns:
        A family: ``family.kernels_at(logs)`` are the kernels with fitted parameters.

    Raises:
        ArgumentError: For names of coordinates that are not bound, a number of expressions that is
            not that of the outputs, bounds that do not hold the value given.
        ShapeError: For an expression that points of this dimension do not fit.

    >>> import kernelmdp as km
    >>> from kernelmdp.gp.fitting import DYNAMICS, fit, prior_median
    >>> family = free_kernel(km.kernel("se(0.5)[0] * linear[1]"), sizes=[1.0], dimension=2)
    >>> family.names
    (('left.kernel.lengthscale',),)
    >>> x = np.random.default_rng(0).uniform(-1.0, 1.0, size=(1, 40, 2))
    >>> y = np.sin(3 * x[:, :, :1]) * x[:, :, 1:]
    >>> logs = fit(
    ...     family, DYNAMICS, *map(jnp.asarray, (x, y, np.ones((1, 40)))), prior_median(family, DYNAMICS)
    ... )
    >>> family.kernels_at(jnp.asarray(logs)).kernels()[0].text().count("linear[1]")
    1
    """
    kernels = [kernel] if isinstance(kernel, Kernel) else list(kernel)
    size = positive("sizes", np.atleast_1d(np.asarray(sizes, float)))
    dimension = integer("dimension", dimension, least=1)
    if len(kernels) not in (1, size.shape[0]):
        raise ArgumentError("kernel", f"one expression, or {size.shape[0]}", len(kernels))
    low, high = (positive_number("bounds", end) for end in bounds)
    if not low < 1 < high:
        raise ArgumentError("bounds", "a number below 1 and one above", bounds)
    for each in kernels:
        each.require_dimension(dimension)
    templates = tuple(_template(each, tuple(fixed)) for each in kernels)
    return FreeKernel(
        templates=templates,
        sizes=size,
        dimension=dimension,
        width=max(template.given.size for template in templates),
        spread=positive_number("spread", spread),
        bounds=(low, high),
    )


def _template(kernel: Kernel, fixed: tuple[str, ...]) -> Template:
    free = []
    for place, (path, leaf) in enumerate(jax.tree_util.tree_leaves_with_path(kernel)):
        name = jax.tree_util.keystr(path[-1:]).removeprefix(".")
        number = eqx.is_inexact_array(leaf) and leaf.ndim <= 1
        if number and name not in fixed and bool(np.all(np.asarray(leaf) > 0)):
            free.append(place)
    return Template(kernel, tuple(free))
