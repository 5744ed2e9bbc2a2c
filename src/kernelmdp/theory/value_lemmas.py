"""Lemmas about values, and about what happens by chance, as checks (math A8, h to k).

>>> import kernelmdp as km
>>> km.theory.value_lemmas.coverage([0.4, 0.9, 0.7], miss=0.1).holds
True
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import stats

from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.mdp import MDP, Policy, StateGrid, policy_values
from kernelmdp.numerics.checks import integer
from kernelmdp.numerics.modules import jit
from kernelmdp.theory.check import Check, at_most, equal


def value_difference(
    believed: MDP, truth: MDP, policy: Policy, grid: StateGrid, start: Any
) -> Check:
    """(h) V^M_π(s) − V*_π(s) = E_{M*,π} Σ_h [(R_M − R*)(z_h) + (E_{P_M} − E_{P*}) V^M_{π,h+1}].

    Both MDPs on one grid. The left side is two backward recursions; the right one follows the
    distribution of states under the truth forward, so that they share no sum. An identity, where
    the paper (Lemma of value differences, appendix B) has an inequality.
    """
    state = jnp.asarray(start, float)
    left, right = _difference(believed, truth, policy, grid, state)
    return equal("(h) value difference identity", left, right, note="both sides are equal")


@jit
def _difference(
    believed: MDP, truth: MDP, policy: Policy, grid: StateGrid, start: Array
) -> tuple[Array, Array]:
    nodes = jnp.asarray(grid.nodes)
    planned, actual = (policy_values(mdp, policy, grid) for mdp in (believed, truth))

    def first(values: Array) -> Array:
        return grid.value_at(values, start[None, :])[0]

    def forward(weights: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        period, after = row
        points = jnp.concatenate([nodes, policy.at_nodes(grid, period)], axis=1)
        here, there = believed.model(points), truth.model(points)
        places = grid.stencil(there.state)

        def expected(values: Array) -> Array:
            return places.read(grid.expectation(values))

        gap = here.reward - there.reward
        gap = gap + grid.stencil(here.state).read(grid.expectation(after)) - expected(after)
        # One step of the distribution is the transpose of the expectation.
        _, transpose = jax.vjp(expected, after)
        return transpose(weights)[0], weights @ gap

    begin = jax.grad(first)(planned[0])
    _, terms = jax.lax.scan(forward, begin, (jnp.arange(truth.horizon), planned[1:]))
    return first(planned[0]) - first(actual[0]), jnp.sum(terms)


@jit
def martingale_differences(
    truth: MDP,
    tables: Float[Array, "H1 N"],
    grid: StateGrid,
    states: Float[Array, "H1 m"],
    actions: Float[Array, "H q"],
) -> tuple[Float[Array, " h"], Float[Array, " h"]]:
    """Δ_h = E_{P*(z_h)}[X_{h+1}] − X_{h+1}(s_{h+1}) of one episode, h < H, and the ranges of X.

    ``tables`` are X at the nodes of the grid, fixed before the episode: for GP-UCRL the plan's
    values minus those of its policy. Up to what the grid interpolates E[Δ | past] = 0.
    """
    means = truth.model(jnp.concatenate([states[:-1], actions], axis=1)).state

    def one(after: Array, mean: Array, state: Array) -> Array:
        expected = grid.stencil(mean[None, :]).read(grid.expectation(after))[0]
        return expected - grid.value_at(after, state[None, :])[0]

    later = tables[1:-1]
    ranges = jnp.max(later, axis=1) - jnp.min(later, axis=1)
    return jax.vmap(one)(later, means[:-1], states[1:-1]), ranges


def martingale(
    differences: Any, ranges: Any, *, level: float = 1e-3, tolerance: float = 0.0
) -> Check:
    """(i) |Σ Δ| ≤ √(ln(2/level) Σ range²/2): E[Δ | past] = 0, Azuma in its range form.

    Δ_lh = E_{P*}[X_{h+1}] − X_{h+1}(s_{l,h+1}) with X any function fixed before the step, and its
    range max X − min X; both of any one shape. Fails by chance with probability ``level``.
    """
    delta, wide = np.asarray(differences, float), np.asarray(ranges, float)
    if delta.shape != wide.shape:
        raise ShapeError("ranges", f"shape {delta.shape}, as the differences", wide.shape)
    bound = math.sqrt(0.5 * math.log(2 / _probability("level", level)) * float(np.sum(wide**2)))
    return at_most(
        "(i) martingale differences within Azuma",
        abs(float(np.sum(delta))),
        bound,
        tolerance=tolerance,
        note=f"fails by chance with probability {level:g}; {delta.size} differences",
    )


def coverage(ratios: Any, *, miss: float, what: str = "sets", level: float = 0.05) -> Check:
    """(j) Sets hold the truth in all episodes of a run, but with probability ``miss`` (δ/3).

    ``ratios`` (runs, E) are largest |error|/width of every episode. Left is the number of runs
    with a miss, right how many chance allows: fewer than would happen with probability ``level``
    or less, if runs missed with probability ``miss``.

    >>> coverage([[0.3, 0.9]], miss=0.1 / 3).holds
    True
    >>> coverage([[0.3, 1.2]], miss=0.1 / 3).holds
    False
    """
    table = np.atleast_2d(np.asarray(ratios, float))
    _probability("miss", miss)
    # A ratio that is not a number is no evidence that the truth is inside.
    missed = int(np.sum(~(table <= 1).all(axis=1)))
    runs = len(table)
    allowed = next(
        n for n in range(runs + 1) if stats.binom.sf(n, runs, miss) <= _probability("level", level)
    )
    return at_most(
        f"(j) coverage: {what}",
        missed,
        allowed,
        note=f"largest error/width {np.max(table):.3g}; a run misses with probability at most "
        f"{miss:.3g}",
    )


def posterior_ranks(ranks: Any, *, draws: int, bins: int = 10, level: float = 1e-3) -> Check:
    """(k) The rank of g(M*) among g of ``draws`` posterior draws is uniform on 0..draws.

    χ² over equal bins, the posterior-sampling identity of Theorems 2 and 4; ``draws`` + 1 must be a
    multiple of ``bins``. Fails by chance with probability ``level``.
    """
    found = np.asarray(ranks)
    total = integer("draws", draws, least=1) + 1
    if total % integer("bins", bins, least=2):
        raise ArgumentError("bins", f"a divisor of draws + 1 = {total}", bins)
    if found.size == 0 or (found < 0).any() or (found >= total).any():
        raise ArgumentError("ranks", f"ranks from 0 to {draws}", found)
    counts = np.histogram(found, bins=bins, range=(0, total))[0]
    left = float(stats.chisquare(counts).statistic)
    return at_most(
        "(k) posterior-sampling identity: ranks are uniform",
        left,
        float(stats.chi2.isf(_probability("level", level), bins - 1)),
        note=f"χ² of {found.size} ranks; fails by chance with probability {level:g}",
    )


def _probability(argument: str, value: float) -> float:
    if not 0 < value < 1:
        raise ArgumentError(argument, "a probability between 0 and 1", value)
    return value
