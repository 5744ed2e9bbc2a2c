"""Races: every step costs the same, and all that matters is to end soon."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.learners import FittedKernels
from kernelmdp.mdp import Episode, Problem

KEY = jax.random.key(0)
GOAL = 1.0


def episode(seed, *, cost=-1.0, last=None):
    """A point that is pushed to the right until it is beyond the goal."""
    rng = np.random.default_rng(seed)
    states, actions = [np.array([-0.5])], []
    while states[-1][0] < GOAL:
        actions.append(rng.uniform(-0.5, 1.0, 1))
        states.append(states[-1] + 0.2 * actions[-1])
    rewards = np.full(len(actions), cost)
    if last is not None:
        rewards[-1] = last
    return Episode(
        np.array(states), np.array(actions), rewards, np.array(states[1:]), terminated=True
    )


def learned(**options):
    problem = Problem.from_spaces(
        states=km.Box([-3.0], [3.0]), actions=km.Box([-1.0], [1.0]), horizon=60
    )
    learner = FittedKernels()
    state = learner.init(problem, key=KEY)
    for seed in range(3):
        state = learner.update(state, episode(seed, **options), key=KEY)
    return learner, state


@pytest.fixture(scope="module")
def race():
    return learned(last=0.0)


def test_plans_end_at_the_goal_and_not_in_unseen_states(race):
    learner, state = race
    assert state.data.is_race
    termination = learner.mean(state).termination
    after = jnp.array([[GOAL + 0.13], [GOAL - 0.3], [-0.5], [-2.5]])
    ends = termination(jnp.zeros((4, 2)), after)
    assert np.asarray(ends).tolist() == [True, False, False, False]


def test_every_step_costs_the_same_and_there_is_nothing_to_fear(race):
    learner, state = race
    points = jnp.asarray(np.random.default_rng(0).uniform(-3, 3, (50, 2)))
    for mdp in (
        learner.mean(state),
        learner.pessimistic(state, deviations=2.0),
        learner.sample(state, key=KEY),
    ):
        assert (np.asarray(mdp.model(points).reward) == -1.0).all()


def test_a_limit_that_explains_the_goal_has_no_mirror_image(race):
    _, state = race
    low, high = state.data.survival_limits
    assert np.isneginf(low).all()
    assert GOAL - 0.2 < high[0] < GOAL + 0.15


@pytest.mark.parametrize("options", [{"last": 100.0}, {"cost": 1.0}])
def test_other_rewards_are_no_race(options):
    """A goal with a reward of its own is learned with the reward; steps that earn are to last."""
    assert not learned(**options)[1].data.is_race


def test_a_plan_that_does_not_reach_the_goal_ends_in_motion(race):
    """With a horizon of two steps the goal is not seen, and all plans earn the same."""
    learner, state = race
    planner = km.MPCPlanner(horizon=2)
    policy = planner.plan(learner.mean(state), key=KEY).policy
    assert abs(float(policy([-0.5], 0)[0])) > 0.3


def test_a_race_is_learned():
    """The car of MountainCar-v0 must swing to reach its goal. Seed 1 once lost it again."""
    agent = km.Frugal("MountainCar-v0", seed=1)
    returns = agent.learn(episodes=4, progress=False).episodes["return"]
    assert max(returns) > -150
