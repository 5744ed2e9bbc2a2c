"""Smooth first actions: within bounds, small at first, and lasting."""

import jax
import numpy as np

from kernelmdp.domains import Box, FiniteSet
from kernelmdp.mdp.first_policies import smooth_policy


def sequences(actions):
    keys = [jax.random.key(seed) for seed in range(40)]
    return np.stack([np.asarray(smooth_policy(actions, 100, key=key).sequence) for key in keys])


def test_actions_of_a_box_begin_small_and_last():
    drawn = sequences(Box([0.0, -1.0], [4.0, 1.0]))
    assert (drawn >= [0.0, -1.0]).all()
    assert (drawn <= [4.0, 1.0]).all()
    shares = (drawn - [2.0, 0.0]) / [2.0, 1.0]
    sizes = np.sqrt(np.mean(shares**2, axis=(0, 2)))
    assert sizes[:10].max() < 0.4 < sizes[-10:].min()
    changes = np.sqrt(np.mean(np.diff(shares, axis=1) ** 2))
    assert changes < 0.5 * np.sqrt(np.mean(shares**2))  # independent ones change by √2 of it


def test_actions_of_a_set_are_repeated():
    drawn = sequences(FiniteSet([[0.0], [1.0], [2.0]]))
    assert set(np.unique(drawn)) == {0.0, 1.0, 2.0}
    assert np.mean(np.diff(drawn[..., 0], axis=1) != 0) < 0.15
