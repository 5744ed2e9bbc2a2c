"""What other people's environments do: ends, angles, missing bounds, and everything that breaks."""

import dataclasses

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp.domains import Box
from kernelmdp.envs import cos_sin_pairs, from_gymnasium, gymnasium_env, register
from kernelmdp.envs.observation_spaces import PROVISIONAL_BOUND
from kernelmdp.errors import ArgumentError, DataError, DomainError, KernelMDPError, ShapeError
from tests.envs.instances import instance

register()


class Turning(gymnasium.Env):
    """An angle in [0, 1) that advances by the action; breaks as told."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def __init__(
        self, observe=lambda angle, count: [angle], earn=lambda count: 0.0, end=lambda count: ()
    ):
        self.observe, self.earn, self.end = observe, earn, end

    def reset(self, *, seed=None, options=None):
        self.angle, self.count = 0.9, 0
        return np.array([self.angle]), {}

    def step(self, action):
        self.angle, self.count = (self.angle + float(action[0])) % 1.0, self.count + 1
        ends = self.end(self.count)
        return (
            np.array(self.observe(self.angle, self.count)),
            self.earn(self.count),
            "terminated" in ends,
            "truncated" in ends,
            {},
        )


def still(state, period):
    return [0.0]


def crash(count):
    if count == 3:
        raise ZeroDivisionError("the wheel\ncame off")
    return 0.0


# Ends.


@pytest.mark.parametrize("how", ["terminated", "truncated"])
def test_an_episode_may_be_shorter_than_the_horizon(how):
    task = from_gymnasium(Turning(end=lambda n: [how] if n == 2 else []), horizon=4)
    episode = task.play(lambda state, period: [0.05])
    assert episode.terminated == (how == "terminated")
    assert episode.states.shape == (3, 1)
    # The last transition is one like any other.
    np.testing.assert_allclose(episode.outcomes[:, 0], [0.95, 0.0], atol=1e-6)


def test_a_horizon_bounds_what_never_ends():
    assert len(from_gymnasium(Turning(), horizon=1).play(still).rewards) == 1


def test_a_watcher_sees_every_step():
    task = from_gymnasium(Turning(end=lambda n: ["terminated"] if n == 3 else []), horizon=5)
    seen = []
    episode = task.play(still, on_step=lambda *step: seen.append(step))
    assert [step[-1] for step in seen] == [False, False, True]
    states, actions, rewards, outcomes, _ = zip(*seen, strict=True)
    np.testing.assert_array_equal(np.stack(states), episode.states[:-1])
    np.testing.assert_array_equal(np.stack(actions), episode.actions)
    np.testing.assert_array_equal(rewards, episode.rewards)
    np.testing.assert_array_equal(np.stack(outcomes), episode.outcomes)


# Axes.


def test_axes_without_bounds_are_named_and_their_states_projected():
    task = from_gymnasium("CartPole-v1", horizon=30)
    assert task.unbounded == (1, 3)
    low, high = task.states.bounds
    assert (low[[1, 3]], high[[1, 3]]) == (
        pytest.approx(-PROVISIONAL_BOUND),
        pytest.approx(PROVISIONAL_BOUND),
    )
    assert high[0] == pytest.approx(4.8)
    with pytest.raises(ArgumentError, match=r"Box\(low, high\).*coordinates \[1, 3\]"):
        task.require_bounds()
    free = task.play(lambda state, period: [1.0], seed=0)
    learned = Box([low[0], -0.5, low[2], -0.5], [high[0], 0.5, high[2], 0.5])
    held = dataclasses.replace(task, states=learned).play(lambda state, period: [1.0], seed=0)
    np.testing.assert_array_equal(free.outcomes, held.outcomes)
    np.testing.assert_array_equal(held.states, learned.nearest(np.asarray(free.states)))
    assert np.abs(np.asarray(free.outcomes)[:, 1]).max() > 0.5
    from_gymnasium("Pendulum-v1").require_bounds()


def test_half_open_axes_keep_the_end_they_have():
    turning = Turning()
    turning.observation_space = gymnasium.spaces.Box(0.0, np.inf, (1,))
    task = from_gymnasium(turning, horizon=2)
    assert task.unbounded == (0,)
    assert task.states == Box([0.0], [PROVISIONAL_BOUND])


def test_angles_are_unwrapped():
    task = from_gymnasium(Turning(), horizon=4, states=Box([0.0], [1.0], periodic=[0]))
    episode = task.play(lambda state, period: [0.3])
    np.testing.assert_allclose(episode.outcomes[:, 0], [1.2, 0.5, 0.8, 1.1], atol=1e-6)
    np.testing.assert_allclose(episode.states[:, 0], [0.9, 0.2, 0.5, 0.8, 0.1], atol=1e-6)


def test_angles_that_the_user_names():
    free = Turning(observe=lambda angle, count: [3.0 + 0.2 * count])
    free.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))
    task = from_gymnasium(free, horizon=3, angles=[0])
    assert task.states == Box([-np.pi], [np.pi], periodic=[0])
    assert task.unbounded == ()
    episode = task.play(still)
    around = np.array([3.2, 3.4, 3.6])
    np.testing.assert_allclose(episode.states[1:, 0], around - 2 * np.pi)
    np.testing.assert_allclose(np.diff(episode.outcomes[1:, 0]), 0.2)
    for angles in ([1], [-1]):
        with pytest.raises(ArgumentError, match="angles"):
            from_gymnasium(free, horizon=3, angles=angles)
    with pytest.raises(ArgumentError, match="angles"):
        from_gymnasium("FrozenLake-v1", angles=[0])


@pytest.mark.parametrize(
    ("identifier", "pairs"),
    [("Pendulum-v1", [(0, 1)]), ("Acrobot-v1", [(0, 1), (2, 3)]), ("CartPole-v1", [])],
)
def test_cosines_and_sines_are_recognised(identifier, pairs):
    task = from_gymnasium(identifier, horizon=50)
    assert list(task.angle_pairs.pairs) == pairs
    size = task.env.observation_space.shape[0]
    assert task.states.dimension == size - len(pairs)
    assert len(task.states.periodic) == len(pairs)
    seen, _ = task.env.reset(seed=3)
    state = task.state_of(seen)
    for turn, (cosine, sine) in zip(task.states.periodic, pairs, strict=True):
        np.testing.assert_allclose(np.cos(state[turn]), seen[cosine], atol=1e-6)
        np.testing.assert_allclose(np.sin(state[turn]), seen[sine], atol=1e-6)
    with pytest.raises(ShapeError, match=f"{size} numbers"):
        task.state_of(seen[:-1])


def test_what_is_no_angle():
    turn = np.linspace(0, 3, 9)
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    assert cos_sin_pairs(circle) == [(0, 1)]
    assert cos_sin_pairs(1.001 * circle) == []
    assert cos_sin_pairs(np.repeat(circle[:1], 9, axis=0)) == []  # still: no evidence
    assert cos_sin_pairs(np.eye(2)[[0, 1, 0, 1]]) == []  # one-hot
    with pytest.raises(DataError):
        cos_sin_pairs([[np.nan, 0.0]])


# What is broken.


@pytest.mark.parametrize(
    ("broken", "error", "words"),
    [
        (
            {"observe": lambda a, n: [np.nan if n == 2 else a]},
            DataError,
            r"nan in observation\[0\] after step 1",
        ),
        ({"earn": lambda n: np.inf if n == 3 else 0.0}, DataError, "reward.*after step 2"),
        ({"earn": lambda n: "much"}, DataError, "reward: expected a number.*after step 0"),
        ({"observe": lambda a, n: [a] * n}, ShapeError, r"shape \(2,\) after step 1"),
        ({"observe": lambda a, n: ["x"]}, DataError, "expected numbers.*after step 0"),
        (
            {"earn": crash},
            KernelMDPError,
            "Turning raised ZeroDivisionError after step 2: the wheel came off",
        ),
    ],
)
def test_bad_episodes_say_where(broken, error, words):
    task = from_gymnasium(Turning(**broken), horizon=4)
    with pytest.raises(error, match=words):
        task.play(still)


def test_beyond_given_bounds_is_an_error():
    task = from_gymnasium(Turning(observe=lambda a, n: [2.0]), horizon=4, states=Box([0.0], [1.0]))
    with pytest.raises(DomainError, match=r"after step 0.*outside by 1"):
        task.play(still)


def test_the_cause_is_kept():
    with pytest.raises(KernelMDPError) as found:
        from_gymnasium(Turning(earn=crash), horizon=4).play(still)
    assert isinstance(found.value.__cause__, ZeroDivisionError)


def test_a_start_that_fails():
    turning = Turning()
    turning.reset = lambda **_: 1 / 0
    with pytest.raises(KernelMDPError, match="ZeroDivisionError at the start"):
        from_gymnasium(turning, horizon=4).play(still)


def test_bad_tasks():
    with pytest.raises(ArgumentError, match="horizon"):
        from_gymnasium(Turning())
    with pytest.raises(ArgumentError, match="time limit of 200"):
        from_gymnasium("Pendulum-v1", horizon=201)
    with pytest.raises(ShapeError, match="3 coordinates"):
        from_gymnasium("Pendulum-v1", states=Box([0.0], [1.0]))
    with pytest.raises(ArgumentError, match="policy"):
        from_gymnasium(Turning(), horizon=2).play(lambda state, period: [0.0, 0.0])
    turning = Turning()
    turning.observation_space = gymnasium.spaces.Text(3)
    with pytest.raises(ArgumentError, match=r"observations made of Box, .*, got Text"):
        from_gymnasium(turning, horizon=2)


# Ours, seen from outside.


@pytest.fixture
def _made_once(monkeypatch):
    monkeypatch.setattr(gymnasium_env, "make", lambda name, *, seed, **_: instance(name, seed))


@pytest.mark.usefixtures("_made_once")
def test_an_angle_seen_as_cosine_and_sine():
    task = from_gymnasium("kernelmdp/PendulumNoisy-v0", horizon=20)
    assert task.states == Box([-1.0, -1.0, -8.0], [1.0, 1.0, 8.0])
    episode = task.play(lambda state, period: [2.0 * (-1) ** (period // 5)], seed=0)
    assert cos_sin_pairs(episode.states) == [(0, 1)]
    np.testing.assert_allclose(episode.states[0], [-1.0, 0.0, -0.02816067], atol=1e-7)
    expected = np.asarray(task.known_reward(jnp.asarray(episode.points)))
    np.testing.assert_allclose(episode.rewards, expected, atol=0.06)
    assert np.std(np.asarray(episode.rewards) - expected) > 0.003


@pytest.mark.usefixtures("_made_once")
def test_ours_ends_early_too():
    task = from_gymnasium("kernelmdp/CartPoleBalance-v0")
    episode = task.play(lambda state, period: [1.0], seed=0)
    assert episode.terminated
    assert len(episode.rewards) < 20
    assert abs(float(episode.states[-1, 2])) > np.radians(12)


@pytest.mark.usefixtures("_made_once")
@pytest.mark.parametrize(
    ("identifier", "state", "tip"),
    [
        ("kernelmdp/Pendulum-v0", [0.0, 0.0], (30, 100)),
        ("kernelmdp/PendulumSwingup-v0", [np.pi / 2, 0.0], (100, 30)),
        ("kernelmdp/CartPoleSwingup-v0", [0.0, 0.0, np.pi / 2, 0.0], (100, 126)),
    ],
)
def test_pictures(identifier, state, tip):
    env = gymnasium.make(identifier, render_mode="rgb_array")
    with pytest.raises(KernelMDPError, match="reset"):
        env.unwrapped.render()
    env.reset(options={"state": state})
    frame = env.render()
    assert (frame.shape, frame.dtype) == ((200, 200, 3), np.uint8)
    assert frame[tip].tolist() == [200, 110, 50]
    assert frame[0, 0].tolist() == [255, 255, 255]
