"""Coordinates that never change, repeat another one or are too large are kept, and said."""

import warnings

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelmdp as km
from kernelmdp.envs import from_gymnasium
from kernelmdp.envs.redundancy import constant_coordinates, relation, repeated_coordinates
from kernelmdp.errors import ObservationWarning
from kernelmdp.learners import FittedKernels


class Slider(gymnasium.Env):
    """Place and speed, and what ``more`` makes of them."""

    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def __init__(self, more, bound=np.inf):
        self.more = more
        size = 2 + len(more(0.0, 0.0))
        self.observation_space = gymnasium.spaces.Box(-bound, bound, (size,), np.float64)

    def observe(self):
        return np.array([self.place, self.speed, *self.more(self.place, self.speed)])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.speed = self.np_random.uniform(-0.5, 0.5, 2)
        return self.observe(), {}

    def step(self, action):
        self.speed = np.clip(self.speed + 0.2 * float(action[0]) - 0.1 * self.place, -1, 1)
        self.place = np.clip(self.place + 0.2 * self.speed, -2, 2)
        return self.observe(), -(self.place**2), False, False, {}


def push(state, period):
    return [np.sin(1.0 * period)]


def messages(task, episodes):
    """What is said while episodes are played, in order."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for seed in range(episodes):
            task.play(push, seed=seed)
    assert {each.category for each in caught} <= {ObservationWarning}
    return [str(each.message) for each in caught]


def test_they_are_named_once_and_kept():
    task = from_gymnasium(Slider(lambda x, v: [0.7, -2 * x, v, 1 - v]), horizon=12)
    assert messages(task, 1) == []  # one episode is too little to tell
    told = messages(task, 1)
    assert [each.partition(", in")[0].partition(" in ")[0] for each in told] == [
        "observation[2] did not change",
        "observation[3] was always -2 times observation[0]",
        "observation[4] was always observation[1]",
        "observation[5] was always minus observation[1] plus 1",
    ]
    assert "in 26 observations" in told[0]
    assert messages(task, 3) == []
    assert task.states.dimension == 6


def test_names_of_parts_are_used():
    class Parts(Slider):
        observation_space = gymnasium.spaces.Dict(
            {"goal": gymnasium.spaces.Box(1.0, 1.0, ()), "place": gymnasium.spaces.Box(-2, 2, ())}
        )

        def __init__(self):
            pass

        def observe(self):
            return {"goal": 1.0, "place": self.place}

    task = from_gymnasium(Parts(), horizon=15)
    assert task.states.bounds[0].tolist() == [0.5, -2.0]  # a state space needs some width
    assert [each.split()[0] for each in messages(task, 2)] == ["goal"]


def test_nothing_is_said_of_a_goal_or_of_useful_coordinates():
    class Goal(Slider):
        def reset(self, *, seed=None, options=None):
            self.goal = seed or 0.0
            return super().reset(seed=seed)

    env = Goal(lambda x, v: [x**2, np.sin(v)])
    env.more = lambda x, v: [x**2, env.goal]
    assert messages(from_gymnasium(env, horizon=12), 4) == []


def test_values_beyond_the_provisional_bound_are_said():
    task = from_gymnasium(Slider(lambda x, v: [1e7 * (2 + x)]), horizon=3)
    told = messages(task, 3)
    assert len(told) == 1
    assert told[0].startswith("observation[2] was 2")
    assert "Pass states=Box(low, high)" in told[0]
    states = km.Box([-2.0, -1.0, 0.0], [2.0, 1.0, 4e7])
    assert messages(from_gymnasium(task.env, horizon=3, states=states), 2) == []


def test_values_beyond_declared_bounds_are_clipped_and_said_once():
    task = from_gymnasium(Slider(lambda x, v: [1.2 + np.cos(v)], bound=2.0), horizon=12)
    (told,) = messages(task, 3)
    assert told.startswith("observation[2] was 2.")
    assert "beyond its bounds -2 to 2. Its state is clipped" in told
    with pytest.warns(ObservationWarning):
        episode = from_gymnasium(task.env, horizon=12).play(push, seed=0)
    outcomes = np.asarray(episode.outcomes)
    np.testing.assert_allclose(outcomes[:, 2], 1.2 + np.cos(outcomes[:, 1]))  # as observed
    assert (outcomes[:, 2] > 2.0).any()
    np.testing.assert_array_equal(episode.states[1:], np.clip(outcomes, -2.0, 2.0))
    assert task.state_of(np.array([0.0, 0.0, 3.0])).tolist() == [0.0, 0.0, 2.0]


def test_one_open_end():
    env = Slider(lambda x, v: [np.sin(3 * v)])
    env.observation_space = gymnasium.spaces.Box(np.array([-np.inf, -1, 0.0]), np.inf, (3,), float)
    (told,) = messages(from_gymnasium(env, horizon=9), 2)
    assert told.startswith("observation[2] was -")
    assert "beyond its bounds 0 to 1e+06" in told


@pytest.mark.filterwarnings("ignore::kernelmdp.errors.ObservationWarning")
def test_an_agent_learns_from_clipped_states():
    task = from_gymnasium(Slider(lambda x, v: [], bound=0.6), horizon=12)
    agent = km.PSRL(task, seed=0, planner="mpc")
    assert len(agent.learn(episodes=2, progress=False).episodes) == 2
    low, high = task.states.bounds
    assert all((low <= each.states).all() and (each.states <= high).all() for each in agent.history)


@settings(max_examples=50, deadline=None)
@given(
    factor=st.floats(1e-3, 1e3).map(lambda a: round(a, 6)),
    sign=st.sampled_from([-1.0, 1.0]),
    constant=st.floats(-10, 10),
    seed=st.integers(0, 99),
)
def test_multiples_are_found_and_nothing_else(factor, sign, constant, seed):
    x, other = np.random.default_rng(seed).standard_normal((2, 30))
    columns = [x, np.full(30, constant), other, sign * factor * x + constant]
    rows = np.stack(columns, axis=1)
    assert constant_coordinates(rows) == [1]
    ((i, j, found, offset),) = repeated_coordinates(rows)
    assert (i, j) == (3, 0)
    assert found == pytest.approx(sign * factor)
    assert offset == pytest.approx(constant, abs=1e-9)
    # Of 32 bits the same is found; a slight bend is not the same.
    assert len(repeated_coordinates(rows.astype(np.float32).astype(float))) == 1 or factor < 0.1
    assert repeated_coordinates(np.stack([x, x + 1e-4 * x**2], axis=1)) == []


def test_words_for_relations():
    assert relation("x", 1.0, 0.0) == "x"
    assert relation("x", -1.0, -0.25) == "minus x minus 0.25"
    assert relation("x", 0.5, 1e-9) == "0.5 times x"


@pytest.mark.filterwarnings("ignore::kernelmdp.errors.ObservationWarning")
def test_the_learner_fits_them():
    task = from_gymnasium(Slider(lambda x, v: [0.7, x]), horizon=12)
    learner, key = FittedKernels(), jax.random.key(0)
    state = learner.init(task.problem, key=key)
    for seed in range(2):
        state = learner.update(state, task.play(push, seed=seed), key=key)
    point = np.array([[0.3, 0.0, 0.7, 0.3, 0.5]])
    model = learner.mean(state).model(jnp.asarray(point))
    next_state = np.asarray(model.state)[0]
    assert next_state[2] == pytest.approx(0.7, abs=1e-3)  # the constant stays
    assert next_state[3] == pytest.approx(next_state[0], abs=1e-3)  # both move alike
    assert next_state[0] == pytest.approx(0.3 + 0.2 * (0.2 * 0.5 - 0.03), abs=0.02)
    assert np.isfinite(learner.info(state)["gain_transition"])


def test_two_goals_do_not_make_one_coordinate_repeat_another():
    """Two points always lie on a line."""
    goals = np.repeat([[0.1, 0.5], [0.3, 0.2]], 10, axis=0)
    assert repeated_coordinates(goals) == []
    third = np.concatenate([goals, [[0.2, 0.35]]])
    assert [pair[:2] for pair in repeated_coordinates(third)] == [(1, 0)]
