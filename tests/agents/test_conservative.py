"""Agents that never expect to earn much less than a fallback."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments import interact
from kernelmdp.mdp.fallback import Fallback
from kernelmdp.mdp.mdp import rollout
from kernelmdp.mdp.policy import OpenLoopPolicy
from kernelmdp.planners.blended_plan import BlendedPolicy, blended
from kernelmdp.planners.pessimism import best_value, worst_value
from kernelmdp.planners.plan import UnplannedPolicy


def follow(state, period):
    """A mediocre controller of the environment ``rkhs``. It earns 4.3 of 6.4."""
    return 0.3 * state


def true_value(env, policy, episodes=400):
    starts = jnp.tile(jnp.asarray(env.start, float)[None], (episodes, 1))
    rewards = rollout(env.mdp, policy, starts, key=jax.random.key(9))[2]
    return float(jnp.mean(jnp.sum(rewards, axis=0)))


@pytest.mark.parametrize("kind", [km.PSRL, km.GPUCRL])
def test_values_stay_above_the_share_and_grow(kind):
    agent = kind("rkhs", fallback=follow, at_least=0.8, seed=0)
    rows = list(interact(agent, 25))
    by_fallback = rows[0]["value"]
    values = np.array([row["value"] for row in rows])
    shares = np.array([row["plan_share"] for row in rows])
    assert shares[0] == 0.0  # nothing is known yet
    # An estimate may fail. Nine draws of ten contain no MDP worse than all eight.
    assert np.mean(values >= 0.8 * by_fallback) >= 0.95
    assert shares[-5:].mean() > 0.5
    assert values[-5:].mean() > 1.2 * by_fallback


def test_with_covered_sets_every_episode_earns_the_share():
    agent = km.GPUCRL("rkhs", fallback=follow, at_least=0.5, confidence="valid", seed=0)
    rows = list(interact(agent, 60))
    assert agent.coverage.covered
    assert min(row["value"] for row in rows) >= 0.5 * rows[0]["value"]


def test_regret_bounds_are_not_claimed():
    agent = km.GPUCRL("rkhs", fallback=follow, at_least=0.5, confidence="valid", seed=0)
    reasons = agent.theorem.coverage(agent.evidence, "regret").reasons
    assert "plans that may earn less than at_least asks for are not played" in reasons


def test_the_true_value_is_between_the_worst_and_the_best():
    env = km.make("rkhs")
    agent = km.GPUCRL(env, confidence="valid", seed=0)
    list(interact(agent, 30))
    agent.ask(env.start)
    family, plan = agent.plausible()[1], agent.planned
    policy = Fallback(
        km.mdp.PID(coordinate=0, set_point=0.0, proportional=-0.3, low=-1.0, high=1.0)
    ).policy
    starts = np.atleast_2d(np.asarray(env.start, float))
    value = true_value(env, policy)
    bounds = [f(family, policy, plan.table.grid, starts) for f in (worst_value, best_value)]
    assert bounds[0] < value < bounds[1]


def test_finite_actions_are_not_mixed():
    agent = km.PSRL("riverswim", fallback=lambda s, h: 0.0 * s, at_least=0.5, seed=0)
    rows = list(interact(agent, 6))
    assert {row["plan_share"] for row in rows} <= {0.0, 1.0}


def test_negative_returns_ask_for_a_share_of_their_size():
    agent = km.PSRL("lqr-1d", fallback=lambda s, h: 0.0 * s, at_least=0.5, seed=0)
    rows = list(interact(agent, 8))
    value = true_value(km.make("lqr-1d"), agent.problem.fallback.policy)
    assert value < 0
    assert min(row["value"] for row in rows) >= value - 0.5 * abs(value)


def test_a_blend_is_between_both():
    policy, rest = (OpenLoopPolicy(jnp.full((3, 1), action)) for action in (1.0, -1.0))
    plan = UnplannedPolicy(policy=policy)
    fallback = Fallback(rest)
    assert blended(plan, fallback, 1.0) is plan
    half = blended(plan, fallback, 0.25)
    assert half.plan_share == 0.25
    np.testing.assert_allclose(half.policy([0.0], 0), [-0.5])
    assert isinstance(half.policy, BlendedPolicy)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"at_least": 0.9}, "fallback: expected a controller to fall back to"),
        ({"at_least": 1.5, "fallback": follow}, "at_least: expected a share above 0"),
        ({"at_least": 0.0, "fallback": follow}, "at_least: expected a share above 0"),
        (
            {"at_least": 0.9, "fallback": follow, "update": "step"},
            "update: expected 'episode' with at_least",
        ),
    ],
)
def test_bad_input(settings, message):
    with pytest.raises(ArgumentError, match=message):
        km.PSRL("rkhs", seed=0, **settings)
