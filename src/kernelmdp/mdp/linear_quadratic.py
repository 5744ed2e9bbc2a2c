"""Linear dynamics and quadratic costs: s' = As + Ba + ε, reward −(sᵀPs + 2 sᵀNa + aᵀQa).

The paper maximises sᵀPs + aᵀQa, which has no maximum; the sign here is the one that Riccati needs
(math B15). With z = (s, a), Θ = [A B] and C = [[P, N], [Nᵀ, Q]]: mean next state Θz, cost zᵀCz.
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

#: Points at which a model is compared with the matrices read off it, and how well it must fit.
CHECKS, FIT = 4, 1e-6


class LinearQuadraticSystem(Module):
    """The matrices of a linear-quadratic MDP."""

    dynamics: Float[Array, "m d"]  # Θ = [A B]
    cost: Float[Array, "d d"]  # C, symmetric
    noise: Float[Array, "m m"]  # covariance of ε

    @property
    def A(self) -> Float[Array, "m m"]:  # noqa: N802  (the symbol everyone knows)
        """How states follow states."""
        return self.dynamics[:, : self.dynamics.shape[0]]

    @property
    def B(self) -> Float[Array, "m q"]:  # noqa: N802
        """How states follow actions."""
        return self.dynamics[:, self.dynamics.shape[0] :]

    @property
    def blocks(self) -> tuple[Float[Array, "m m"], Float[Array, "m q"], Float[Array, "q q"]]:
        """P, N and Q."""
        m = self.dynamics.shape[0]
        return self.cost[:m, :m], self.cost[:m, m:], self.cost[m:, m:]


class RiccatiSolution(NamedTuple):
    """a = −K_h s and cost to go sᵀG_h s + c_h, for h = 1..H (and H + 1 for G and c)."""

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
    """The optimal policy over H periods and its cost, backwards from G_{H+1} = ``terminal`` or 0.

    K_h = (Q + BᵀG_{h+1}B)⁻¹ (BᵀG_{h+1}A + Nᵀ),  G_h = P + AᵀG_{h+1}A − (BᵀG_{h+1}A + Nᵀ)ᵀK_h,
    c_h = c_{h+1} + tr(G_{h+1} Σ_ε)  (math D8; N is the cross term). NaN from the first period on
    whose Q + BᵀGB is not positive definite: there the cost has no minimum.
    """
    N = jnp.zeros_like(B) if cross is None else cross
    last = jnp.zeros_like(P) if terminal is None else terminal

    def step(after: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], tuple[Array, ...]]:
        G, c = after
        reach = B.T @ G
        root = cholesky(_symmetric(Q + reach @ B))
        across = solve_lower(root, reach @ A + N.T)
        K = solve_lower_transposed(root, across)
        before = _symmetric(P + A.T @ G @ A - across.T @ across)
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
    """``riccati`` for a system."""
    P, N, Q = system.blocks
    return riccati(system.A, system.B, P, Q, horizon, system.noise, cross=N)


def quadratic_form(values: Float[Array, " k"], dimension: int) -> Float[Array, "d d"]:
    """The symmetric M with zᵀMz = values at the first d(d + 1)/2 ``probe_points``: polarisation."""
    own = values[:dimension]
    rows, columns = np.triu_indices(dimension, 1)
    both = values[dimension : dimension + len(rows)]
    half = (both - own[rows] - own[columns]) / 2
    upper = jnp.zeros((dimension, dimension), values.dtype).at[rows, columns].set(half)
    return upper + upper.T + jnp.diag(own)


@functools.lru_cache(maxsize=32)
def probe_points(dimension: int) -> np.ndarray:
    """Where a model is asked for its matrices: e_i, e_i + e_j, then 0 and points to check with."""
    unit = np.eye(dimension)
    rows, columns = np.triu_indices(dimension, 1)
    checks = np.random.default_rng(0).uniform(-2, 2, (CHECKS, dimension))
    return np.concatenate([unit, unit[rows] + unit[columns], np.zeros((1, dimension)), checks])


def quadratic_misfit(values: Float[Array, " k"], form: Float[Array, "d d"]) -> Float[Array, ""]:
    """How far values at the ``probe_points`` are from a quadratic form, in units of its size."""
    points = jnp.asarray(probe_points(form.shape[0]))
    off = jnp.abs(values - jnp.sum((points @ form) * points, axis=1))
    return jnp.max(off) / (1e-9 + jnp.max(jnp.abs(values)))


def linear_quadratic_from_prediction(
    mdp: MDP, prediction: Prediction
) -> tuple[LinearQuadraticSystem, Float[Array, ""]]:
    """The matrices behind an outlook at the ``probe_points``, and how badly they fit. Can be traced."""
    d, m = mdp.points.dimension, mdp.states.dimension
    points = jnp.asarray(probe_points(d))
    dynamics = prediction.state[:d].T
    cost = quadratic_form(-prediction.reward, d)
    off = jnp.max(jnp.abs(prediction.state - points @ dynamics.T))
    off = off / (1e-9 + jnp.max(jnp.abs(prediction.state)))
    deviations = jnp.asarray(mdp.transition_noise.standard_deviations(m))
    system = LinearQuadraticSystem(dynamics, cost, jnp.diag(deviations**2))
    return system, jnp.maximum(off, quadratic_misfit(-prediction.reward, cost))


def linear_quadratic_system(mdp: MDP) -> LinearQuadraticSystem:
    """The matrices of a linear-quadratic MDP; an error for any other.

    Read off the model's values at unit vectors and their sums, and compared with it elsewhere.
    """
    system, off = _system(mdp)
    require_fit(float(off))
    return system


def require_fit(off: float) -> None:
    """ArgumentError unless a model was linear-quadratic to rounding."""
    if not off <= FIT:
        raise ArgumentError(
            "mdp",
            "linear mean transitions and quadratic mean rewards, both 0 at 0 (for other models use "
            "the grid planner)",
            f"a model that is off by {off:.2g} of its size",
        )


@jit
def _system(mdp: MDP) -> tuple[LinearQuadraticSystem, Array]:
    return linear_quadratic_from_prediction(
        mdp, mdp.model(jnp.asarray(probe_points(mdp.points.dimension)))
    )


def solvable_cost(
    cost: Float[Array, "d d"], states: int, *, floor: Float[Array, ""], least: Float[Array, ""]
) -> Float[Array, "d d"]:
    """The cost with Q ⪰ floor·I and P − NQ⁻¹Nᵀ ⪰ least·I, by raising eigenvalues.

    Then every Q + BᵀGB is positive definite and Riccati has a solution. Nothing changes where
    both hold already.
    """
    P, N, Q = cost[:states, :states], cost[:states, states:], cost[states:, states:]
    raised = _at_least(Q, floor)
    half = solve_lower(cholesky(raised), N.T)
    P = _at_least(P - half.T @ half, least) + half.T @ half
    return jnp.block([[P, N], [N.T, raised]])


def _at_least(matrix: Float[Array, "n n"], least: Float[Array, ""]) -> Float[Array, "n n"]:
    values, vectors = jnp.linalg.eigh(_symmetric(matrix))
    missing = jnp.maximum(least - values, 0.0)
    return _symmetric(matrix) + (vectors * missing[None, :]) @ vectors.T


def _symmetric(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    return (matrix + matrix.T) / 2
