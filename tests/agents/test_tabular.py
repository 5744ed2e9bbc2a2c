"""Tables through one-hot kernels, beside the classics, and Gymnasium's own tables."""

import dataclasses

import jax
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp import load
from kernelmdp.agents import AGENTS, GPUCRL, PSRL
from kernelmdp.envs import from_gymnasium, make
from kernelmdp.errors import ArgumentError
from tests.agents import tiny

CLASSICS = ("dirichlet-psrl", "ucbvi", "ucrl2")


@pytest.fixture(scope="module")
def river():
    return make("riverswim", states=4, horizon=12)


def regrets(environment, name, episodes, **words):
    agent = AGENTS[name](environment, seed=0, **words)
    return np.asarray(agent.learn(episodes, progress=False).episodes["regret"])


@pytest.fixture(scope="module")
def by_chance(river):
    return regrets(river, "random", 50).mean()


@pytest.mark.parametrize("name", ["psrl", "gp-ucrl", "dirichlet-psrl", "ucbvi"])
def test_regret_falls(river, by_chance, name):
    words = {"scale": 0.002} if name == "ucbvi" else {}
    regret = regrets(river, name, 100, **words)
    assert (regret > -1e-9).all()
    assert regret[-50:].mean() < 0.35 * by_chance


def test_the_oracle_has_no_regret(river):
    np.testing.assert_allclose(regrets(river, "oracle", 3), 0.0, atol=1e-9)


def test_valid_sets_cover_the_truth(river):
    agent = GPUCRL(river, confidence="valid", seed=1)
    rows = agent.learn(20, progress=False).episodes
    assert np.all(rows["covered_transition"])
    assert np.all(rows["covered_reward"])
    assert (np.asarray(rows["planned_value"]) >= np.asarray(rows["optimal_value"]) - 1e-9).all()


@pytest.mark.parametrize("name", CLASSICS)
def test_classics_are_saved_and_go_on(name, river, tmp_path):
    whole = AGENTS[name](river, seed=2, scale=0.5)
    rows = whole.learn(6, progress=False).episodes
    half = AGENTS[name](river, seed=2, scale=0.5)
    half.learn(3, progress=False)
    half.save(tmp_path / "agent")
    rest = load(tmp_path / "agent", task=river).learn(3, progress=False).episodes
    np.testing.assert_array_equal(rows["return"][3:], rest["return"])
    assert whole.predict([0.0]).shape == (1,)


def test_ucrl2_is_optimistic(river):
    agent = AGENTS["ucrl2"](river, seed=0)
    rows = agent.learn(15, progress=False).episodes
    assert (np.asarray(rows["planned_value"]) >= np.asarray(rows["optimal_value"]) - 1e-9).all()


@pytest.mark.parametrize("name", CLASSICS)
def test_classics_need_a_table(name):
    with pytest.raises(ArgumentError, match="finite states"):
        AGENTS[name](tiny.problem())


def test_deep_sea_pays_only_the_patient():
    environment = make("deepsea", size=5, seed=4)
    np.testing.assert_allclose(environment.optimal_value().value, 1 - 0.01, atol=1e-12)
    regret = regrets(environment, "psrl", 120)
    assert regret[-20:].mean() < 0.2


def test_a_gymnasium_table_as_it_is():
    task = from_gymnasium("FrozenLake-v1", horizon=30)
    agent = PSRL(task, seed=0)
    result = agent.learn(3, progress=False)
    assert np.isin(result.episodes["return"], [0.0, 1.0]).all()
    # An episode that ended stays in its last state.
    last = agent.history[-1].states[:, 0]
    assert agent.history[-1].states.shape == (31, 1)
    assert last[-1] == agent.history[-1].states[-2, 0] or result.episodes["return"][-1] in (0, 1)
    assert 0 <= agent.predict([0.0])[0] <= 3


def test_psrl_counts_a_table_that_tells_nothing():
    task = from_gymnasium("FrozenLake-v1", horizon=30)
    assert PSRL(task).learner.name == "counts"
    assert PSRL(task, learner="fixed").learner.name == "fixed"
    assert PSRL(task, inflate="gp-ts").learner.name == "fixed"  # it needs information gains
    assert PSRL(make("riverswim")).learner.name == "fixed"  # its noise is known
    assert GPUCRL(task).learner.name == "fixed"


def test_after_an_end_every_action_of_the_last_state_is_absorbing():
    task = from_gymnasium("FrozenLake-v1", horizon=100)
    agent = PSRL(task, seed=0)
    agent.learn(5, progress=False)
    ended = [each for each in agent.history if each.terminated]
    assert ended
    last = int(ended[0].states[-1, 0])
    assert (agent.state.counts[last, :, last] > 0).all()
    np.testing.assert_array_equal(agent.state.sums[last], 0.0)


def test_rewards_that_never_vary_are_soon_known():
    """The deviation of a drawn mean falls like 1/n. With noise of known size it is like 1/√n."""
    task = from_gymnasium("FrozenLake-v1", horizon=30)
    state = PSRL(task).state
    rng, deviations = np.random.default_rng(0), []
    for visits in (10, 1000):
        counts = np.zeros_like(state.counts)
        counts[:, :, 0] = visits
        seen = dataclasses.replace(state, counts=counts)
        draws = np.stack([seen.draw(1.0, rng)[0] for _ in range(200)])
        deviations.append(float(draws.std()))
    assert 60 < deviations[0] / deviations[1] < 150
    # With other rewards the noise is found: half of the rewards are 1.
    seen = dataclasses.replace(
        state, counts=counts, sums=0.0 * state.sums + 500, squares=0.0 * state.sums + 500
    )
    draws = np.stack([seen.draw(1.0, rng)[0] for _ in range(200)])
    np.testing.assert_allclose((draws.mean(), draws.std()), (0.5, 0.5 / 1000**0.5), rtol=0.05)


def test_a_large_table_plans_with_a_bonus():
    agent = GPUCRL(from_gymnasium("Taxi-v4", horizon=3), seed=0)
    assert agent.planner.optimism == "bonus"
    agent.learn(2, progress=False)


def test_the_papers_embedding_is_warned_of():
    with pytest.warns(km.errors.ApproximationWarning, match="location family"):
        environment = make("riverswim", states=4, horizon=5, embedding="index")
    assert environment.agent_mdp.mean_dimension == 1
    agent = PSRL(environment, seed=0)
    assert np.isfinite(agent.learn(3, progress=False).episodes["regret"]).all()


def test_outcomes_follow_the_probabilities():
    environment = make("tabular-random", states=4, actions=2, seed=1)
    law = environment.mdp.transition_noise
    means = environment.mdp.model.transition(jax.numpy.array([[2.0, 1.0]]))
    rows = jax.numpy.repeat(means, 4000, axis=0)
    drawn = np.asarray(law.outcomes(rows, key=jax.random.key(0)))[:, 0].astype(int)
    share = np.bincount(drawn, minlength=4) / 4000
    assert np.abs(share - np.asarray(means)[0]).max() < 4 * 0.5 / np.sqrt(4000)
    np.testing.assert_array_equal(law.embed(np.array([[2.0]])), [[0, 0, 1, 0]])
