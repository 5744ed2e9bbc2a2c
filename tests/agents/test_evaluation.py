"""Controllers are evaluated, and the best one is kept."""

import contextlib
import warnings

import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.agents.evaluation import Evaluation, warn_of_loss
from kernelmdp.errors import ApproximationWarning, ArgumentError


@pytest.fixture
def agent():
    agent = km.PSRL("riverswim", seed=0)
    agent.learn(40, progress=False)
    return agent


def spoil(agent):
    """Make the agent believe that swimming upstream leads nowhere."""
    right = np.arange(6) % 6
    for _ in range(60):
        states = np.append(right, [right[0]] * 15).astype(float)[:21, None]
        agent.tell(states, np.ones((20, 1)), np.full(20, -1.0))


def test_an_evaluation_is_repeatable_and_not_learned_from(agent):
    before = agent.episode
    first, again = agent.evaluate(6), agent.evaluate(6)
    np.testing.assert_array_equal(first.returns, again.returns)
    assert agent.episode == before == first.episode
    assert first.mean == pytest.approx(np.mean(first.returns))
    assert len(agent.evaluate(2, seed=6).returns) == 2


def test_the_best_controller_is_kept_until_another_is_good_again(agent, tmp_path):
    good = agent.evaluate(8)
    actions = [agent.predict([float(s)], 0) for s in range(6)]
    spoil(agent)
    assert any((agent.predict([float(s)], 0) != actions[s]).any() for s in range(6))
    with pytest.warns(ApproximationWarning, match="predict keeps the one from before"):
        bad = agent.evaluate(8)
    assert bad.mean < good.mean
    assert agent.best is good
    assert agent.follows_best
    for s in range(6):
        np.testing.assert_array_equal(agent.predict([float(s)], 0), actions[s])
    # A saved agent keeps it too.
    agent.save(tmp_path / "agent.kmdp")
    loaded = km.load(tmp_path / "agent.kmdp")
    assert loaded.follows_best
    np.testing.assert_array_equal(loaded.best.returns, good.returns)
    for s in range(6):
        np.testing.assert_array_equal(loaded.predict([float(s)], 0), actions[s])


def test_a_controller_that_is_as_good_is_followed(agent):
    agent.evaluate(8)
    agent.learn(5, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent.evaluate(8)
    assert not agent.follows_best
    assert agent.controller_state is agent.state


@pytest.mark.parametrize(
    ("returns", "unit", "worse"),
    [
        ([0.0, 0.0, 0.0], 5.0, True),  # loses 1, a fifth of the unit
        ([0.0, 0.0, 0.0], 20.0, False),  # a twentieth
        ([-9.0, 5.0, 1.0], 5.0, False),  # may be chance
        ([1.0, 1.0, 1.0], 5.0, False),
    ],
)
def test_a_loss_is_more_than_chance(returns, unit, worse):
    newest, best = Evaluation(2, np.array(returns)), Evaluation(1, np.ones(3))
    with pytest.warns(ApproximationWarning) if worse else contextlib.nullcontext():
        assert warn_of_loss(newest, best, seen=np.array([1.0 - unit, 1.0])) == worse


def test_without_an_environment_there_is_nothing_to_play():
    problem = km.make("rkhs").problem
    with pytest.raises(ArgumentError, match="environment"):
        km.Greedy(problem).evaluate()
