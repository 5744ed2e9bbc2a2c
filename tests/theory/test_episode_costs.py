"""The largest total of episode costs, against a linear program, random runs and closed forms."""

import itertools
import math

import numpy as np
import pytest
import scipy

from kernelmdp.theory.episode_costs import GainCost, largest_total, stopped_cost, total_at

B, H = 1.0, 2


def largest_by_linear_program(cost, limit, episodes, points=1500):
    """The best mixture of episodes over a grid of gains, for one learned function."""
    gains = np.concatenate([np.linspace(0, min(limit, cost.most), points), [limit * (1 + 1e-9)]])
    values = np.array([cost.cost(gain) for gain in gains])
    values[-1] = stopped_cost(cost.cost(min(limit, cost.most)), B, H)
    if limit >= cost.most:
        gains, values = gains[:-1], values[:-1]
    found = scipy.optimize.linprog(
        -values,
        A_ub=[gains],
        b_ub=[cost.total_gain],
        A_eq=[np.ones(len(gains))],
        b_eq=[episodes],
    )
    return -found.fun


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("scale", [0.05, 0.7, 4.0])
@pytest.mark.parametrize("limit", [0.3, math.log(2), 2.0, math.inf])
def test_the_dual_is_the_linear_program(scale, limit, linear):
    cost = GainCost(scale, 12.0, linear=linear, largest_growth=40.0)
    exact = largest_by_linear_program(cost, limit, 60)
    prices = np.logspace(-4, 4, 4000)
    dual = min(
        total_at([cost], [limit], [price], episodes=60, largest_reward=B, horizon=H)
        for price in prices
    )
    assert exact <= dual * (1 + 1e-9)
    assert dual <= exact * 1.01


def test_no_split_of_gains_costs_more():
    rng = np.random.default_rng(0)
    costs = [GainCost(0.8, 6.0, largest_growth=30.0), GainCost(1.7, 9.0, largest_growth=8.0)]
    for limits in itertools.product((0.4, 1.5, math.inf), repeat=2):
        bound = min(
            total_at(costs, limits, prices, episodes=30, largest_reward=B, horizon=H)
            for prices in itertools.product(np.logspace(-2, 3, 30), repeat=2)
        )
        unstopped = sum(c.cost(min(x, c.most)) for c, x in zip(costs, limits, strict=True))
        worst = 0.0
        for _ in range(300):
            # Few episodes have all the gains, or many have a little.
            shares = [
                rng.dirichlet(np.full(30, 10 ** rng.uniform(-2, 1))) * cost.total_gain
                for cost in costs
            ]
            total = 0.0
            for gains in zip(*shares, strict=True):
                ends = any(g > x for g, x in zip(gains, limits, strict=True))
                total += (
                    stopped_cost(unstopped, B, H)
                    if ends
                    else sum(c.cost(g) for c, g in zip(costs, gains, strict=True))
                )
            worst = max(worst, total)
        assert worst <= bound


def test_surplus_is_the_maximum_over_a_grid():
    rng = np.random.default_rng(1)
    for _ in range(200):
        scale, price, limit = 10 ** rng.uniform(-2, 2, 3)
        cost = GainCost(scale, 50.0, largest_growth=10 ** rng.uniform(-1, 3))
        gains = np.linspace(0, min(limit, cost.most), 4001)
        searched = max(cost.cost(gain) - price * gain for gain in gains)
        found = cost.largest_surplus(limit, price)
        assert searched <= found + 1e-9 * (1 + abs(found))
        assert found <= searched + 0.02 * (scale + price * limit / 100)


def test_many_episodes_cost_as_if_all_were_alike():
    """With small gains the concave part decides: τ·s√(e^{G/τ} − 1)."""
    cost = GainCost(0.5, 10.0, largest_growth=100.0)
    total, _ = largest_total([cost], episodes=10_000, largest_reward=B, horizon=H)
    alike = 10_000 * cost.cost(10.0 / 10_000)
    assert alike * (1 - 1e-12) <= total <= 1.01 * alike


def test_total_is_never_above_giving_all_up_nor_the_block_lemma():
    rng = np.random.default_rng(2)
    for _ in range(20):
        scales, gains = 10 ** rng.uniform(-2, 2, 2), 10 ** rng.uniform(-1, 2.5, 2)
        growth, tau = 10 ** rng.uniform(0, 3), int(10 ** rng.uniform(0, 4))
        costs = [
            GainCost(scale, gain, largest_growth=growth)
            for scale, gain in zip(scales, gains, strict=True)
        ]
        total, _ = largest_total(costs, episodes=tau, largest_reward=B, horizon=H)
        assert total <= stopped_cost(0.0, B, H) * tau * 1.001
        # Block lemma: eᵍ − 1 ≤ x̄/ln(1 + x̄)·g, and Cauchy-Schwarz.
        block = sum(
            scale * math.sqrt(tau * gain * growth / math.log1p(growth))
            for scale, gain in zip(scales, gains, strict=True)
        )
        assert total <= block * 1.01


def test_chance_is_part_of_the_search():
    cost = GainCost(2.0, 20.0, largest_growth=50.0)
    words = {"episodes": 500, "largest_reward": B, "horizon": H}
    alone = largest_total([cost], **words)
    both = largest_total([cost], **words, chance=lambda total, unstopped: 1000 * unstopped)
    assert both[1] < alone[1]
    assert both[0] >= alone[0] * (1 - 1e-3)


def test_nothing_to_learn_costs_nothing():
    assert largest_total([GainCost(1.0, 0.0)], episodes=5, largest_reward=B, horizon=H) == (
        0.0,
        0.0,
    )
