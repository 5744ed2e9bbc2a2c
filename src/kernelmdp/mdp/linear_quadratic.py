"""Linear dynamics and quadratic costs: s' = As + Ba + ε, reward −(sᵀPs + 2 sᵀNa + aᵀQa).

The paper maximises sᵀPs + aᵀQa, which has no maximum. The Riccati recursion needs the sign that is
used here (note B15). With z = (s, a), Θ = [A B] and C = [[P, N], [Nᵀ, Q]], the mean next state is
Θz and the cost is zᵀCz.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.model import Prediction
from kernelmdp.numerics.factorisation import cholesky, solve_lower, solve_lower_transposed
from kernelmdp.numerics.modules import Module, jit

#: Number of further points at which a model is compared with the matrices read off it. A model that
#: is not linear-quadratic almost surely differs at one of them.
CHECK_POINTS = 4
#: Largest difference there, relative to the model's size. It is far above round-off.
FIT_TOLERANCE = 1e-6


class LinearQuadraticSystem(Module):
    """The matrices of a linear-quadratic MDP.

    Attributes:
        dynamics: Θ = [A B], (m, d).
        cost: C, symmetric, (d, d).
        noise: Covariance of ε, (m, m).
    """

    dynamics: Float[Array, "m d"]
    cost: Float[Array, "d d"]
    noise: Float[Array, "m m"]

    @property
    def A(self) -> Float[Array, "m m"]:  # noqa: N802  (the symbol everyone knows)
        """How the next state depends on the state, (m, m)."""
        return self.dynamics[:, : self.dynamics.shape[0]]

    @property
    def B(self) -> Float[Array, "m q"]:  # noqa: N802
        """How the next state depends on the action, (m, q)."""
        return self.dynamics[:, self.dynamics.shape[0] :]

    @property
    def cost_blocks(self) -> tuple[Float[Array, "m m"], Float[Array, "m q"], Float[Array, "q q"]]:
        """The blocks P (m, m), N (m, q) and Q (q, q) of the cost."""
        m = self.dynamics.shape[0]
        return self.cost[:m, :m], self.cost[:m, m:], self.cost[m:, m:]


class RiccatiSolution(NamedTuple):
    """The optimal policy a = −K_h s and its cost to go sᵀG_h s + c_h.

    Attributes:
        gains: K_h for h = 1..H, (H, q, m).
        curvatures: G_h for h = 1..H + 1, (H + 1, m, m).
        constants: c_h for h = 1..H + 1, (H + 1,).
    """

    gains: Float[Array, "H q m"]
    curvatures: Float[Array, "H1 m m"]
    constants: Float[Array, " H1"]


def riccati(
    A: Float[Array, "m m"],
    B: Float[Array, "m q"],
    P: Float[Array, "m m"],
    Q: Float[Array, "q q"],
    horizon: int,
    noise: Float[Array, "m m"],
    *,
    cross: Float[Array, "m q"] | None = None,
    terminal: Float[Array, "m m"] | None = None,
) -> RiccatiSolution:
    """Compute the optimal policy over H periods and its cost.

    K_h = (Q + BᵀG_{h+1}B)⁻¹ (BᵀG_{h+1}A + Nᵀ),  G_h = P + AᵀG_{h+1}A − (BᵀG_{h+1}A + Nᵀ)ᵀK_h,
    c_h = c_{h+1} + tr(G_{h+1} Σ_ε)  (note D8; N is the cross term).

    Args:
        A: How the next state depends on the state, (m, m).
        B: How the next state depends on the action, (m, q).
        P: Cost of the state, (m, m).
        Q: Cost of the action, (q, q).
        horizon: The number of periods H.
        noise: Covariance Σ_ε of the noise, (m, m).
        cross: Cost N of state times action, (m, q). None means 0.
        terminal: Cost G_{H+1} of the last state, (m, m). None means 0.

    Returns:
        The solution. If Q + BᵀGB is not positive definite at a period, the cost has no minimum, and
        the solution is NaN from there backwards.
    """
    N = jnp.zeros_like(B) if cross is None else cross
    last = jnp.zeros_like(P) if terminal is None else terminal

    def step(after: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], tuple[Array, ...]]:
        G, c = after
        input_effect = B.T @ G
        root = cholesky(_symmetric(Q + input_effect @ B))
        half_solved = solve_lower(root, input_effect @ A + N.T)
        K = solve_lower_transposed(root, half_solved)
        before = _symmetric(P + A.T @ G @ A - half_solved.T @ half_solved)
        total = c + jnp.sum(G * noise)
        return (before, total), (K, before, total)

    start = (last, jnp.zeros((), P.dtype))
    _, (gains, curvatures, constants) = jax.lax.scan(step, start, None, length=horizon)
    return RiccatiSolution(
        gains[::-1],
        jnp.concatenate([curvatures[::-1], last[None]]),
        jnp.concatenate([constants[::-1], jnp.zeros(1, P.dtype)]),
    )


def optimal_solution(system: LinearQuadraticSystem, horizon: int) -> RiccatiSolution:
    """Solve a system by ``riccati``.

    Args:
        system: The matrices.
        horizon: The number of periods H.

    Returns:
        The solution.
    """
    P, N, Q = system.cost_blocks
    return riccati(system.A, system.B, P, Q, horizon, system.noise, cross=N)


def quadratic_form(values: Float[Array, " k"], dimension: int) -> Float[Array, "d d"]:
    """Find the symmetric M with zᵀMz = values, by polarisation.

    Args:
        values: Values at the ``probe_points``, (k,). The first d(d + 1)/2 of them are used.
        dimension: The dimension d of z.

    Returns:
        M, (d, d).
    """
    diagonal = values[:dimension]
    rows, columns = np.triu_indices(dimension, 1)
    pair_values = values[dimension : dimension + len(rows)]
    off_diagonal = (pair_values - diagonal[rows] - diagonal[columns]) / 2
    upper = jnp.zeros((dimension, dimension), values.dtype).at[rows, columns].set(off_diagonal)
    return upper + upper.T + jnp.diag(diagonal)


@functools.lru_cache(maxsize=32)
def probe_points(dimension: int) -> np.ndarray:
    """List the points at which a model is evaluated to find its matrices.

    Args:
        dimension: The dimension d of z.

    Returns:
        The unit vectors e_i, their sums e_i + e_j, then 0 and further points for checks, (k, d).
    """
    unit = np.eye(dimension)
    rows, columns = np.triu_indices(dimension, 1)
    checks = np.random.default_rng(0).uniform(-2, 2, (CHECK_POINTS, dimension))
    return np.concatenate([unit, unit[rows] + unit[columns], np.zeros((1, dimension)), checks])


def quadratic_misfit(values: Float[Array, " k"], form: Float[Array, "d d"]) -> Float[Array, ""]:
    """Measure how far values at the ``probe_points`` are from a quadratic form.

    Args:
        values: The values, (k,).
        form: The matrix of the quadratic form, (d, d).

    Returns:
        The largest difference, relative to the largest value.
    """
    points = jnp.asarray(probe_points(form.shape[0]))
    differences = jnp.abs(values - jnp.sum((points @ form) * points, axis=1))
    return jnp.max(differences) / (1e-9 + jnp.max(jnp.abs(values)))


def linear_quadratic_from_prediction(
    mdp: MDP, prediction: Prediction
) -> tuple[LinearQuadraticSystem, Float[Array, ""]]:
    """Find the matrices of an MDP from a prediction. This can be traced.

    Args:
        mdp: The MDP.
        prediction: The prediction of its model at the ``probe_points``.

    Returns:
        The matrices, and how badly they fit the prediction, relative to its size.
    """
    d, m = mdp.points.dimension, mdp.states.dimension
    points = jnp.asarray(probe_points(d))
    dynamics = prediction.state[:d].T
    cost = quadratic_form(-prediction.reward, d)
    misfit = jnp.max(jnp.abs(prediction.state - points @ dynamics.T))
    misfit = misfit / (1e-9 + jnp.max(jnp.abs(prediction.state)))
    deviations = jnp.asarray(mdp.transition_noise.standard_deviations(m))
    system = LinearQuadraticSystem(dynamics, cost, jnp.diag(deviations**2))
    return system, jnp.maximum(misfit, quadratic_misfit(-prediction.reward, cost))


def linear_quadratic_system(mdp: MDP) -> LinearQuadraticSystem:
    """Find the matrices of a linear-quadratic MDP. Other MDPs raise an ArgumentError.

    The matrices are read off the model's values at unit vectors and their sums. They are then
    compared with the model at further points.

    Args:
        mdp: The MDP.

    Returns:
        The matrices.
    """
    system, misfit = _system(mdp)
    require_fit(float(misfit))
    return system


def require_fit(misfit: float) -> None:
    """Check that a model is linear-quadratic up to round-off.

    Args:
        misfit: How badly the matrices fit the model, relative to its size.

    Raises:
        ArgumentError: If the fit is too bad.
    """
    if not misfit <= FIT_TOLERANCE:
        raise ArgumentError(
            "mdp",
            "linear mean transitions and quadratic mean rewards, both 0 at 0 (for other models use "
            "the grid planner)",
            f"a model that is off by {misfit:.2g} of its size",
        )


@jit
def _system(mdp: MDP) -> tuple[LinearQuadraticSystem, Array]:
    return linear_quadratic_from_prediction(
        mdp, mdp.model(jnp.asarray(probe_points(mdp.points.dimension)))
    )


def solvable_cost(
    cost: Float[Array, "d d"],
    state_dimension: int,
    *,
    floor: Float[Array, ""],
    least: Float[Array, ""],
) -> Float[Array, "d d"]:
    """Raise eigenvalues of a cost so that Q ⪰ floor·I and P − NQ⁻¹Nᵀ ⪰ least·I.

    Then every Q + BᵀGB is positive definite and the Riccati recursion has a solution. A cost that
    satisfies both is unchanged.

    Args:
        cost: The cost C, (d, d).
        state_dimension: The dimension m of a state.
        floor: The least eigenvalue of Q, a scalar.
        least: The least eigenvalue of P − NQ⁻¹Nᵀ, a scalar.

    Returns:
        The raised cost, (d, d).
    """
    m = state_dimension
    P, N, Q = cost[:m, :m], cost[:m, m:], cost[m:, m:]
    raised = _at_least(Q, floor)
    half_solved = solve_lower(cholesky(raised), N.T)
    P = _at_least(P - half_solved.T @ half_solved, least) + half_solved.T @ half_solved
    return jnp.block([[P, N], [N.T, raised]])


def _at_least(matrix: Float[Array, "n n"], least: Float[Array, ""]) -> Float[Array, "n n"]:
    """The symmetric matrix with its eigenvalues raised to at least a number."""
    values, vectors = jnp.linalg.eigh(_symmetric(matrix))
    missing = jnp.maximum(least - values, 0.0)
    return _symmetric(matrix) + (vectors * missing[None, :]) @ vectors.T


def _symmetric(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    return (matrix + matrix.T) / 2
