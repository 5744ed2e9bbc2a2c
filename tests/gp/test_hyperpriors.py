"""Priors of kernel parameters as rows of numbers."""

import math

import numpy as np

from kernelmdp.gp.hyperpriors import DYNAMICS, RELEVANCE, REWARD


def test_medians_of_lengthscales_grow_with_the_number_of_inputs():
    rows = DYNAMICS.rows(4)
    assert rows.shape == (6, 4)
    np.testing.assert_allclose(rows[:4, 0], 0.205 * math.sqrt(4))
    np.testing.assert_allclose(rows[4:], [DYNAMICS.signal, DYNAMICS.noise])


def test_inputs_that_do_not_matter_to_a_reward_can_be_ignored():
    assert RELEVANCE.lengthscale.high == DYNAMICS.lengthscale.high > REWARD.lengthscale.high
    assert RELEVANCE.signal == REWARD.signal
