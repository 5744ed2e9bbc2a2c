"""Numbers that bound the regret of one run, computed from its own sets (math A7).

A theorem bounds the regret of every run before it happens. Afterwards one knows where the run went
and how wide its confidence sets were there, which says more. Both certificates need the event that
the truth lies in the sets, and nothing else about the truth.

>>> import kernelmdp as km
>>> km.theory.certificates.RegretCertificate.__name__
'Certificate'
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
    """With ``probability``, and if what it ``assumes`` is true, the regret is at most ``total``.

    ``parts`` add up to the total; ``episodes`` has a bound for each episode where there is one.
    """

    name: str
    total: float
    parts: dict[str, float]
    probability: float
    assumes: tuple[str, ...]
    episodes: np.ndarray | None = None


def visited_widths(sets: ConfidenceSets, points: Float[Array, "n d"]) -> tuple[float, float]:
    """Σ_h β_R σ_R(z_h) and Σ_h ρ(z_h): half-widths of an episode's sets where it went, z (n, d)."""
    reward, radius = sets.half_widths(jnp.asarray(points, float))
    return float(jnp.sum(reward)), float(jnp.sum(radius))


def martingale_term(
    *, reward_bound: float, horizon: int, episodes: int, delta: float, share: float = 3.0
) -> float:
    """B_R√κ √(2 ln(3/δ) τ H(H−1)(2H−1)/6), for a number τ of episodes fixed in advance.

    ``reward_bound`` is B_R√κ, or any bound of |R̄|; δ/``share`` is the probability left for it.
    Azuma in its range form with a width of its own for every period (math B20, P8).

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
    """(i) Σ_l [2 Σ_h β_R σ_R(z_lh) + 2L Σ_h ρ_l(z_lh)] + martingale term, with probability 1 − δ.

    Widths (τ,) are sums over the periods of each episode, as ``visited_widths`` gives them and as
    runs store them. With one period next states do not matter, and L is not used.
    """
    reward, radius = (np.asarray(each, float) for each in (reward_widths, transition_widths))
    if reward.shape != radius.shape or reward.ndim != 1:
        raise ShapeError("transition_widths", f"shape {reward.shape}, one an episode", radius.shape)
    slope = 0.0 if horizon == 1 else float(lipschitz)
    parts = {
        "reward": 2 * float(np.sum(reward)),
        # 0 · ∞ is 0 here: where nothing is unknown L does not matter.
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
    """(ii) V̄_1(s) − V̲^π_1(s): the optimistic plan minus the worst that its policy may be worth.

    ``family`` is the MDP of all plausible means (``sets.family``), ``grid`` the planner's nodes.
    Both values are those of the grid.
    """
    played = plan.policy if policy is None else policy
    worst = pessimistic_values(family, played, grid, optimism)[0]
    row = jnp.asarray(start, float)[None, :]
    return plan.value(start) - float(grid.value_at(worst, row)[0])


def one_period_gap(family: MDP, plan: Plan, point: Float[Array, " d"], start: Any) -> float:
    """(ii) with H = 1: the planned value minus the least plausible reward of the point played."""
    prediction = family.model(jnp.asarray(point, float)[None, :])
    assert prediction.reward_width is not None
    least = prediction.reward[0] - prediction.reward_width[0]
    return plan.value(start) - float(jnp.clip(least, *family.reward_range))


def gap_certificate(
    gaps: Any, *, delta: float, share: float = 3.0, assumes: Sequence[str] = ()
) -> RegretCertificate:
    """(ii) Gaps (τ,), each above its episode's regret, all at once with probability 1 − 2δ/3."""
    each = np.asarray(gaps, float)
    return RegretCertificate(
        "certificate (ii): optimistic minus pessimistic",
        float(np.sum(each)),
        {"gaps": float(np.sum(each))},
        1 - (share - 1) * delta / share,
        tuple(assumes),
        each,
    )
