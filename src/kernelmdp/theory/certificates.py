"""Certificates: bounds of the regret of one run, computed from its confidence sets (note A7).

A theorem bounds the regret of every run in advance. After a run you know which points it visited
and how wide its confidence sets were there, so its bound is tighter. Both certificates hold if the
truth lies in the sets, and need nothing else about the truth.

>>> import kernelmdp as km
>>> km.theory.certificates.RegretCertificate.__name__
'RegretCertificate'
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.confidence import ConfidenceSets
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.mdp import MDP, Policy, StateGrid
from kernelmdp.planners import Plan
from kernelmdp.planners.pessimism import pessimistic_values


@dataclasses.dataclass(frozen=True)
class RegretCertificate:
    """A bound of the regret of a run, with its probability and assumptions.

    Attributes:
        name: The name of the certificate.
        total: The bound of the regret.
        parts: Its parts by name, whose sum is the total.
        probability: The probability with which the bound holds.
        assumes: What must be true besides.
        episode_bounds: A bound for each episode, (τ,). None if the certificate has none.
    """

    name: str
    total: float
    parts: dict[str, float]
    probability: float
    assumes: tuple[str, ...]
    episode_bounds: np.ndarray | None = None


def visited_widths(sets: ConfidenceSets, points: Float[Array, "n d"]) -> tuple[float, float]:
    """Sum the half-widths of an episode's sets at the visited points.

    Args:
        sets: The confidence sets of the episode.
        points: The visited points z_h, (n, d).

    Returns:
        Σ_h β_R σ_R(z_h) and Σ_h ρ(z_h).
    """
    reward, radius = sets.half_widths(jnp.asarray(points, float))
    return float(jnp.sum(reward)), float(jnp.sum(radius))


def martingale_term(
    *, reward_bound: float, horizon: int, episodes: int, delta: float, share: float = 3.0
) -> float:
    """Compute B_R√κ √(2 ln(3/δ) τ H(H−1)(2H−1)/6), the martingale part of certificate (i).

    This is Azuma's inequality in its range form, with a separate width for every period (note B20,
    P8).

    Args:
        reward_bound: B_R√κ, or any other bound of |R̄|.
        horizon: The number of periods H.
        episodes: The number τ of episodes, fixed in advance.
        delta: The probability δ with which the certificate may fail.
        share: δ/share is the probability that is spent on this part. The formula has 3.

    Returns:
        The bound.

    Raises:
        ArgumentError: If δ is not between 0 and 1.

    >>> print(round(martingale_term(reward_bound=1, horizon=2, episodes=12, delta=0.1), 4))
    9.0349
    """
    if not 0 < delta < 1:
        raise ArgumentError("delta", "a probability between 0 and 1", delta)
    squares = horizon * (horizon - 1) * (2 * horizon - 1) / 6
    return reward_bound * math.sqrt(2 * math.log(share / delta) * episodes * squares)


def sum_certificate(
    reward_widths: Any,
    transition_widths: Any,
    *,
    lipschitz: float,
    reward_bound: float,
    horizon: int,
    delta: float,
    share: float = 3.0,
    assumes: Sequence[str] = (),
) -> RegretCertificate:
    """Compute certificate (i), from the widths of the sets at the visited points.

    Σ_l [2 Σ_h β_R σ_R(z_lh) + 2L Σ_h ρ_l(z_lh)] + martingale term, with probability 1 − δ.

    Args:
        reward_widths: Σ_h β_R σ_R(z_lh) of each episode, (τ,), from ``visited_widths`` or a stored
            run.
        transition_widths: Σ_h ρ_l(z_lh) of each episode, (τ,).
        lipschitz: The Lipschitz constant L. With one period it is not used.
        reward_bound: A bound of |R̄|.
        horizon: The number of periods H.
        delta: The probability δ with which the certificate may fail.
        share: δ/share is the probability that is spent on the martingale term.
        assumes: Further assumptions to report.

    Returns:
        The certificate.

    Raises:
        ShapeError: If the widths have different shapes.
    """
    reward, radius = (np.asarray(widths, float) for widths in (reward_widths, transition_widths))
    if reward.shape != radius.shape or reward.ndim != 1:
        raise ShapeError("transition_widths", f"shape {reward.shape}, one an episode", radius.shape)
    slope = 0.0 if horizon == 1 else float(lipschitz)
    parts = {
        "reward": 2 * float(np.sum(reward)),
        # 0 · ∞ counts as 0: if all radii are 0, L does not matter.
        "transition": 2 * slope * float(np.sum(radius)) if np.any(radius > 0) and slope else 0.0,
        "martingale": martingale_term(
            reward_bound=reward_bound,
            horizon=horizon,
            episodes=len(reward),
            delta=delta,
            share=share,
        ),
    }
    return RegretCertificate(
        "certificate (i): widths where the run went",
        sum(parts.values()),
        parts,
        1 - delta,
        ("the number of episodes was fixed in advance", *assumes),
    )


def episode_gap(
    family: MDP,
    plan: Plan,
    grid: StateGrid,
    start: Any,
    *,
    optimism: str = "ball",
    policy: Policy | None = None,
) -> float:
    """Compute the gap V̄_1(s) − V̲^π_1(s) of an episode, for certificate (ii).

    It is the optimistic value of the plan minus the worst plausible value of its policy. Both are
    values on the grid.

    Args:
        family: The family of all plausible MDPs (``sets.family``).
        plan: The optimistic plan.
        grid: The grid of the planner.
        start: The first state, (m,).
        optimism: "ball" or "bonus", as the planner's.
        policy: The policy π that was played. None means the policy of the plan.

    Returns:
        The gap, which bounds the regret of the episode if the truth is plausible.
    """
    played = plan.policy if policy is None else policy
    worst = pessimistic_values(family, played, grid, optimism)[0]
    row = jnp.asarray(start, float)[None, :]
    return plan.value(start) - float(grid.value_at(worst, row)[0])


def one_period_gap(family: MDP, plan: Plan, point: Float[Array, " d"], start: Any) -> float:
    """Compute the gap of an episode with H = 1, for certificate (ii).

    It is the planned value minus the least plausible reward of the played point.

    Args:
        family: The family of all plausible MDPs (``sets.family``).
        plan: The optimistic plan.
        point: The played point z = (s, a), (d,).
        start: The first state, (m,).

    Returns:
        The gap, which bounds the regret of the episode if the truth is plausible.
    """
    prediction = family.model(jnp.asarray(point, float)[None, :])
    assert prediction.reward_width is not None
    least = prediction.reward[0] - prediction.reward_width[0]
    return plan.value(start) - float(jnp.clip(least, *family.reward_range))


def gap_certificate(
    gaps: Any, *, delta: float, share: float = 3.0, assumes: Sequence[str] = ()
) -> RegretCertificate:
    """Compute certificate (ii), from the gaps between optimistic and pessimistic values.

    Each gap bounds the regret of its episode, for all episodes at once with probability 1 − 2δ/3.

    Args:
        gaps: The gap of each episode, (τ,), from ``episode_gap`` or ``one_period_gap``.
        delta: The probability δ of the confidence sets and a martingale term together.
        share: δ/share is the probability of the martingale term, which is not needed here.
        assumes: Further assumptions to report.

    Returns:
        The certificate.
    """
    episode_bounds = np.asarray(gaps, float)
    return RegretCertificate(
        "certificate (ii): optimistic minus pessimistic",
        float(np.sum(episode_bounds)),
        {"gaps": float(np.sum(episode_bounds))},
        1 - (share - 1) * delta / share,
        tuple(assumes),
        episode_bounds,
    )
