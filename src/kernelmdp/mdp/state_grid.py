"""State spaces laid out as nodes, with the expectation of a function over noisy next states.

For V known at the nodes, U(p) = E V(Π_S(p + ε)) is the paper's U_h. Smoothing V by the noise once
(one small matrix an axis) and interpolating U at the mean next state p costs far less than noise
nodes inside every interpolation. Near the border of a box U is wanted a little outside it too,
where V is not defined: the lattice of U reaches beyond the nodes by a few noise sizes.
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

#: Nodes of the quadrature along an axis, and how many deviations of noise the lattice reaches out.
QUADRATURE, REACH = 9, 4.0


class Stencil(NamedTuple):
    """Where to read a table for n points: indices and the weights they count with.

    >>> Stencil(where=jnp.array([[0, 1]]), weight=jnp.array([[0.25, 0.75]])).weight.sum()
    Array(1., dtype=float64)
    """

    where: Int[Array, "n c"]
    weight: Float[Array, "n c"]

    def read(self, table: Float[Array, " N"]) -> Float[Array, " n"]:
        """The table at the points."""
        return jnp.sum(table[self.where] * self.weight, axis=1)


class MixtureWeights(NamedTuple):
    """Every entry of a table, with n vectors of weights that sum to 1.

    Weights may be negative where beliefs put them. Brought back to probabilities, draws would lose
    much of their spread, and with it exploration; clipped is what they say of an expected value.
    """

    weight: Float[Array, "n N"]

    def read(self, table: Float[Array, " N"]) -> Float[Array, " n"]:
        """The expected entry; never more than the largest or less than the smallest."""
        return jnp.clip(self.weight @ table, jnp.min(table), jnp.max(table))


TablePositions: TypeAlias = Stencil | MixtureWeights


@dataclasses.dataclass(frozen=True)
class StateGrid:
    """Nodes of a state space and the noise its transitions have.

    ``counts`` are nodes along each axis of a box (ignored for a finite set, whose points are the
    nodes). Tables over nodes are flat arrays; the lattice of U has its own, larger, size.

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
        """Node coordinates along each axis of a box; a periodic axis leaves out its end."""
        low, high = self.states.bounds
        return [
            np.linspace(a, b, n, endpoint=j not in self.states.periodic)
            for j, (a, b, n) in enumerate(zip(low, high, self.counts, strict=True))
        ]

    @functools.cached_property
    def spacing(self) -> np.ndarray:
        """Distance of neighbouring nodes along each axis."""
        return np.array([axis[1] - axis[0] for axis in self.axes])

    @functools.cached_property
    def nodes(self) -> np.ndarray:
        """All nodes, (N, m)."""
        if self.states.finite:
            return np.array(self.states.points)
        return np.stack([g.ravel() for g in np.meshgrid(*self.axes, indexing="ij")], axis=1)

    @functools.cached_property
    def _pads(self) -> tuple[int, ...]:
        """How many places the lattice of U has beyond each end of an axis."""
        sd = self.noise.standard_deviations(self.states.dimension)
        return tuple(
            0 if j in self.states.periodic else min(math.ceil(REACH * s / h - 1e-9), n)
            for j, (s, h, n) in enumerate(zip(sd, self.spacing, self.counts, strict=True))
        )

    @functools.cached_property
    def lattice_shape(self) -> tuple[int, ...]:
        """Places of the lattice of U along each axis."""
        if self.states.finite:
            return (len(self.nodes),)
        return tuple(n + 2 * pad for n, pad in zip(self.counts, self._pads, strict=True))

    @functools.cached_property
    def lattice(self) -> np.ndarray:
        """All places of the lattice of U, flat."""
        if self.states.finite:
            return self.nodes
        axes = [
            axis[0] + step * np.arange(-pad, len(axis) + pad)
            for axis, step, pad in zip(self.axes, self.spacing, self._pads, strict=True)
        ]
        return np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)

    @functools.cached_property
    def _smoothing(self) -> list[np.ndarray]:
        """For each axis the matrix from V at nodes to U on the lattice."""
        unit, weights = self.noise.quadrature(QUADRATURE)
        sizes = self.noise.along(self.states.dimension)
        matrices = []
        for j, (axis, h, pad) in enumerate(zip(self.axes, self.spacing, self._pads, strict=True)):
            n, places = len(axis), np.arange(-pad, len(axis) + pad)
            where = places[:, None] + sizes[j] * unit[None, :] / h
            around = j in self.states.periodic
            where = np.mod(where, n) if around else np.clip(where, 0, n - 1)
            low = np.minimum(np.floor(where), n - 1 if around else n - 2).astype(int)
            share = where - low
            matrix = np.zeros((len(places), n))
            rows = np.broadcast_to(np.arange(len(places))[:, None], low.shape)
            np.add.at(matrix, (rows, low), (1 - share) * weights[None, :])
            np.add.at(matrix, (rows, (low + 1) % n), share * weights[None, :])
            matrices.append(matrix)
        return matrices

    def expectation(self, values: Float[Array, " N"]) -> Float[Array, " M"]:
        """U on the lattice from V at the nodes. (In a finite set noise is in the stencil.)"""
        if self.states.finite or not any(self.noise.sizes):
            return values
        table = values.reshape(self.counts)
        for j, matrix in enumerate(self._smoothing):
            table = jnp.moveaxis(
                jnp.tensordot(jnp.asarray(matrix, values.dtype), table, axes=(1, j)), 0, j
            )
        return table.reshape(-1)

    def stencil(self, means: Float[Array, "n k"]) -> TablePositions:
        """How to read U at mean next states, which may lie outside the state space."""
        if self.noise.categorical:
            # U(p) = ⟨p, V⟩. A draw or a mean of beliefs need not be a distribution.
            surplus = jnp.mean(means, axis=1, keepdims=True) - 1 / means.shape[1]
            return MixtureWeights(means - surplus)
        if self.states.finite:
            return self._nearest_stencil(means)
        low = jnp.asarray(self.states.bounds[0])[None, :]
        where = (means - low) / jnp.asarray(self.spacing)[None, :]
        corners, weights = [], []
        for j, (n, pad) in enumerate(zip(self.lattice_shape, self._pads, strict=True)):
            place = where[:, j] + pad
            around = j in self.states.periodic
            place = jnp.mod(place, n) if around else jnp.clip(place, 0, n - 1)
            base = jnp.minimum(jnp.floor(place), n - 1 if around else n - 2)
            share = place - base
            first = base.astype(jnp.int32)
            corners.append((first, (first + 1) % n))
            weights.append((1 - share, share))
        index, weight = [], []
        for corner in itertools.product((0, 1), repeat=len(corners)):
            flat = jnp.zeros(means.shape[0], jnp.int32)
            product = jnp.ones(means.shape[0], means.dtype)
            for j, side in enumerate(corner):
                flat = flat * self.lattice_shape[j] + corners[j][side]
                product = product * weights[j][side]
            index.append(flat)
            weight.append(product)
        return Stencil(jnp.stack(index, axis=1), jnp.stack(weight, axis=1))

    def _nearest_stencil(self, means: Float[Array, "n m"]) -> Stencil:
        """In a finite set: every noise node, brought to the nearest state."""
        m = self.states.dimension
        nodes = jnp.asarray(self.nodes)
        unit, weights = self.noise.quadrature(QUADRATURE if any(self.noise.sizes) else 1)
        offsets = np.array(list(itertools.product(unit, repeat=m))) * self.noise.along(m)
        shares = np.array([math.prod(w) for w in itertools.product(weights, repeat=m)])
        outcomes = means[:, None, :] + jnp.asarray(offsets)[None, :, :]
        gaps = jnp.sum((outcomes[:, :, None, :] - nodes[None, None, :, :]) ** 2, axis=3)
        index = jnp.argmin(gaps, axis=2).astype(jnp.int32)
        weight = jnp.broadcast_to(jnp.asarray(shares)[None, :], index.shape)
        return Stencil(index, weight)

    def value_at(self, values: Float[Array, " N"], states: Float[Array, "n m"]) -> Array:
        """V itself at states, by interpolation between nodes."""
        return _value_at(self, values, states)


@jit
def _value_at(grid: StateGrid, values: Array, states: Array) -> Array:
    silent = dataclasses.replace(grid, noise=NO_NOISE)
    return silent.stencil(states).read(values)
