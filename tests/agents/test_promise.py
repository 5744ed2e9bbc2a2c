"""What a controller is worth at least."""

import jax
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.mdp.evaluation import grid_value


def true_value(agent, start):
    """The value of what ``predict`` does, in the true MDP."""
    plan = agent.plan_greedy(key=jax.random.key(0))
    return grid_value(agent.task.mdp, plan.policy, plan.table.grid, start)


@pytest.mark.parametrize("env", ["rkhs", "riverswim"])
def test_certified_promises_hold_and_grow(env):
    agent = km.GPUCRL(env, confidence="valid", seed=0)
    values = []
    for _ in range(3):
        agent.learn(60, progress=False)
        promise = agent.promise()
        assert promise.probability == pytest.approx(1 - agent.confidence.delta)
        assert "worth at least" in str(promise)
        values.append(promise.value)
        assert values[-1] <= np.mean([true_value(agent, each) for each in agent.starts[-5:]]) + 0.05
    assert values[0] < values[1] < values[2]


def test_a_promise_for_one_start():
    agent = km.GPUCRL("riverswim", confidence="valid", seed=0)
    agent.learn(3, progress=False)
    # Little is known of state 5 after three episodes that start in state 0.
    assert agent.promise([5.0]).value < agent.promise([0.0]).value
    with pytest.raises(km.errors.KernelMDPError, match="start"):
        agent.promise([0.0, 1.0])


def test_sets_that_are_not_covered_give_an_estimate():
    agent = km.GPUCRL("riverswim", seed=0)  # β is scaled
    agent.learn(3, progress=False)
    promise = agent.promise()
    assert promise.probability is None
    assert "estimate" in str(promise)
    assert np.isfinite(promise.value)


def test_estimates_are_the_lowest_of_several_draws():
    agent = km.PSRL("riverswim", seed=0)
    agent.learn(30, progress=False)
    promise = agent.promise([0.0])
    plan = agent.plan_greedy(key=jax.random.key(0))
    mean = grid_value(agent.learner.mean(agent.state), plan.policy, plan.table.grid, [0.0])
    assert promise.value < mean
