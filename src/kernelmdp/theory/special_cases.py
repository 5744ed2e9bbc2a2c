"""Special cases in which information gains have formulas: linear-quadratic control and tables."""

import dataclasses
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.information import closed_forms
from kernelmdp.mdp.linear_quadratic import riccati
from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.theory.bound import Bound
from kernelmdp.theory.rkhs_theorems import theorem1, theorem2

#: Warning of the paper's version for tables, which treats states as numbers (note B12).
INDEX_WARNING = (
    "states as numbers: the Lipschitz assumption fails for general chains; this holds only for "
    "deterministic transitions and the like (note B12); the other versions embed states one-hot"
)


class LQRConstants(NamedTuple):
    """Constants of a linear-quadratic system on balls.

    Attributes:
        norm_reward: The norm B_R of the reward.
        norm_transition: The norm B_P of the transition.
        lipschitz: The Lipschitz constant L.
    """

    norm_reward: float
    norm_transition: float
    lipschitz: float


def lqr_constants(
    *,
    state_matrix: Any,
    input_matrix: Any,
    state_cost: Any,
    input_cost: Any,
    horizon: int,
    state_radius: float,
) -> LQRConstants:
    """Compute the norms and the Lipschitz constant of a linear-quadratic system.

    B_R = √(‖P‖_F² + ‖Q‖_F²), B_P = √(‖A‖_F² + ‖B‖_F²) and L = 2ρ max_h λ_max(G_h). P and Q are made
    symmetric, which changes no reward, but the norm. The paper's Dλ_1 is this L for a ball around 0
    and one G for all periods. Rewards are −cost, because a positive reward has no Riccati solution
    (note B15).

    Args:
        state_matrix: A, (m, m).
        input_matrix: B, (m, q).
        state_cost: P, (m, m).
        input_cost: Q, (q, q).
        horizon: The number of periods H.
        state_radius: The radius ρ of the ball of states.

    Returns:
        The constants.

    Raises:
        ArgumentError: If the cost has no minimum.

    >>> constants = lqr_constants(
    ...     state_matrix=[[0.9]], input_matrix=[[1.0]], state_cost=[[1.0]], input_cost=[[1.0]],
    ...     horizon=1, state_radius=2.0,
    ... )
    >>> print("{:.3f} {:.3f} {:.1f}".format(*constants))
    1.414 1.345 0.0
    """
    A, B, P, Q = (
        np.atleast_2d(np.asarray(matrix, dtype=float))
        for matrix in (state_matrix, input_matrix, state_cost, input_cost)
    )
    P, Q = (P + P.T) / 2, (Q + Q.T) / 2
    H, radius = integer("horizon", horizon, least=1), positive_number("state_radius", state_radius)
    no_noise = jnp.zeros(A.shape)  # noise only adds a constant
    solution = riccati(jnp.asarray(A), jnp.asarray(B), jnp.asarray(P), jnp.asarray(Q), H, no_noise)
    later = np.asarray(solution.curvatures)[1:]  # U_h depends on V_{h+1}
    if not np.isfinite(later).all():
        raise ArgumentError("input_cost", "a matrix for which the cost has a minimum", input_cost)
    return LQRConstants(
        norm_reward=math.hypot(np.linalg.norm(P), np.linalg.norm(Q)),
        norm_transition=math.hypot(np.linalg.norm(A), np.linalg.norm(B)),
        lipschitz=2 * radius * float(np.linalg.eigvalsh(later).max()),
    )


def corollary1(
    *,
    state_dimension: int,
    action_dimension: int,
    state_radius: float,
    action_radius: float,
    norm_reward: float,
    norm_transition: float,
    version: str = "improved",
    **arguments: Any,
) -> Bound:
    """Compute Theorem 1 for linear-quadratic control on balls (paper, Corollary 1).

    k_R = (s·s')² + (a·a')² has rank r = m(m+1)/2 + q(q+1)/2 and κ_R = ρ_S⁴ + ρ_A⁴, so
    γ_T ≤ (r/2)ln(1 + Tκ_R/(rλ)); k_P = (s·s' + a·a')1{i=j} has κ_P = ρ_S² + ρ_A² and
    γ_T ≤ m(d/2)ln(1 + Tκ_P/(dλ)). The paper only gives the order, and needs κ ≤ 1. So its version
    and the repaired one are for k/κ, under which norms are √κ times as large.

    Args:
        state_dimension: The dimension m of a state.
        action_dimension: The dimension q of an action.
        state_radius: The radius ρ_S of the ball of states.
        action_radius: The radius ρ_A of the ball of actions.
        norm_reward: The norm B_R of the reward, from ``lqr_constants``.
        norm_transition: The norm B_P of the transition, from ``lqr_constants``.
        version: "paper", "repaired" or "improved".
        **arguments: Other arguments of ``theorem1``. ``lqr_constants`` computes its ``lipschitz``.

    Returns:
        The bound.

    >>> bound = corollary1(
    ...     state_dimension=2, action_dimension=1, state_radius=1, action_radius=1, horizon=5,
    ...     episodes=1000, norm_reward=1, norm_transition=1, reward_noise=0.1,
    ...     transition_noise=0.1, lipschitz=2,
    ... )
    >>> print(f"{bound.value:.0f} of {bound.trivial:.0f}")
    8704 of 14142
    """
    sizes = (state_dimension, action_dimension, state_radius, action_radius)
    quadratic = _quadratic_arguments(*sizes, norm_reward, norm_transition, version)
    return dataclasses.replace(theorem1(**quadratic, **arguments), theorem="Corollary 1")


def corollary2(
    *,
    state_dimension: int,
    action_dimension: int,
    state_radius: float,
    action_radius: float,
    norm_reward: float,
    norm_transition: float,
    version: str = "improved",
    **arguments: Any,
) -> Bound:
    """Compute Theorem 2 for linear-quadratic control on balls (paper, Corollary 2).

    It has the gains of ``corollary1``. The paper treats the random λ_1 as a constant. Here
    ``lipschitz`` is √E[L*²] (note B15).

    Args:
        state_dimension: The dimension m of a state.
        action_dimension: The dimension q of an action.
        state_radius: The radius ρ_S of the ball of states.
        action_radius: The radius ρ_A of the ball of actions.
        norm_reward: The norm B_R of the reward, from ``lqr_constants``.
        norm_transition: The norm B_P of the transition, from ``lqr_constants``.
        version: "paper", "repaired" or "improved".
        **arguments: Other arguments of ``theorem2``.

    Returns:
        The bound.

    >>> bound = corollary2(
    ...     state_dimension=2, action_dimension=1, state_radius=1, action_radius=1, horizon=5,
    ...     episodes=1000, norm_reward=1, norm_transition=1, reward_noise=0.1,
    ...     transition_noise=0.1, lipschitz=2,
    ... )
    >>> bound.theorem
    'Corollary 2'
    """
    sizes = (state_dimension, action_dimension, state_radius, action_radius)
    quadratic = _quadratic_arguments(*sizes, norm_reward, norm_transition, version)
    return dataclasses.replace(theorem2(**quadratic, **arguments), theorem="Corollary 2")


def tabular(
    *,
    states: int,
    actions: int,
    horizon: int,
    reward_bound: float = 1.0,
    reward_noise: float = 0.1,
    version: str = "improved",
    norm_transition: float | None = None,
    lipschitz: float | None = None,
    **arguments: Any,
) -> Bound:
    """Compute Theorem 1 for tables of S states and A actions, with exact gains (note A7, D4).

    States are embedded one-hot: m = S, σ_P² = 1/2, B_P = √(SA), B_R = √(SA) sup|R̄|, and
    L = √S (H − 1) sup|R̄|. All but the last two need no assumption. Version "paper" treats states as
    the numbers 1..S instead (m = 1), as the paper does. Such bounds have a warning.

    Args:
        states: The number of states S.
        actions: The number of actions A.
        horizon: The number of periods H.
        reward_bound: A bound of sup|R̄|.
        reward_noise: The sub-Gaussian proxy of the reward's noise.
        version: "paper", "repaired" or "improved".
        norm_transition: The norm B_P. None takes the value above.
        lipschitz: The Lipschitz constant L. None takes the value above.
        **arguments: Other arguments of ``theorem1``.

    Returns:
        The bound.

    >>> bound = tabular(states=3, actions=2, horizon=4, episodes=10_000)
    >>> print(f"{bound.value:.3g} of {bound.trivial:.3g}")
    2.43e+05 of 8e+04
    """
    S, A = integer("states", states, least=1), integer("actions", actions, least=1)
    H, R = integer("horizon", horizon, least=1), positive_number("reward_bound", reward_bound)

    def gain(n: int, regulariser: float) -> float:
        return closed_forms.one_hot(cells=S * A, n=n, noise_variance=regulariser)

    as_numbers = version == "paper"
    m = 1 if as_numbers else S
    default_norm = S * math.sqrt(S * A) if as_numbers else math.sqrt(S * A)
    default_lipschitz = 2 * R * (H - 1) if as_numbers else math.sqrt(S) * R * (H - 1)
    bound = theorem1(
        horizon=H,
        norm_reward=math.sqrt(S * A) * R,
        norm_transition=default_norm if norm_transition is None else norm_transition,
        reward_noise=reward_noise,
        transition_noise=(S - 1) / 2 if as_numbers else math.sqrt(0.5),
        lipschitz=default_lipschitz if lipschitz is None else lipschitz,
        diameter=S - 1 if as_numbers else None,
        state_dimension=m,
        gain_reward=gain,
        gain_transition=lambda n, regulariser: m * gain(n, regulariser),
        reward_bound=R,
        version=version,
        **arguments,
    )
    warnings = (*bound.warnings, INDEX_WARNING) if as_numbers else bound.warnings
    return dataclasses.replace(bound, theorem="Tabular", warnings=warnings, exponent=0.5)


def _quadratic_arguments(
    state_dimension: int,
    action_dimension: int,
    state_radius: float,
    action_radius: float,
    norm_reward: float,
    norm_transition: float,
    version: str,
) -> dict[str, Any]:
    """The arguments of Theorems 1 and 2 that follow from dimensions, radii and norms."""
    m = integer("state_dimension", state_dimension, least=1)
    q = integer("action_dimension", action_dimension, least=0)
    rho_state = positive_number("state_radius", state_radius)
    rho_action = positive_number("action_radius", action_radius) if q else 0.0
    kappas = [rho_state**4 + rho_action**4, rho_state**2 + rho_action**2]
    ranks = [m * (m + 1) // 2 + q * (q + 1) // 2, m + q]
    norms = [norm_reward, norm_transition]
    if version != "improved":  # k/κ has κ = 1, and √κ times the norm
        norms = [norm * math.sqrt(kappa) for norm, kappa in zip(norms, kappas, strict=True)]
        kappas = [1.0, 1.0]

    def gain(i: int, n: int, regulariser: float) -> float:
        return closed_forms.finite_rank(
            rank=ranks[i], variance_bound=kappas[i], n=n, noise_variance=regulariser
        )

    return {
        "norm_reward": norms[0],
        "norm_transition": norms[1],
        "gain_reward": lambda n, regulariser: gain(0, n, regulariser),
        "gain_transition": lambda n, regulariser: m * gain(1, n, regulariser),
        "variance_bound_reward": kappas[0],
        "variance_bound_transition": kappas[1],
        "state_dimension": m,
        "version": version,
    }
