"""Special cases whose gains are formulas: linear-quadratic control and tables."""

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

#: Mean indices of states as numbers, as the paper takes tables (math B12).
INDEX_WARNING = (
    "states as numbers: the Lipschitz assumption fails for general chains; this holds only for "
    "deterministic transitions and the like (math B12); the other versions embed states one-hot"
)


class LQRConstants(NamedTuple):
    """Constants of a linear-quadratic system on balls: B_R, B_P and L."""

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
    """B_R = √(‖P‖_F² + ‖Q‖_F²), B_P = √(‖A‖_F² + ‖B‖_F²) and L = 2ρ max_h λ_max(G_h).

    P and Q are made symmetric, which changes no reward but the norm.
    The paper's Dλ_1 is this for a ball around 0 and one G for all periods; rewards are −cost, as a
    positive reward has no Riccati solution (math B15).

    >>> found = lqr_constants(
    ...     state_matrix=[[0.9]], input_matrix=[[1.0]], state_cost=[[1.0]], input_cost=[[1.0]],
    ...     horizon=1, state_radius=2.0,
    ... )
    >>> print(f"{found.norm_reward:.3f} {found.norm_transition:.3f} {found.lipschitz:.1f}")
    1.414 1.345 0.0
    """
    A, B, P, Q = (
        np.atleast_2d(np.asarray(own, dtype=float))
        for own in (state_matrix, input_matrix, state_cost, input_cost)
    )
    P, Q = (P + P.T) / 2, (Q + Q.T) / 2
    H, radius = integer("horizon", horizon, least=1), positive_number("state_radius", state_radius)
    still = jnp.zeros(A.shape)  # noise adds a constant only
    solution = riccati(jnp.asarray(A), jnp.asarray(B), jnp.asarray(P), jnp.asarray(Q), H, still)
    later = np.asarray(solution.curvatures)[1:]  # U_h is about V_{h+1}
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
    **words: Any,
) -> Bound:
    """Theorem 1 for linear-quadratic control on balls (paper, Corollary 1), with its constants.

    k_R = (s·s')² + (a·a')² has rank r = m(m+1)/2 + q(q+1)/2 and κ_R = ρ_S⁴ + ρ_A⁴, so
    γ_T ≤ (r/2)ln(1 + Tκ_R/(rλ)); k_P = (s·s' + a·a')1{i=j} has κ_P = ρ_S² + ρ_A² and
    γ_T ≤ m(d/2)ln(1 + Tκ_P/(dλ)). The paper only gives the order, and needs κ ≤ 1: its version and
    the repaired one are for k/κ, under which norms are √κ times as large. ``words`` are those of
    ``theorem1``; see ``lqr_constants`` for norms and L.

    >>> bound = corollary1(
    ...     state_dimension=2, action_dimension=1, state_radius=1, action_radius=1, horizon=5,
    ...     episodes=1000, norm_reward=1, norm_transition=1, reward_noise=0.1,
    ...     transition_noise=0.1, lipschitz=2,
    ... )
    >>> print(f"{bound.value:.0f} of {bound.trivial:.0f}")
    8704 of 14142
    """
    sizes = (state_dimension, action_dimension, state_radius, action_radius)
    own = _quadratic_words(*sizes, norm_reward, norm_transition, version)
    return dataclasses.replace(theorem1(**own, **words), theorem="Corollary 1")


def corollary2(
    *,
    state_dimension: int,
    action_dimension: int,
    state_radius: float,
    action_radius: float,
    norm_reward: float,
    norm_transition: float,
    version: str = "improved",
    **words: Any,
) -> Bound:
    """Theorem 2 for linear-quadratic control (paper, Corollary 2), as ``corollary1``.

    The paper treats the random λ_1 as a constant; ``lipschitz`` is √E[L*²] (math B15).

    >>> bound = corollary2(
    ...     state_dimension=2, action_dimension=1, state_radius=1, action_radius=1, horizon=5,
    ...     episodes=1000, norm_reward=1, norm_transition=1, reward_noise=0.1,
    ...     transition_noise=0.1, lipschitz=2,
    ... )
    >>> bound.theorem
    'Corollary 2'
    """
    sizes = (state_dimension, action_dimension, state_radius, action_radius)
    own = _quadratic_words(*sizes, norm_reward, norm_transition, version)
    return dataclasses.replace(theorem2(**own, **words), theorem="Corollary 2")


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
    **words: Any,
) -> Bound:
    """Theorem 1 for tables of S states and A actions, with exact gains (math A7, D4).

    States are embedded one-hot: m = S, σ_P² = 1/2, B_P = √(SA), B_R = √(SA) sup|R̄|, and
    L = √S (H − 1) sup|R̄|, all but the last two without an assumption. version="paper" takes the
    states as the numbers 1..S instead (m = 1), as the paper does; that has a warning.

    >>> bound = tabular(states=3, actions=2, horizon=4, episodes=10_000)
    >>> print(f"{bound.value:.3g} of {bound.trivial:.3g}")
    2.43e+05 of 8e+04
    """
    S, A = integer("states", states, least=1), integer("actions", actions, least=1)
    H, top = integer("horizon", horizon, least=1), positive_number("reward_bound", reward_bound)

    def gain(n: int, regulariser: float) -> float:
        return closed_forms.one_hot(cells=S * A, n=n, noise_variance=regulariser)

    as_numbers = version == "paper"
    m = 1 if as_numbers else S
    usual = S * math.sqrt(S * A) if as_numbers else math.sqrt(S * A)
    steep = 2 * top * (H - 1) if as_numbers else math.sqrt(S) * top * (H - 1)
    bound = theorem1(
        horizon=H,
        norm_reward=math.sqrt(S * A) * top,
        norm_transition=usual if norm_transition is None else norm_transition,
        reward_noise=reward_noise,
        transition_noise=(S - 1) / 2 if as_numbers else math.sqrt(0.5),
        lipschitz=steep if lipschitz is None else lipschitz,
        diameter=S - 1 if as_numbers else None,
        state_dimension=m,
        gain_reward=gain,
        gain_transition=lambda n, regulariser: m * gain(n, regulariser),
        reward_bound=top,
        version=version,
        **words,
    )
    notes = (*bound.warnings, INDEX_WARNING) if as_numbers else bound.warnings
    return dataclasses.replace(bound, theorem="Tabular", warnings=notes, exponent=0.5)


def _quadratic_words(
    state_dimension: int,
    action_dimension: int,
    state_radius: float,
    action_radius: float,
    norm_reward: float,
    norm_transition: float,
    version: str,
) -> dict[str, Any]:
    m = integer("state_dimension", state_dimension, least=1)
    q = integer("action_dimension", action_dimension, least=0)
    far = positive_number("state_radius", state_radius)
    wide = positive_number("action_radius", action_radius) if q else 0.0
    tops = [far**4 + wide**4, far**2 + wide**2]
    ranks = [m * (m + 1) // 2 + q * (q + 1) // 2, m + q]
    norms = [norm_reward, norm_transition]
    if version != "improved":  # k/κ has κ = 1, and √κ times the norm
        norms = [norm * math.sqrt(top) for norm, top in zip(norms, tops, strict=True)]
        tops = [1.0, 1.0]

    def gain(i: int, n: int, regulariser: float) -> float:
        return closed_forms.finite_rank(
            rank=ranks[i], variance_bound=tops[i], n=n, noise_variance=regulariser
        )

    return {
        "norm_reward": norms[0],
        "norm_transition": norms[1],
        "gain_reward": lambda n, regulariser: gain(0, n, regulariser),
        "gain_transition": lambda n, regulariser: m * gain(1, n, regulariser),
        "variance_bound_reward": tops[0],
        "variance_bound_transition": tops[1],
        "state_dimension": m,
        "version": version,
    }
