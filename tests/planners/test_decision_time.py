"""The size of a search within a time."""

import dataclasses
import itertools
import warnings

import jax
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.errors import ApproximationWarning, ArgumentError
from kernelmdp.planners.decision_time import samples_within

NUMBERS = itertools.count(1)


def chosen(limit, *, fixed=2.0, each=0.2, search=None):
    """The choice for a search that takes ``fixed`` ms, and ``each`` ms for a sample."""
    search = next(NUMBERS) if search is None else search
    return samples_within(
        limit, default_samples=40, least=13, measure=lambda n: fixed + each * n, search=search
    )


@pytest.mark.parametrize("limit", [5.0, 8.0, 9.9, 10.0, 12.0, 25.0, 39.0])
def test_a_decision_is_within_the_limit_and_uses_a_good_part_of_it(limit):
    samples = chosen(limit)
    assert 0.5 * limit <= 2.0 + 0.2 * samples <= limit


def test_the_number_of_samples_is_bounded():
    assert chosen(1e6) == 160
    with pytest.warns(ApproximationWarning, match="smallest search of 13 samples"):
        assert chosen(1.0) == 13


def test_the_first_choice_stays():
    search = next(NUMBERS)
    assert chosen(10.0, search=search) == chosen(10.0, each=9.0, search=search) == 40


@pytest.mark.parametrize(("limit", "samples"), [(1e6, 160), (1e-6, 13)])
def test_plans_have_the_size_that_the_time_allows(limit, samples):
    mdp = km.make("cartpole-swingup").mdp
    planner = km.MPCPlanner(horizon=3, decision_time=limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ApproximationWarning)
        plan = planner.plan(mdp, key=jax.random.key(0))
    same = dataclasses.replace(planner, samples=samples, decision_time=None)
    assert plan.policy.planner == same
    state = np.zeros(4)
    expected = same.plan(mdp, key=jax.random.key(0)).policy(state, 0)
    np.testing.assert_array_equal(plan.policy(state, 0), expected)


def test_bad_limits_are_refused():
    with pytest.raises(ArgumentError, match="decision_time"):
        km.MPCPlanner(decision_time=0.0)


def test_agents_take_the_limit_as_a_field_of_the_planner():
    agent = km.PSRL("cartpole-swingup", planner={"decision_time": 20.0}, seed=0)
    assert agent.planner.decision_time == 20.0
