"""Agents keep their promises, learn, and take a task in every form it may come in."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.errors import ArgumentError, ConformanceError
from kernelmdp.mdp.policy import Policy
from tests.agents import tiny

EVERYONE = [km.GPUCRL, km.PSRL, km.Frugal, km.Greedy, km.Random, km.Oracle]
PROBLEM = tiny.problem()
SAVING = "a saved agent continues as if it had never stopped"


def check(kind):
    return km.experiments.check_agent(
        lambda task, seed: kind(task, seed=seed, planner=tiny.PLANNER), task=tiny.environment()
    )


@pytest.mark.parametrize("kind", EVERYONE, ids=lambda kind: kind.name)
def test_conformance(kind):
    report = check(kind)
    assert report.name == kind.name
    assert SAVING in report.checked
    assert len(report.checked) == 11
    assert not report.skipped
    assert "11 promises kept" in str(report)


# Agents that break a promise, and only one.


class Moody(Policy):
    """Asks the host for a number that is new every time."""

    def actions(self, states, period):
        rng = np.random.default_rng()
        shape = jax.ShapeDtypeStruct((states.shape[0], 1), jnp.float64)
        return jax.pure_callback(lambda _: rng.uniform(-1, 1, size=shape.shape), shape, states)


class Far(Policy):
    """Right but for one corner."""

    def actions(self, states, period):
        return jnp.where(states > 0.99, 1.5, 0.5 * states)


def planning(policy):
    class Planning(km.Random):
        def plan(self, *, key):
            return type(super().plan(key=key))(policy())

    return Planning


class Hasty(km.Greedy):
    """Counts the episode first and looks at it after."""

    def tell(self, states, actions, rewards, outcomes=None):
        self.history.append(self.history[-1] if self.history else None)
        super().tell(states, actions, rewards, outcomes)
        del self.history[-2]


class Sly(km.Greedy):
    """As Hasty, but hides it: only the episode after shows what happened."""

    def tell(self, states, actions, rewards, outcomes=None):
        try:
            super().tell(states, actions, rewards, outcomes)
        except ArgumentError:
            self.seed += 1
            raise


class Lax(km.Greedy):
    """Takes numbers that are none for zeros."""

    def tell(self, states, actions, rewards, outcomes=None):
        super().tell(states, actions, np.nan_to_num(rewards), outcomes)


class Retracing(km.Random):
    """Compiles the same program again in every episode."""

    def plan(self, *, key):
        jax.jit(lambda x: x + 1.0)(0.0)
        return super().plan(key=key)


@pytest.mark.parametrize(
    ("kind", "promise"),
    [
        (planning(Moody), "a policy is a function of state and period"),
        (planning(Far), "inside the action space; found: action: expected points inside Box"),
        (Hasty, "a refused tell changes nothing; found: 2 episodes instead of 1"),
        (Sly, "a refused tell changes nothing; found: other"),
        (Lax, "tell refuses what is no episode.*no error for rewards with nan"),
        (Retracing, "nothing is traced again after the second episode"),
    ],
    ids=["moody", "far", "hasty", "sly", "lax", "retracing"],
)
def test_a_broken_promise_is_found(kind, promise):
    with pytest.raises(ConformanceError, match=promise):
        check(kind)


def test_an_agent_of_ones_own_is_saved_and_loaded():
    class Foreign(km.Random):
        name = "foreign"

    assert SAVING in check(Foreign).checked


# Learning.


def test_the_oracle_has_no_regret():
    table = km.Oracle(tiny.environment(), seed=3).learn(4, progress=False).episodes
    np.testing.assert_allclose(table["regret"], 0, atol=1e-9)
    assert np.ptp(table["return"]) > 0  # returns are random, values are not


@pytest.mark.parametrize("kind", [km.GPUCRL, km.PSRL], ids=lambda kind: kind.name)
def test_same_seed_same_run(kind):
    """G 56: every number of the table but the times."""
    tables = {
        (seed, turn): tiny.make(kind, seed=seed).learn(3, progress=False).episodes
        for seed, turn in ((0, 0), (0, 1), (1, 0))
    }
    numbers = [c for c in tables[0, 0].columns if not c.endswith("seconds")]
    for column in numbers:
        np.testing.assert_array_equal(tables[0, 0][column], tables[0, 1][column], err_msg=column)
    assert not np.array_equal(tables[0, 0]["return"], tables[1, 0]["return"])


@pytest.fixture(scope="module")
def rkhs():
    return km.make("rkhs", seed=0)


@pytest.mark.parametrize(
    ("kind", "learns"),
    [(km.PSRL, True), (km.GPUCRL, True), (km.Random, False)],
    ids=["psrl", "gp-ucrl", "random"],
)
def test_regret_falls(rkhs, kind, learns):
    """G 53: over 45 episodes the last third costs at most half of the first; chance does not."""
    agent = kind(rkhs, seed=0, planner=km.GridPlanner(state_points=31, action_points=7))
    regret = agent.learn(45, progress=False).episodes["regret"]
    assert (np.mean(regret[-15:]) <= 0.5 * np.mean(regret[:15])) == learns
    assert np.mean(regret[:15]) > 0


# The forms of a task.


def test_a_known_reward():
    def reward(z):
        return jnp.cos(z[:, 0]) - z[:, 1] ** 2

    own = tiny.make(reward=reward)
    theirs = tiny.make(reward="known")
    own.tell(*tiny.episode())
    assert own.beliefs.gains[0] == 0
    assert own.beliefs.gains[1] > 0
    assert own.problem.reward is reward
    assert theirs.problem.reward is tiny.environment().known_reward
    # In the last period only the reward counts: cos s − a² wants a = 0.
    assert own.ask()([0.5], tiny.H - 1)[0] == pytest.approx(0, abs=1e-9)


def test_kernels_as_text():
    text = tiny.make(reward_kernel="se(0.5)", transition_kernel="se(0.5)")
    usual = tiny.make()
    assert text.problem.summary() == usual.problem.summary()
    # The norm that is known is that of the environment's kernel, even when the text is the same.
    assert usual.problem.norm_reward is not None
    assert text.problem.norm_reward is None
    assert text.problem.norm_transition is None


def test_ask_and_tell_without_an_environment():
    agent = km.Greedy(PROBLEM, seed=1)
    first = agent.ask([0.0, 0.0])([0.0, 0.0], 0)
    assert first.shape == (1,)
    states = [[0.0, 0.0], [0.1, 0.2], [0.3, 0.1]]
    agent.tell(states, [[0.5], [-0.5]], [1.0, 0.0])
    assert agent.episode == 1
    assert agent.beliefs.gains[1] > 0
    with pytest.raises(ArgumentError, match="task: expected an environment to learn in; use ask"):
        agent.learn(1)


def test_periodic_axes_are_unwrapped():
    """Across the seam a step of 0.2 is one of 0.2, not of −1.8; a step of half a turn or less
    stays; the other axis is let alone."""
    agent = km.Greedy(PROBLEM)
    states = np.array([[0.9, -0.9], [-0.9, 0.9], [0.8, 0.9]])
    agent.tell(states, np.zeros((2, 1)), np.zeros(2))
    told = agent.history[0].outcomes
    np.testing.assert_allclose(told, [[1.1, 0.9], [-1.2, 0.9]], atol=1e-12)
    # What is learned of is the motion: +0.2, then −0.3.
    mean, _ = agent.beliefs.predict_state(jnp.array([[0.9, -0.9, 0.0]]))
    assert float(mean[0, 0]) == pytest.approx(1.1, abs=0.3)


def test_told_arrays_are_copied_and_of_64_bits():
    agent, other = tiny.make(), tiny.make()
    given = [np.asarray(part, np.float32) for part in tiny.episode()]
    agent.tell(*given)
    other.tell(*(np.asarray(part, float) for part in given))
    for part in given:
        part[...] = 0
    assert tiny.same(agent, other)
    assert agent.history[0].states.dtype == np.float64
    assert agent.history[0].states.any()


@pytest.mark.parametrize(
    ("confidence", "word"), [("practical", "not covered"), ("valid", "covered by")]
)
def test_what_is_covered(confidence, word):
    covered = str(tiny.make(km.GPUCRL, confidence=confidence).coverage)
    assert covered.startswith(word), covered
