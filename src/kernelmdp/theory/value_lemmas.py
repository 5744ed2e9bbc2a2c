"""Lemmas about values and probabilities as checks (note A8, h to k).

>>> import kernelmdp as km
>>> km.theory.value_lemmas.coverage([0.4, 0.9, 0.7], miss_probability=0.1).holds
True
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float

from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.mdp import MDP, Policy, StateGrid, policy_values
from kernelmdp.numerics.checks import integer
from kernelmdp.numerics.modules import jit
from kernelmdp.theory.check import Check, at_most, equal


def value_difference(
    believed: MDP, truth: MDP, policy: Policy, grid: StateGrid, start: Any
) -> Check:
    """Check (h), the value difference identity.

    V^M_π(s) − V*_π(s) = E_{M*,π} Σ_h [(R_M − R*)(z_h) + (E_{P_M} − E_{P*}) V^M_{π,h+1}].

    The left side is two backward recursions. The right side follows the distribution of states
    under the truth forward, so the two share no sum. The paper has an inequality instead (lemma of
    value differences, appendix B).

    Args:
        believed: The MDP M.
        truth: The true MDP M*.
        policy: The policy π.
        grid: The grid on which both are evaluated.
        start: The state s, (m,).

    Returns:
        The result.
    """
    state = jnp.asarray(start, float)
    left, right = _difference(believed, truth, policy, grid, state)
    return equal("(h) value difference identity", left, right, note="both sides are equal")


@jit
def _difference(
    believed: MDP, truth: MDP, policy: Policy, grid: StateGrid, start: Array
) -> tuple[Array, Array]:
    """Both sides of the identity."""
    nodes = jnp.asarray(grid.nodes)
    believed_values, true_values = (policy_values(mdp, policy, grid) for mdp in (believed, truth))

    def value_at_start(values: Array) -> Array:
        return grid.value_at(values, start[None, :])[0]

    def forward(weights: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        period, after = row
        points = jnp.concatenate([nodes, policy.at_nodes(grid, period)], axis=1)
        believed_prediction, true_prediction = believed.model(points), truth.model(points)
        positions = grid.stencil(true_prediction.state)

        def expected(values: Array) -> Array:
            return positions.read(grid.expectation(values))

        gap = believed_prediction.reward - true_prediction.reward
        gap = (
            gap
            + grid.stencil(believed_prediction.state).read(grid.expectation(after))
            - expected(after)
        )
        # The step of a distribution is the transpose of the expectation.
        _, transpose = jax.vjp(expected, after)
        return transpose(weights)[0], weights @ gap

    weights = jax.grad(value_at_start)(believed_values[0])
    _, terms = jax.lax.scan(forward, weights, (jnp.arange(truth.horizon), believed_values[1:]))
    return value_at_start(believed_values[0]) - value_at_start(true_values[0]), jnp.sum(terms)


@jit
def martingale_differences(
    truth: MDP,
    tables: Float[Array, "H1 N"],
    grid: StateGrid,
    states: Float[Array, "H1 m"],
    actions: Float[Array, "H q"],
) -> tuple[Float[Array, " h"], Float[Array, " h"]]:
    """Compute the martingale differences Δ_h of one episode, and the ranges of X.

    Δ_h = E_{P*(z_h)}[X_{h+1}] − X_{h+1}(s_{h+1}) for h < H. E[Δ | past] = 0 up to the interpolation
    error of the grid.

    Args:
        truth: The true MDP M*.
        tables: X at the nodes, (H + 1, N), fixed before the episode. For GP-UCRL it is the planned
            value minus the value of the policy.
        grid: The grid of N nodes.
        states: The visited states, (H + 1, m).
        actions: The actions, (H, q).

    Returns:
        Δ_h and max X_{h+1} − min X_{h+1}, each (H − 1,).
    """
    means = truth.model(jnp.concatenate([states[:-1], actions], axis=1)).state

    def difference(after: Array, mean: Array, state: Array) -> Array:
        expected = grid.stencil(mean[None, :]).read(grid.expectation(after))[0]
        return expected - grid.value_at(after, state[None, :])[0]

    later = tables[1:-1]
    ranges = jnp.max(later, axis=1) - jnp.min(later, axis=1)
    return jax.vmap(difference)(later, means[:-1], states[1:-1]), ranges


def martingale(
    differences: Any, ranges: Any, *, level: float = 1e-3, tolerance: float = 0.0
) -> Check:
    """Check (i), Azuma's inequality in its range form: |Σ Δ| ≤ √(ln(2/level) Σ range²/2).

    It holds because E[Δ | past] = 0 for Δ_lh = E_{P*}[X_{h+1}] − X_{h+1}(s_{l,h+1}), where X is any
    function that is fixed before the step.

    Args:
        differences: The differences Δ, of any shape.
        ranges: The ranges max X − min X, of the same shape.
        level: The probability with which the check fails by chance.
        tolerance: An allowance for a known error of the sum.

    Returns:
        The result.

    Raises:
        ShapeError: If the shapes differ.
    """
    delta, widths = np.asarray(differences, float), np.asarray(ranges, float)
    if delta.shape != widths.shape:
        raise ShapeError("ranges", f"shape {delta.shape}, as the differences", widths.shape)
    bound = math.sqrt(0.5 * math.log(2 / _probability("level", level)) * float(np.sum(widths**2)))
    return at_most(
        "(i) martingale differences within Azuma",
        abs(float(np.sum(delta))),
        bound,
        tolerance=tolerance,
        note=f"fails by chance with probability {level:g}; {delta.size} differences",
    )


def coverage(
    ratios: Any, *, miss_probability: float, set_name: str = "sets", level: float = 0.05
) -> Check:
    """Check (j): confidence sets contain the truth in all episodes of a run.

    A run may miss with a small probability, such as δ/3. The left side is the number of runs that
    miss. The right side is the largest number that is compatible with this probability.

    Args:
        ratios: The largest |error|/width of each episode, (runs, E).
        miss_probability: The probability with which a run may miss.
        set_name: The name of the sets in the result.
        level: The probability with which the check fails by chance.

    Returns:
        The result.

    >>> coverage([[0.3, 0.9]], miss_probability=0.1 / 3).holds
    True
    >>> coverage([[0.3, 1.2]], miss_probability=0.1 / 3).holds
    False
    """
    table = np.atleast_2d(np.asarray(ratios, float))
    _probability("miss_probability", miss_probability)
    # NaN counts as a miss, because it does not show that the truth is inside.
    missed = int(np.sum(~(table <= 1).all(axis=1)))
    runs = len(table)
    allowed = next(
        n
        for n in range(runs + 1)
        if scipy.stats.binom.sf(n, runs, miss_probability) <= _probability("level", level)
    )
    return at_most(
        f"(j) coverage: {set_name}",
        missed,
        allowed,
        note=f"largest error/width {np.max(table):.3g}; a run misses with probability at most "
        f"{miss_probability:.3g}",
    )


def posterior_ranks(ranks: Any, *, draws: int, bins: int = 10, level: float = 1e-3) -> Check:
    """Check (k): the rank of g(M*) among g of posterior draws is uniform on 0..draws.

    This is the posterior-sampling identity of Theorems 2 and 4. The test is χ² over equal bins.

    Args:
        ranks: The ranks, one for each run.
        draws: The number of posterior draws of each run.
        bins: The number of bins, a divisor of draws + 1.
        level: The probability with which the check fails by chance.

    Returns:
        The result.

    Raises:
        ArgumentError: If ``bins`` is no divisor of draws + 1, or a rank is out of range.
    """
    values = np.asarray(ranks)
    total = integer("draws", draws, least=1) + 1
    if total % integer("bins", bins, least=2):
        raise ArgumentError("bins", f"a divisor of draws + 1 = {total}", bins)
    if values.size == 0 or (values < 0).any() or (values >= total).any():
        raise ArgumentError("ranks", f"ranks from 0 to {draws}", values)
    counts = np.histogram(values, bins=bins, range=(0, total))[0]
    left = float(scipy.stats.chisquare(counts).statistic)
    return at_most(
        "(k) posterior-sampling identity: ranks are uniform",
        left,
        float(scipy.stats.chi2.isf(_probability("level", level), bins - 1)),
        note=f"χ² of {values.size} ranks; fails by chance with probability {level:g}",
    )


def _probability(argument: str, value: float) -> float:
    if not 0 < value < 1:
        raise ArgumentError(argument, "a probability between 0 and 1", value)
    return value
