"""Certificates as formulas; on runs they are in tests/agents/test_promises.py."""

import math

import numpy as np
import pytest

from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.theory.certificates import gap_certificate, martingale_term, sum_certificate

WORDS = {"lipschitz": 3.0, "reward_bound": 2.0, "horizon": 4, "delta": 0.1}


def test_the_sum():
    """Σ 2 β_R σ_R + 2 L ρ, and Azuma with widths 2 B (H − h): half their squares add up."""
    made = sum_certificate([1.0, 0.5], [0.2, 0.1], **WORDS)
    widths = [2 * 2.0 * (4 - h) for h in range(1, 4)]
    azuma = math.sqrt(0.5 * math.log(30) * 2 * sum(w**2 for w in widths))
    assert made.parts == pytest.approx({"reward": 3.0, "transition": 1.8, "martingale": azuma})
    assert made.total == pytest.approx(4.8 + azuma)
    assert made.probability == pytest.approx(0.9)
    # A known reward leaves δ/2 for the martingale.
    two = sum_certificate([0.0], [0.1], **(WORDS | {"delta": 0.2}), share=2.0)
    assert two.parts["martingale"] == pytest.approx(
        martingale_term(reward_bound=2.0, horizon=4, episodes=1, delta=0.3)
    )


def test_one_period_needs_no_slope():
    made = sum_certificate([1.0], [5.0], **(WORDS | {"horizon": 1, "lipschitz": math.inf}))
    assert made.total == made.parts["reward"] == 2.0


def test_an_unknown_slope_says_nothing():
    assert sum_certificate([1.0], [5.0], **(WORDS | {"lipschitz": math.inf})).total == math.inf
    known = sum_certificate([1.0], [0.0], **(WORDS | {"lipschitz": math.inf}))
    assert math.isfinite(known.total)


def test_gaps():
    made = gap_certificate([0.3, 0.4], delta=0.3)
    assert made.total == pytest.approx(0.7)
    assert made.probability == pytest.approx(0.8)
    np.testing.assert_array_equal(made.episode_bounds, [0.3, 0.4])


def test_bad_input():
    with pytest.raises(ShapeError, match="transition_widths: expected shape"):
        sum_certificate([1.0, 2.0], [1.0], **WORDS)
    with pytest.raises(ArgumentError, match="delta: expected a probability"):
        sum_certificate([1.0], [1.0], **(WORDS | {"delta": 1.0}))
