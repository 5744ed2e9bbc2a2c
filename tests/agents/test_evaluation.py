"""Controllers are evaluated, and the best one is kept."""

import contextlib
import warnings

import gymnasium
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


def test_the_interval_holds_the_mean_of_normal_returns():
    rng = np.random.default_rng(0)
    found = [Evaluation(0, rng.normal(3.0, 2.0, 4)).interval for _ in range(400)]
    share = np.mean([low <= 3.0 <= high for low, high in found])
    assert abs(share - 0.95) < 3 * np.sqrt(0.95 * 0.05 / 400)
    assert np.isnan(Evaluation(0, np.array([1.0])).interval).all()


def test_another_environment(agent):
    own = agent.evaluate(4)
    same = agent.evaluate(4, km.make("riverswim"))
    np.testing.assert_array_equal(own.returns, same.returns)
    assert agent.best is same  # those of different environments are not compared
    problem = km.Problem.from_spaces(
        states=km.Box([-1.0], [1.0]), actions=km.Box([-1.0], [1.0]), horizon=10
    )
    offline = km.Greedy(problem, seed=0, planner=km.GridPlanner(5, 3))
    offline.tell(np.zeros((11, 1)), np.zeros((10, 1)), np.zeros(10))
    with pytest.raises(ArgumentError, match="task: expected an environment to play in"):
        offline.evaluate(2)
    assert len(offline.evaluate(2, "rkhs").returns) == 2


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ("rkhs-2d", "env: expected states of 1 coordinates"),
        ("deepsea", "env: expected 20 periods"),
        ("rivrswim", "did you mean 'riverswim'"),
    ],
)
def test_an_environment_that_does_not_fit(agent, env, said):
    with pytest.raises(ArgumentError, match=said):
        agent.evaluate(2, env)


def test_following_the_best(agent):
    with pytest.raises(ArgumentError, match="at least one evaluation"):
        agent.follow_best()
    agent.evaluate(4)
    agent.follow_best()
    assert agent.follows_best


class Beam(gymnasium.Env):
    """Observations with parts, or an array."""

    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def __init__(self, parts):
        self.parts, box = parts, gymnasium.spaces.Box(-2.0, 2.0, (2,))
        self.observation_space = gymnasium.spaces.Dict({"beam": box}) if parts else box

    def seen(self):
        row = self.state.astype(np.float32)
        return {"beam": row} if self.parts else row

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-1, 1, 2)
        return self.seen(), {}

    def step(self, action):
        self.state = np.clip(0.9 * self.state + 0.1 * float(action[0]), -2, 2)
        return self.seen(), -float(self.state @ self.state), False, False, {}


@pytest.mark.parametrize("parts", [False, True])
def test_a_batch_is_row_by_row(parts):
    agent = km.Greedy(Beam(parts), horizon=4, planner=km.GridPlanner((5, 5), (3,)), seed=0)
    agent.learn(1, progress=False)
    rows = np.random.default_rng(0).uniform(-1, 1, (3, 2))
    batch = [{"beam": row} for row in rows] if parts else rows
    actions = agent.predict(batch, 1)
    assert actions.shape == (3, 1)
    for row, action in zip(batch, actions, strict=True):
        np.testing.assert_array_equal(agent.predict(row, 1), action)
    assert agent.predict(batch[:0], 1).shape == (0, 1)
    with pytest.raises(ArgumentError, match="observation"):
        agent.predict([[1.0, 2.0], [1.0]])


@pytest.mark.parametrize("planner", [km.GridPlanner((5, 5), (3,)), km.MPCPlanner(2, samples=14)])
def test_after_the_last_period_as_a_controller(planner):
    agent = km.Greedy(Beam(False), horizon=4, planner=planner, seed=0)
    agent.learn(1, progress=False)
    policy = agent.controller_plan().policy
    later = policy.later_period(4)
    assert later == (3 if isinstance(planner, km.GridPlanner) else 2)
    for period in (4, 5, 100):
        np.testing.assert_array_equal(
            agent.predict([0.5, -0.5], period), agent.predict([0.5, -0.5], later)
        )
