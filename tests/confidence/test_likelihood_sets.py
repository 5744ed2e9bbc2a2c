"""Likelihood-ratio sets of tables: against sequential products, and coverage."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.confidence import Confidence
from kernelmdp.confidence.likelihood_sets import log_mixture_ratio
from kernelmdp.errors import ArgumentError

from .problems import beliefs
from .test_sets import COMMON

RULE = {"name": "valid", "shape": "likelihood"}


def test_the_mixture_is_the_product_of_its_predictions():
    rng = np.random.default_rng(0)
    for S in (2, 6):
        seen = rng.choice(S, size=40, p=rng.dirichlet(np.full(S, 0.4)))
        counts, log_q = np.zeros(S), 0.0
        for s in seen:
            log_q += np.log((counts[s] + 1 / S) / (counts.sum() + 1))
            counts[s] += 1
        share = counts[counts > 0] / 40
        oracle = 40 * share @ np.log(share) - log_q
        assert float(log_mixture_ratio(jnp.asarray(counts[None]))[0]) == pytest.approx(oracle)
    assert float(log_mixture_ratio(jnp.zeros((1, 4)))[0]) == pytest.approx(0.0, abs=1e-12)


def play(agent, env, episodes):
    """Ratios of error and width at all pairs, before each episode."""
    points, ratios = jnp.asarray(agent.problem.points.spread_points(1)), []
    for number in range(episodes):
        policy = agent.ask(np.asarray(env.start))
        ratios.append(agent.sets.containment(env.agent_mdp.model, points))
        episode = env.play(policy, jnp.asarray(env.start), key=jax.random.key(number))
        agent.tell(episode.states, episode.actions, episode.rewards)
    return np.array(ratios)


def test_sets_follow_from_the_counts():
    env = km.make("riverswim")
    agent = km.GPUCRL(env, confidence=RULE, seed=0)
    play(agent, env, 12)
    points = np.array(agent.problem.points.spread_points(1))
    prediction = agent.confidence_sets().plausible(jnp.asarray(points))
    visits, rows, sums = np.zeros(12), np.zeros((12, 6)), np.zeros(12)
    for episode in agent.history:
        states, actions = np.asarray(episode.states)[:, 0], np.asarray(episode.actions)[:, 0]
        for h in range(20):
            cell = int(np.flatnonzero((points == [states[h], actions[h]]).all(axis=1))[0])
            visits[cell] += 1
            rows[cell, int(states[h + 1])] += 1
            sums[cell] += float(episode.rewards[h])
    seen = visits > 0
    visits = np.maximum(visits, 1)
    np.testing.assert_allclose(prediction.state[seen], (rows / visits[:, None])[seen], atol=1e-12)
    level = np.log(30 * 12)
    divergence = (level + np.asarray(log_mixture_ratio(jnp.asarray(rows)))) / visits
    np.testing.assert_allclose(prediction.divergence[seen], divergence[seen], rtol=1e-9)
    assert np.isinf(prediction.divergence[~seen]).all()
    width = 0.1 * np.sqrt((visits + 1) * (np.log1p(visits) + 2 * level)) / visits
    assert (np.asarray(prediction.reward_width)[seen] <= width[seen] + 1e-9).all()
    np.testing.assert_allclose(prediction.reward[seen], (sums / visits)[seen], atol=1e-2)


def test_tables_are_in_their_sets():
    for seed in range(12):
        env = km.make("tabular-random", seed=seed, states=4, actions=2, horizon=4)
        agent = km.GPUCRL(env, confidence=RULE | {"delta": 0.3}, seed=seed)
        ratios = play(agent, env, 25)
        assert agent.coverage.covered
        assert (ratios <= 1).all()  # in a run of ten one may fail
        assert ratios[5:, 1].max() > 0.05


def test_plans_are_optimistic_and_learn():
    env = km.make("riverswim")
    agent, optimum = km.GPUCRL(env, confidence=RULE, seed=1), env.optimal_value().value
    values = []
    for number in range(60):
        policy = agent.ask(np.asarray(env.start))
        values.append(agent.planned.value(env.start))
        episode = env.play(policy, jnp.asarray(env.start), key=jax.random.key(number))
        agent.tell(episode.states, episode.actions, episode.rewards)
    assert min(values) >= optimum - 1e-9
    assert values[-1] < 0.6 * values[0]


def test_bad_input():
    rule = Confidence(shape="likelihood", norm_reward=1.0, norm_transition=1.0)
    with pytest.raises(ArgumentError, match="table"):
        rule.sets(beliefs("se(0.5) @ index(2)"), episode=1, **COMMON)
    with pytest.raises(ArgumentError, match="shape"):
        Confidence(shape="likelihood", setting="gp")


def test_each_table_pays_for_its_own_pairs():
    sets = km.GPUCRL(
        "riverswim", confidence=RULE, reward_kernel="index(6)[state]", seed=0
    ).confidence_sets()
    plausible = sets.plausible
    assert float(plausible.beta_transition) - float(plausible.beta_reward) == pytest.approx(
        np.log(2)
    )


def test_unseen_rewards_are_bounded_by_norm_and_kernel():
    agent = km.GPUCRL("riverswim", confidence=RULE, reward_kernel="4.0 * onehot(6, 2)", seed=0)
    plausible = agent.confidence_sets().plausible
    assert float(plausible.norm) == pytest.approx(2 * agent.confidence.norms[0])


def test_they_are_refused_where_next_states_are_no_rows():
    with pytest.raises(ArgumentError, match="likelihood"):
        km.GPUCRL("rkhs", confidence=RULE, seed=0).confidence_sets()
