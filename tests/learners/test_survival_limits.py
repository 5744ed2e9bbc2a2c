"""Limits of coordinates that explain where episodes ended."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernelmdp.learners.survival_limits import survival_limits

NUMBERS = st.floats(-5, 5, allow_nan=False)


def rows(least):
    return st.lists(st.tuples(NUMBERS, NUMBERS), min_size=least, max_size=12).map(
        lambda pairs: np.array(pairs, float).reshape(-1, 2)
    )


@given(rows(1), rows(0))
def test_no_state_that_was_survived_lies_beyond_a_limit(survived, ended):
    low, high = survival_limits(survived, ended, survived[0])
    assert (survived >= low).all()
    assert (survived <= high).all()


@given(rows(1))
def test_without_ends_there_are_no_limits(survived):
    low, high = survival_limits(survived, np.zeros((0, 2)), survived[0])
    assert np.isinf(low).all()
    assert np.isinf(high).all()


def test_an_end_with_one_explanation_is_a_limit_with_its_mirror_image():
    survived = np.array([[0.0, 0.0], [1.9, 0.5], [-1.0, -0.5]])
    low, high = survival_limits(survived, np.array([[2.1, 0.1]]), np.zeros(2))
    np.testing.assert_allclose((low, high), ([-2.0, -np.inf], [2.0, np.inf]))
    # Survived beyond the mirror image: it is none.
    survived = np.vstack([survived, [-3.0, 0.0]])
    low, high = survival_limits(survived, np.array([[2.1, 0.1]]), np.zeros(2))
    assert np.isinf(low).all()


def test_of_two_explanations_the_closer_one_is_taken_after_two_ends():
    survived = np.array([[0.0, 0.0], [0.19, 1.0], [-0.19, -1.0]])
    first = np.array([[0.21, 1.8]])
    assert np.isinf(survival_limits(survived, first, np.zeros(2))[1]).all()
    both = np.array([[0.21, 1.8], [0.22, 2.5]])
    low, high = survival_limits(survived, both, np.zeros(2))
    np.testing.assert_allclose(high, [0.2, np.inf])
    np.testing.assert_allclose(low, [-0.2, -np.inf])


def test_a_single_end_near_the_centre_does_not_explain_what_its_mirror_image_does():
    """A cart's track ends at 2.4. Its pole fell at 0.13 to the left, which is no end of a track."""
    survived = np.array([[0.0, 0.0], [2.38, 0.1], [-0.1, -0.1]])
    ended = np.array([[2.42, 0.0], [-0.13, 0.22]])
    low, high = survival_limits(survived, ended, np.zeros(2))
    np.testing.assert_allclose((low[0], high[0]), (-2.4, 2.4))
