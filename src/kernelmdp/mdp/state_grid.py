"""Grids of nodes over a state space, and expectations of functions over noisy next states.

For V known at the nodes, U(p) = E V(Π_S(p + ε)) is the paper's U_h. V is smoothed by the noise
once, with one small matrix an axis, and U is then interpolated at the mean next states p. This
costs far less than quadrature in every interpolation. Means may lie outside a box, where V is not
defined. So the lattice of U extends beyond the nodes by a few standard deviations of the noise.
"""

import dataclasses
import functools
import itertools
import math
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from kernelmdp.domains import Box, Domain, FiniteSet
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.mdp.noise import NO_NOISE, Noise
from kernelmdp.numerics.modules import jit

#: Number of quadrature nodes along an axis. More nodes are more accurate and make larger stencils
#: in finite sets.
QUADRATURE_NODES = 9
#: How far the lattice extends beyond the nodes, in standard deviations of the noise. Farther away U
#: hardly differs from its value at the border.
LATTICE_MARGIN = 4.0
#: Longest weighted sum that a stencil writes out term by term: 16 are the corners of a cell in four
#: dimensions. A loop over points with all terms in it takes a third of the time of a sum along an
#: axis. Longer sums would take longer to compile.
WRITTEN_OUT = 16


class Stencil(NamedTuple):
    """How to interpolate a table at n points: a weighted sum of c entries for each.

    Attributes:
        indices: Indices of the entries, (n, c).
        weights: Their weights, (n, c).

    >>> Stencil(indices=jnp.array([[0, 1]]), weights=jnp.array([[0.25, 0.75]])).weights.sum()
    Array(1., dtype=float64)
    """

    indices: Int[Array, "n c"]
    weights: Float[Array, "n c"]

    def read(self, table: Float[Array, " N"]) -> Float[Array, " n"]:
        """Interpolate a table at the points.

        Args:
            table: The table, (N,).

        Returns:
            The values, (n,).
        """
        terms = self.indices.shape[1]
        if terms > WRITTEN_OUT:
            return jnp.sum(table[self.indices] * self.weights, axis=1)
        total = table[self.indices[:, 0]] * self.weights[:, 0]
        for j in range(1, terms):
            total = total + table[self.indices[:, j]] * self.weights[:, j]
        return total


class MixtureWeights(NamedTuple):
    """Weights of all entries of a table at n points. They sum to 1.

    Weights of posterior means and draws may be negative. They are not projected to probabilities:
    draws would lose much of their spread, and agents would explore less. Only the expected values
    are clipped.

    Attributes:
        weights: The weights, (n, N).
    """

    weights: Float[Array, "n N"]

    def read(self, table: Float[Array, " N"]) -> Float[Array, " n"]:
        """Compute expected entries, clipped to the range of the table.

        Args:
            table: The table, (N,).

        Returns:
            The values, (n,).
        """
        return jnp.clip(self.weights @ table, jnp.min(table), jnp.max(table))


#: Where to read a table: at interpolated points, or as an expectation over all its entries.
TablePositions: TypeAlias = Stencil | MixtureWeights


@dataclasses.dataclass(frozen=True)
class StateGrid:
    """Nodes of a state space, and the noise of its transitions.

    Tables over nodes are flat arrays. The lattice of U is larger than the grid of nodes.

    Attributes:
        states: The state space, a Box or a FiniteSet.
        counts: Number of nodes along each axis of a box. It is ignored for a finite set, whose
            points are the nodes.
        noise: The noise of the next state.

    >>> from kernelmdp.domains import Box
    >>> from kernelmdp.mdp import Gaussian
    >>> StateGrid(Box([0.0], [1.0]), (5,), Gaussian(0.1)).nodes.ravel()
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """

    states: Domain
    counts: tuple[int, ...]
    noise: Noise

    def __post_init__(self) -> None:
        if not isinstance(self.states, Box | FiniteSet):
            raise ArgumentError("states", "a Box or a FiniteSet", self.states)
        if self.states.finite:
            return
        if len(self.counts) != self.states.dimension:
            raise ShapeError("state_points", f"{self.states.dimension} counts", self.counts)
        if min(self.counts) < 2:
            raise ArgumentError("state_points", "at least 2 nodes an axis", self.counts)

    @functools.cached_property
    def axes(self) -> list[np.ndarray]:
        """Node coordinates along each axis of a box. A periodic axis omits its upper end."""
        low, high = self.states.bounds
        return [
            np.linspace(a, b, n, endpoint=j not in self.states.periodic)
            for j, (a, b, n) in enumerate(zip(low, high, self.counts, strict=True))
        ]

    @functools.cached_property
    def spacing(self) -> np.ndarray:
        """Distance between neighbouring nodes along each axis, (m,)."""
        return np.array([axis[1] - axis[0] for axis in self.axes])

    @functools.cached_property
    def nodes(self) -> np.ndarray:
        """All nodes, (N, m)."""
        if self.states.finite:
            return np.array(self.states.points)
        return np.stack([g.ravel() for g in np.meshgrid(*self.axes, indexing="ij")], axis=1)

    @functools.cached_property
    def _pads(self) -> tuple[int, ...]:
        """Number of places of the lattice beyond each end of an axis."""
        deviations = self.noise.standard_deviations(self.states.dimension)
        return tuple(
            0 if j in self.states.periodic else min(math.ceil(LATTICE_MARGIN * s / h - 1e-9), n)
            for j, (s, h, n) in enumerate(zip(deviations, self.spacing, self.counts, strict=True))
        )

    @functools.cached_property
    def lattice_shape(self) -> tuple[int, ...]:
        """Number of places of the lattice of U along each axis."""
        if self.states.finite:
            return (len(self.nodes),)
        return tuple(n + 2 * pad for n, pad in zip(self.counts, self._pads, strict=True))

    @functools.cached_property
    def lattice(self) -> np.ndarray:
        """All places of the lattice of U, (M, m)."""
        if self.states.finite:
            return self.nodes
        axes = [
            axis[0] + step * np.arange(-pad, len(axis) + pad)
            for axis, step, pad in zip(self.axes, self.spacing, self._pads, strict=True)
        ]
        return np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)

    @functools.cached_property
    def _smoothing(self) -> list[np.ndarray]:
        """For each axis the matrix from V at the nodes to U on the lattice."""
        unit, weights = self.noise.quadrature(QUADRATURE_NODES)
        sizes = self.noise.axis_sizes(self.states.dimension)
        matrices = []
        for j, (axis, h, pad) in enumerate(zip(self.axes, self.spacing, self._pads, strict=True)):
            n, places = len(axis), np.arange(-pad, len(axis) + pad)
            positions = places[:, None] + sizes[j] * unit[None, :] / h
            periodic = j in self.states.periodic
            positions = np.mod(positions, n) if periodic else np.clip(positions, 0, n - 1)
            low = np.minimum(np.floor(positions), n - 1 if periodic else n - 2).astype(int)
            fraction = positions - low
            matrix = np.zeros((len(places), n))
            rows = np.broadcast_to(np.arange(len(places))[:, None], low.shape)
            np.add.at(matrix, (rows, low), (1 - fraction) * weights[None, :])
            np.add.at(matrix, (rows, (low + 1) % n), fraction * weights[None, :])
            matrices.append(matrix)
        return matrices

    def expectation(self, values: Float[Array, " N"]) -> Float[Array, " M"]:
        """Compute U on the lattice from V at the nodes.

        In a finite set this returns V, because the stencil contains the noise.

        Args:
            values: V at the nodes, (N,).

        Returns:
            U on the lattice, (M,).
        """
        if self.states.finite or not any(self.noise.sizes):
            return values
        table = values.reshape(self.counts)
        for j, matrix in enumerate(self._smoothing):
            table = jnp.moveaxis(
                jnp.tensordot(jnp.asarray(matrix, values.dtype), table, axes=(1, j)), 0, j
            )
        return table.reshape(-1)

    def stencil(self, means: Float[Array, "n k"]) -> TablePositions:
        """Find how to read U at mean next states.

        Args:
            means: The mean next states, (n, k). They may lie outside the state space. For a table
                they are weights of the states.

        Returns:
            The positions at which to read U.
        """
        if self.noise.categorical:
            # U(p) = ⟨p, V⟩. A posterior mean or draw need not be a distribution.
            surplus = jnp.mean(means, axis=1, keepdims=True) - 1 / means.shape[1]
            return MixtureWeights(means - surplus)
        if self.states.finite:
            return self._nearest_stencil(means)
        low = jnp.asarray(self.states.bounds[0])[None, :]
        scaled = (means - low) / jnp.asarray(self.spacing)[None, :]
        corners, weights = [], []
        for j, (n, pad) in enumerate(zip(self.lattice_shape, self._pads, strict=True)):
            position = scaled[:, j] + pad
            periodic = j in self.states.periodic
            position = jnp.mod(position, n) if periodic else jnp.clip(position, 0, n - 1)
            base = jnp.minimum(jnp.floor(position), n - 1 if periodic else n - 2)
            fraction = position - base
            first = base.astype(jnp.int32)
            corners.append((first, (first + 1) % n))
            weights.append((1 - fraction, fraction))
        corner_indices, corner_weights = [], []
        for corner in itertools.product((0, 1), repeat=len(corners)):
            flat = jnp.zeros(means.shape[0], jnp.int32)
            product = jnp.ones(means.shape[0], means.dtype)
            for j, side in enumerate(corner):
                flat = flat * self.lattice_shape[j] + corners[j][side]
                product = product * weights[j][side]
            corner_indices.append(flat)
            corner_weights.append(product)
        return Stencil(jnp.stack(corner_indices, axis=1), jnp.stack(corner_weights, axis=1))

    def _nearest_stencil(self, means: Float[Array, "n m"]) -> Stencil:
        """For a finite set: each quadrature node of the noise, rounded to the nearest state."""
        m = self.states.dimension
        nodes = jnp.asarray(self.nodes)
        unit, unit_weights = self.noise.quadrature(QUADRATURE_NODES if any(self.noise.sizes) else 1)
        offsets = np.array(list(itertools.product(unit, repeat=m))) * self.noise.axis_sizes(m)
        products = np.array([math.prod(w) for w in itertools.product(unit_weights, repeat=m)])
        outcomes = means[:, None, :] + jnp.asarray(offsets)[None, :, :]
        squared_distances = jnp.sum(
            (outcomes[:, :, None, :] - nodes[None, None, :, :]) ** 2, axis=3
        )
        indices = jnp.argmin(squared_distances, axis=2).astype(jnp.int32)
        weights = jnp.broadcast_to(jnp.asarray(products)[None, :], indices.shape)
        return Stencil(indices, weights)

    def value_at(self, values: Float[Array, " N"], states: Float[Array, "n m"]) -> Array:
        """Interpolate V at states.

        Args:
            values: V at the nodes, (N,).
            states: The states, (n, m).

        Returns:
            V at the states, (n,).
        """
        return _value_at(self, values, states)


@jit
def _value_at(grid: StateGrid, values: Array, states: Array) -> Array:
    noiseless = dataclasses.replace(grid, noise=NO_NOISE)
    return noiseless.stencil(states).read(values)
