"""A posterior as pure data: sums of squared exponentials, which every file format can hold.

Angles are embedded as cosine and sine, where the periodic kernel is a squared exponential too. With
k_e(z) the kernel values between a point and the centres of part e,

    mean_i(z) = affine_i(z) + Σ_e weights_ie · k_e(z),
    variance_i(z) = Σ_e shares_ie (prior_e + sign_e |k_e(z) roots_e|²).
"""

import dataclasses
import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.gp import Posterior
from kernelmdp.gp.ard import ARDKernels
from kernelmdp.gp.basis import NystromBasis
from kernelmdp.gp.engine import Engine
from kernelmdp.gp.inducing_engine import InducingEngine
from kernelmdp.gp.weight_engine import WeightEngine
from kernelmdp.kernels import Kernel, Periodic, Product, Scaled, SquaredExponential
from kernelmdp.kernels.algebra import Restricted

#: What the kernels of an exported model are, for error messages.
EXPECTED = "products of squared exponentials and periodic kernels, fitted or compiled"
#: By how much a mean function may differ from an affine one, relative to its size: rounding.
ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True)
class Exponential:
    """c exp(−½ Σ_j precisions_j (x_j − y_j)²) of embedded points: (z, cosines, sines).

    Attributes:
        size: c.
        precisions: One for each coordinate of z, (d,).
        angular: Factors that turn coordinates into angles; 0 where there is none, (d,).
        chords: The precisions of cosine and sine of each coordinate, (d,).

    >>> exponential_of(2.0 * SquaredExponential(0.5), 1)
    Exponential(size=2.0, precisions=array([4.]), angular=array([0.]), chords=array([0.]))
    """

    size: float
    precisions: np.ndarray
    angular: np.ndarray
    chords: np.ndarray

    def times(self, other: "Exponential") -> "Exponential":
        """Multiply two kernels.

        Args:
            other: The other one.

        Returns:
            The product.

        Raises:
            ArgumentError: If one coordinate has two periods.
        """
        both = (self.angular > 0) & (other.angular > 0)
        if (self.angular != other.angular)[both].any():
            raise ArgumentError("kernel", "one period for each coordinate", "two")
        return Exponential(
            self.size * other.size,
            self.precisions + other.precisions,
            np.maximum(self.angular, other.angular),
            self.chords + other.chords,
        )


@functools.singledispatch
def exponential_of(kernel: Kernel, dimension: int) -> Exponential:
    """Write a kernel as one exponential.

    Args:
        kernel: The kernel.
        dimension: The number of coordinates.

    Returns:
        The exponential.

    Raises:
        ArgumentError: If the kernel is none.
    """  # noqa: DOC202  (registered functions return)
    raise ArgumentError("kernel", EXPECTED, kernel)


@exponential_of.register
def _of_squared_exponential(kernel: SquaredExponential, dimension: int) -> Exponential:
    lengthscales = np.broadcast_to(np.asarray(kernel.lengthscale, float), (dimension,))
    return Exponential(1.0, 1 / lengthscales**2, np.zeros(dimension), np.zeros(dimension))


@exponential_of.register
def _of_periodic(kernel: Periodic, dimension: int) -> Exponential:
    lengthscales = np.broadcast_to(np.asarray(kernel.lengthscale, float), (dimension,))
    periods = np.broadcast_to(np.asarray(kernel.period, float), (dimension,))
    return Exponential(1.0, np.zeros(dimension), 2 * np.pi / periods, 1 / lengthscales**2)


@exponential_of.register
def _of_product(kernel: Product, dimension: int) -> Exponential:
    left, right = exponential_of(kernel.left, dimension), exponential_of(kernel.right, dimension)
    return left.times(right)


@exponential_of.register
def _of_scaled(kernel: Scaled, dimension: int) -> Exponential:
    part = exponential_of(kernel.kernel, dimension)
    return dataclasses.replace(part, size=part.size * float(kernel.factor))


@exponential_of.register
def _of_restricted(kernel: Restricted, dimension: int) -> Exponential:
    positions = np.array(kernel.positions)
    part = exponential_of(kernel.kernel, len(positions))
    rows = np.zeros((3, dimension))
    rows[:, positions] = part.precisions, part.angular, part.chords
    return Exponential(part.size, *rows)


@dataclasses.dataclass(frozen=True)
class Part:
    """One kernel with its centres: what a posterior knows by it.

    Attributes:
        exponential: The kernel.
        centres: The centres u, as points, (r, d).
        coefficients: Weights of the kernel values in the mean of each column, (p, r).
        root: W with variance = prior + sign |k(z, U) W|², (r, s).
        prior: The variance without data, or 0.
        sign: −1 if data lower the prior variance, +1 if the square is the variance.
    """

    exponential: Exponential
    centres: np.ndarray
    coefficients: np.ndarray
    root: np.ndarray
    prior: float
    sign: float


@functools.singledispatch
def parts_of(engine: Engine, dimension: int) -> list[Part]:
    """Write an engine as parts, each with its own kernel.

    Args:
        engine: The engine.
        dimension: The number of coordinates of a point.

    Returns:
        The parts.

    Raises:
        ArgumentError: If its kernel is no exponential.
    """  # noqa: DOC202  (registered functions return)
    raise ArgumentError("engine", EXPECTED, type(engine).__name__)


@parts_of.register
def _of_inducing(engine: InducingEngine, dimension: int) -> list[Part]:
    kernels: Any = engine.kernels
    used = np.flatnonzero(np.asarray(engine.used))
    embedded = np.asarray(engine.inducing_points)[used]
    parts = []
    for number, kernel in enumerate(kernels.kernels()):
        exponential = exponential_of(kernel, dimension)
        root = np.asarray(engine.variance_root)[number][used]
        coefficients = np.asarray(engine.coefficients)[number : number + 1, used]
        centres = _points_of(kernels, embedded, dimension)
        parts.append(Part(exponential, centres, coefficients, root, exponential.size, -1.0))
    return parts


def _points_of(kernels: ARDKernels, embedded: np.ndarray, dimension: int) -> np.ndarray:
    """Inducing points as they were before cosines and sines replaced angles."""
    points = embedded[:, :dimension].copy()
    angles = getattr(kernels, "angles", ())
    for place, axis in enumerate(angles):
        angle = np.arctan2(embedded[:, dimension + place], embedded[:, axis])
        points[:, axis] = angle / float(kernels.angular[axis])
    return points


@parts_of.register
def _of_weights(engine: WeightEngine, dimension: int) -> list[Part]:
    basis = engine.basis
    if not isinstance(basis, NystromBasis):
        raise ArgumentError("engine", EXPECTED, type(basis).__name__)
    exponential = exponential_of(basis.kernel, dimension)
    centres, weights = np.asarray(basis.centres, float), np.asarray(engine.weights, float)
    root = np.asarray(engine.root, float)
    return [Part(exponential, centres, weights.T, root, 0.0, 1.0)]


def kernel_sums(posterior: Posterior, *, scale: np.ndarray, offset: Any) -> dict[str, np.ndarray]:
    """Write a posterior as sums of squared exponentials.

    Args:
        posterior: The posterior.
        scale: The unit of each output, (m,).
        offset: A function of points (n, d) that is added to the scaled outputs, or None.

    Returns:
        ``level`` (m,) and ``slopes`` (m, d) of the affine part, ``angular`` (d,), ``precisions``
        (e, 3 d) and ``centres`` (e, r, 3 d) of the kernels, ``weights`` (m, e, r), ``roots``
        (e, r, s), ``prior`` (e,), ``sign`` (e,) and ``shares`` (m, e).

    Raises:
        ArgumentError: If a kernel is no exponential, or a mean function is not affine.
    """
    d = posterior.dimension
    engines = [parts_of(engine, d) for engine in posterior.engines]
    parts = [part for own_parts in engines for part in own_parts]
    angular = np.max([part.exponential.angular for part in parts], axis=0)
    for part in parts:
        periods = part.exponential.angular
        if (periods != angular)[periods > 0].any():
            raise ArgumentError("kernel", "one period for each coordinate", "several")
    rank, width = (max(part.root.shape[axis] for part in parts) for axis in (0, 1))
    count = len(parts)
    centres, roots = np.zeros((count, rank, 3 * d)), np.zeros((count, rank, width))
    for number, part in enumerate(parts):
        used, size = len(part.centres), part.exponential.size
        centres[number, :used] = embedded_points(part.centres, angular)
        roots[number, :used, : part.root.shape[1]] = size * part.root
    weights, shares = _outputs(posterior, engines, rank)
    level, slopes = _affine(posterior, scale, offset)
    precisions = [np.tile(part.exponential.chords, 2) for part in parts]
    precisions = [
        np.concatenate([part.exponential.precisions, chords])
        for part, chords in zip(parts, precisions, strict=True)
    ]
    return {
        "level": level,
        "slopes": slopes,
        "angular": angular,
        "precisions": np.array(precisions),
        "centres": centres,
        "weights": scale[:, None, None] * weights,
        "roots": roots,
        "prior": np.array([part.prior for part in parts]),
        "sign": np.array([part.sign for part in parts]),
        "shares": scale[:, None] ** 2 * shares,
    }


def embedded_points(points: np.ndarray, angular: np.ndarray) -> np.ndarray:
    """Append cosines and sines of all coordinates. Those that are no angles have factor 0.

    Args:
        points: The points, (n, d).
        angular: Factors that turn coordinates into angles, (d,).

    Returns:
        The embedded points, (n, 3 d).

    >>> embedded_points(np.array([[2.0]]), np.array([0.0])).tolist()
    [[2.0, 1.0, 0.0]]
    """
    angles = points * angular
    return np.concatenate([points, np.cos(angles), np.sin(angles)], axis=1)


def _outputs(
    posterior: Posterior, engines: list[list[Part]], rank: int
) -> tuple[np.ndarray, np.ndarray]:
    """How the outputs depend on the parts. Layouts are linear, so ones at each place tell it."""
    layout, m = posterior.layout, posterior.outputs
    parts = [part for own_parts in engines for part in own_parts]
    columns = [sum(len(part.coefficients) for part in own_parts) for own_parts in engines]
    weights, shares = np.zeros((m, len(parts), rank)), np.zeros((m, len(parts)))
    number = 0
    for e, own_parts in enumerate(engines):
        place = 0
        for order, part in enumerate(own_parts):
            for coefficients in part.coefficients:
                given = [jnp.zeros((1, count)) for count in columns]
                given[e] = given[e].at[0, place].set(1.0)
                outputs = np.asarray(layout.values(given))[0]
                used = len(part.centres)
                values = part.exponential.size * coefficients
                weights[:, number, :used] += outputs[:, None] * values
                place += 1
            several = len(own_parts) > 1 or posterior.engine == "inducing"
            ones = [jnp.zeros((1, len(one)) if several else 1) for one in engines]
            index = (0, order) if several else 0
            ones[e] = ones[e].at[index].set(1.0)
            shares[:, number] = np.asarray(layout.variances(ones))[0]
            number += 1
    return weights, shares


def _affine(posterior: Posterior, scale: np.ndarray, offset: Any) -> tuple[np.ndarray, np.ndarray]:
    """The level and the slopes of the part that is not learned."""
    d = posterior.dimension

    def known(points: np.ndarray) -> np.ndarray:
        values = scale * np.asarray(posterior.mean(jnp.asarray(points)))
        return values if offset is None else values + np.asarray(offset(jnp.asarray(points)))

    level = known(np.zeros((1, d)))[0]
    slopes = (known(np.eye(d)) - level).T
    points = np.random.default_rng(0).normal(size=(10, d))
    values = known(points)
    if np.abs(values - level - points @ slopes.T).max() > ROUNDING * (1 + np.abs(values).max()):
        raise ArgumentError("mean", "an affine function of the point", posterior.mean)
    return level, slopes
