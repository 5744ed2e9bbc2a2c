"""Any kernel expression with free parameters, to be fitted to data.

The expression's parameters are the medians of log-normal priors within relative bounds. Each output
also has a signal and a noise, in units of its size. Fits and posteriors evaluate the expression
itself. Only draws of functions are approximate (random features, ``gp/basis.py``).
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
from kernelmdp.numerics.checks import integer, positive_array, positive_number
from kernelmdp.numerics.modules import Module, replace_fields
from kernelmdp.types import Key

#: Prior of a padding parameter: expressions of other outputs may have more parameters.
UNUSED = LogNormalPrior(1.0, 1.0, 0.5, 2.0)


class Template(Module):
    """A kernel expression with some free array leaves.

    Attributes:
        kernel: The expression.
        free: Indices of the free leaves.
    """

    kernel: Kernel
    free: tuple[int, ...] = eqx.field(static=True)

    @property
    def initial_values(self) -> Float[Array, " k"]:
        """The values of the free parameters in the expression."""
        leaves = jax.tree.leaves(self.kernel)
        return jnp.concatenate([jnp.ravel(leaves[index]) for index in self.free] or [jnp.zeros(0)])

    @property
    def names(self) -> tuple[str, ...]:
        """The path of each free parameter in the expression, such as ``left.lengthscale[0]``."""
        leaves = jax.tree_util.tree_leaves_with_path(self.kernel)
        names = []
        for path, leaf in (leaves[index] for index in self.free):
            name = jax.tree_util.keystr(path).removeprefix(".")
            names += [name] if leaf.ndim == 0 else [f"{name}[{j}]" for j in range(leaf.size)]
        return tuple(names)

    def filled(self, values: Float[Array, " k"]) -> Kernel:
        """Insert parameters into the expression.

        Args:
            values: The parameters, and possibly padding behind them.

        Returns:
            The kernel.
        """
        leaves, structure = jax.tree.flatten(self.kernel)
        start = 0
        for index in self.free:
            size = leaves[index].size
            leaves[index] = values[start : start + size].reshape(leaves[index].shape)
            start += size
        return jax.tree.unflatten(structure, leaves)


class ExpressionKernels(BatchedKernels):
    """signal_i² times an expression, for each output i.

    Attributes:
        templates: One expression for all outputs, or one for each.
        values: The parameters of each output.
        signal: The signal's standard deviations.
        noise: The noise's standard deviations.
        coordinates: The number of coordinates of a point.
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
        """Templates with the parameters and the slice of their outputs, treated as one batch."""
        if len(self.templates) == 1:
            return [(self.templates[0], self.values, slice(None))]
        slices = [slice(i, i + 1) for i in range(len(self.templates))]
        pairs = zip(self.templates, slices, strict=True)
        return [(template, self.values[outputs], outputs) for template, outputs in pairs]

    def embed(self, points: Float[Array, "n d"]) -> Float[Array, "n d"]:
        return points

    def gram(
        self, first: Float[Array, "n d"], second: Float[Array, "k d"]
    ) -> Float[Array, "m n k"]:
        parts = [
            jax.vmap(lambda row, template=template: gram(template.filled(row), first, second))(
                values
            )
            for template, values, _ in self._groups()
        ]
        return self.signal[:, None, None] ** 2 * jnp.concatenate(parts)

    def variances(self, embedded: Float[Array, "n d"]) -> Float[Array, "n m"]:
        parts = [
            jax.vmap(lambda row, template=template: variances(template.filled(row), embedded))(
                values
            )
            for template, values, _ in self._groups()
        ]
        return (self.signal[:, None] ** 2 * jnp.concatenate(parts)).T

    def scale(
        self, embedded: Float[Array, "n d"], counted: Float[Array, " n"]
    ) -> Float[Array, " m"]:
        # The largest variance, or the signal's square if all variances are 0.
        largest = jnp.max(self.variances(embedded) * counted[:, None], axis=0, initial=0.0)
        return jnp.where(largest > 0, largest, self.signal**2)

    def prior_draw(self, config: InducingConfig, *, keys: tuple[Key, Key, Key]) -> PriorDraw:
        """Draw weights of features: exact features where parts have them, else random ones.

        A product has all products of its parts' features. If these are more than
        ``config.most_features``, fewer frequencies are drawn.

        Args:
            config: Number and size of random features.
            keys: Keys for the basis, the weights, and one that is not used.

        Returns:
            The functions.

        Raises:
            UnknownPropertyError: If a part has neither features nor a spectral law.
        """
        basis_key, weight_key, _ = keys
        m = self.signal.shape[0]
        basis_keys, weight_keys = jax.random.split(basis_key, m), jax.random.split(weight_key, m)
        bases, weights = [], []
        for template, values, outputs in self._groups():
            count = self._frequencies(template, config, basis_key)
            make_basis = functools.partial(self._basis, template, count)
            bases.append(jax.vmap(make_basis)(values, basis_keys[outputs]))
            features = self._feature_count(template, count, basis_key)
            normal = functools.partial(jax.random.normal, shape=(features,), dtype=values.dtype)
            weights.append(jax.vmap(normal)(weight_keys[outputs]))
        return FeatureDraw(tuple(bases), tuple(weights), self.signal)

    def _basis(self, template: Template, count: int, values: Array, key: Key) -> Basis:
        kernel = template.filled(values).astype(values.dtype)
        return prior_basis(kernel, self.dimension, count, key=key)

    def _feature_count(self, template: Template, count: int, key: Key) -> int:
        point = jax.ShapeDtypeStruct((1, self.dimension), self.values.dtype)
        evaluate = lambda v, k, z: self._basis(template, count, v, k)(z)  # noqa: E731
        return jax.eval_shape(evaluate, self.values[0], key, point).shape[1]

    def _frequencies(self, template: Template, config: InducingConfig, key: Key) -> int:
        """The number of frequencies in the settings, halved while there are too many features."""
        count = config.fourier_features
        while count > 1 and self._feature_count(template, count, key) > config.most_features:
            count //= 2
        return count

    def selection_kernel(self, points: Float[Array, "n d"]) -> "ExpressionKernels":
        # The average of the outputs' kernels, each divided by its largest variance.
        largest = self.scale(points, jnp.ones(points.shape[0], points.dtype))
        share = self.signal**2 / (largest * self.signal.shape[0])
        parts = [
            template.filled(row) * share[outputs][j]
            for template, rows, outputs in self._groups()
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
        factors = np.asarray(self.signal, float) ** 2
        filled = [template.filled(row) for template, rows, _ in self._groups() for row in rows]
        return [float(factor) * kernel for factor, kernel in zip(factors, filled, strict=True)]


class FeatureDraw(PriorDraw):
    """Features times weights for every output. Outputs with one template form one batch.

    Attributes:
        bases: The features of each batch.
        weights: Their weights, (outputs, features) for each batch.
        signal: The signal's standard deviations.
    """

    bases: tuple[Basis, ...]
    weights: tuple[Array, ...]
    signal: Float[Array, " m"]

    def __call__(self, embedded: Float[Array, "n d"]) -> Float[Array, "n m"]:
        parts = [
            jax.vmap(lambda features, weights: features(embedded) @ weights)(basis, rows)
            for basis, rows in zip(self.bases, self.weights, strict=True)
        ]
        return (self.signal[:, None] * jnp.concatenate(parts)).T


class FreeKernel(KernelFamily):
    """Kernel expressions with free parameters, made by ``free_kernel``.

    A parameter vector holds the logarithms of the expression's parameters in the order of
    ``names``, then those of the signal and the noise in units of the output's size.

    Attributes:
        templates: One expression for all outputs, or one for each.
        sizes: The size of each output.
        dimension: The number of coordinates of a point.
        width: The largest number of parameters of an expression.
        spread: The standard deviation of the logarithm of a parameter.
        bounds: Lowest and highest value of a parameter, relative to the initial one.
    """

    templates: tuple[Template, ...]
    sizes: Float[Array, " m"]
    dimension: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    spread: float = eqx.field(static=True)
    bounds: tuple[float, float] = eqx.field(static=True)

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """The names of the free parameters of each template."""
        return tuple(template.names for template in self.templates)

    def parameter_priors(self, hyper_prior: HyperPrior) -> Float[np.ndarray, "m k 4"]:
        low, high = self.bounds
        rows = []
        for template in self.templates:
            priors = [
                LogNormalPrior(value, self.spread, low * value, high * value)
                for value in np.asarray(template.initial_values, float)
            ]
            padding = [UNUSED] * (self.width - len(priors))
            rows.append(np.array([*priors, *padding, hyper_prior.signal, hyper_prior.noise]))
        return np.stack(rows * (self.sizes.shape[0] // len(rows)))

    def output(self, index: int) -> "FreeKernel":
        templates = (self.templates[index % len(self.templates)],)
        return replace_fields(self, templates=templates, sizes=self.sizes[index][None])

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
    """Make the family of a kernel expression, for ``fit`` and ``inducing_posterior``.

    All positive numbers and vectors of the expression are free, such as lengthscales, factors and
    constants, unless ``fixed`` names them. Matrices, as of ``coregional``, are not fitted.
    Lengthscales are in units of the coordinates.

    Args:
        kernel: An expression for all outputs, or a list with one for each. Names of coordinates
            must be bound to positions (``kernel.bind``).
        sizes: The size of each output, (m,), the unit of its signal and its noise.
        dimension: The number of coordinates of a point.
        spread: The standard deviation of the logarithm of a parameter.
        bounds: Lowest and highest value of a parameter, relative to its value in the expression.
        fixed: Names of parameters that are not fitted.

    Returns:
        The family. ``family.kernels_at(logs)`` gives kernels with fitted parameters.

    Raises:
        ArgumentError: If names of coordinates are not bound, if the number of expressions does not
            fit the outputs, or if the bounds do not contain the initial values.
        ShapeError: If the expression does not suit points of this dimension.

    >>> import kernelmdp as km
    >>> from kernelmdp.gp.fitting import DYNAMICS, fit, prior_median
    >>> family = free_kernel(km.kernel("se(0.5)[0] * linear[1]"), sizes=[1.0], dimension=2)
    >>> family.names
    (('left.kernel.lengthscale',),)
    >>> x = np.random.default_rng(0).uniform(-1.0, 1.0, size=(1, 40, 2))
    >>> y = np.sin(3 * x[:, :, :1]) * x[:, :, 1:]
    >>> data = map(jnp.asarray, (x, y, np.ones((1, 40))))
    >>> logs = fit(family, DYNAMICS, *data, prior_median(family, DYNAMICS))
    >>> family.kernels_at(jnp.asarray(logs)).kernels()[0].text().count("linear[1]")
    1
    """
    kernels = [kernel] if isinstance(kernel, Kernel) else list(kernel)
    size = positive_array("sizes", np.atleast_1d(np.asarray(sizes, float)))
    dimension = integer("dimension", dimension, least=1)
    if len(kernels) not in (1, size.shape[0]):
        raise ArgumentError("kernel", f"one expression, or {size.shape[0]}", len(kernels))
    low, high = (positive_number("bounds", end) for end in bounds)
    if not low < 1 < high:
        raise ArgumentError("bounds", "a number below 1 and one above", bounds)
    for expression in kernels:
        expression.require_dimension(dimension)
    templates = tuple(_template(expression, tuple(fixed)) for expression in kernels)
    return FreeKernel(
        templates=templates,
        sizes=size,
        dimension=dimension,
        width=max(template.initial_values.size for template in templates),
        spread=positive_number("spread", spread),
        bounds=(low, high),
    )


def _template(kernel: Kernel, fixed: tuple[str, ...]) -> Template:
    free = []
    for index, (path, leaf) in enumerate(jax.tree_util.tree_leaves_with_path(kernel)):
        name = jax.tree_util.keystr(path[-1:]).removeprefix(".")
        is_vector = eqx.is_inexact_array(leaf) and leaf.ndim <= 1
        if is_vector and name not in fixed and bool(np.all(np.asarray(leaf) > 0)):
            free.append(index)
    return Template(kernel, tuple(free))
