"""Bad input to agents: one error of ours that says what is wrong, and an agent as it was."""

import dataclasses

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import kernelmdp as km
from kernelmdp.errors import ArgumentError, CheckpointError, DataError, DomainError, ShapeError
from kernelmdp.mdp.episode import as_arrays
from tests.agents import tiny

H = tiny.H
UNIT = spaces.Box(-1.0, 1.0, (2,), np.float64)


class Sick(gymnasium.Env):
    """Stands still until it gives ``value`` as coordinate 1, or as the reward, after step 1."""

    def __init__(self, observations=UNIT, actions=None, *, coordinate=None, reward=0.0):
        self.observation_space = observations
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float64) if actions is None else actions
        self.coordinate, self.reward = coordinate, reward

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(2), {}

    def step(self, action):
        state = np.zeros(2)
        late = self.steps == 1
        if late and self.coordinate is not None:
            state[1] = self.coordinate
        self.steps += 1
        return state, self.reward if late else 0.0, False, False, {}


# Tasks no agent can be made for.


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (Sick(spaces.Dict({"word": spaces.Text(3)})), "env: expected observations made of Box"),
        (Sick(spaces.Discrete(4)), "env: expected Discrete actions with Discrete observations"),
        (Sick(spaces.Box(0, 255, (8, 8, 3), np.uint8)), "env: expected .* for images"),
        (Sick(actions=spaces.MultiDiscrete([20, 30])), "env: expected at most 256 combinations"),
        (Sick(actions=spaces.Box(-np.inf, np.inf, (1,))), "env: expected actions with finite"),
    ],
    ids=["text", "discrete", "image", "multidiscrete", "unbounded"],
)
def test_spaces_that_do_not_fit(env, message):
    with pytest.raises(ArgumentError, match=message):
        km.PSRL(env, horizon=3)


def test_observations_without_bounds():
    with pytest.raises(ArgumentError, match=r"Box\(low, high\).*coordinates \[1, 3\]"):
        km.PSRL("CartPole-v1", reward_kernel="se(1.0)")


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("rhks", "did you mean 'rkhs'"),
        ("Nonsense-v7", "task: expected an environment that Gymnasium can make, got .*Nonsense"),
        (Sick(), "horizon: expected a whole number, as the environment has no time limit"),
        (3, "expected a gymnasium.Env or the id of one"),
    ],
)
def test_no_such_task(unchecked, task, message):
    with pytest.raises(ArgumentError, match=message):
        km.PSRL(task)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"horizon": 5}, "horizon: expected 3, as the task has"),
        ({"seed": -1}, "seed: expected a whole number"),
        ({"planner": "hope"}, "planner: expected one of 'grid', 'bonus'"),
        ({"confidence": "blind"}, "confidence"),
        ({"reward": "guess"}, "reward: expected 'learned'"),
        ({"reward_kernel": "se("}, "text: expected"),
        ({"reward_kernel": 3}, "reward_kernel: expected a kernel or its text"),
        ({"transition_kernel": 3}, "transition_kernel: expected a kernel or its text"),
        ({"noise": "loud"}, "noise: expected a noise law"),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else "",
)
def test_words_that_do_not_fit(words, message):
    with pytest.raises(ArgumentError, match=message):
        tiny.make(**words)


@pytest.mark.parametrize(
    ("reward", "error", "message"),
    [
        (lambda z: z[:, :1], ShapeError, r"reward: expected a function.*shape \(\d+, 1\)"),
        (lambda z: jnp.sum(z), ShapeError, r"reward: expected a function.*shape \(\)"),
        (lambda z: jnp.log(z[:, 0] - 5), DataError, "reward: expected finite numbers, got nan"),
    ],
    ids=["column", "number", "nan"],
)
def test_a_known_reward_that_is_none(reward, error, message):
    with pytest.raises(error, match=message):
        tiny.make(reward=reward)


def test_a_grid_too_large_for_memory():
    """Refused before anything of its size is made."""
    planner = km.GridPlanner(state_points=200_000, action_points=2_000)
    with pytest.raises(ArgumentError, match=r"GiB.*200,000 states x 2,000 actions, about \d+"):
        tiny.make(planner=planner)


# Episodes that are none.


@pytest.fixture(scope="module")
def agent():
    made = tiny.make()
    made.tell(*tiny.episode())
    return made


def arrays_of(agent):
    problem = agent.problem
    return as_arrays(
        agent.history,
        state_dimension=problem.states.dimension,
        action_dimension=problem.actions.dimension,
        horizon=problem.horizon,
    )


@pytest.fixture
def unchanged(agent, tmp_path):
    """After the test the agent is as before, in what it plans and in what it would save."""
    before, arrays, beliefs = tiny.actions(agent), arrays_of(agent), agent.beliefs
    yield agent
    assert agent.episode == 1
    assert agent.beliefs is beliefs
    np.testing.assert_array_equal(tiny.actions(agent), before)
    for name, array in arrays_of(agent).items():
        np.testing.assert_array_equal(array, arrays[name])


def spoilt(place, change):
    parts = [part.copy() for part in tiny.episode(1)]
    parts[place] = change(parts[place])
    return parts


def holed(*index, value=np.nan):
    def change(part):
        part[index] = value
        return part

    return change


STATES, ACTIONS, REWARDS, OUTCOMES = range(4)


@pytest.mark.parametrize(
    ("place", "change", "error", "message"),
    [
        (STATES, holed(2, 0), DataError, "states: .*nan at step 2, coordinate 0"),
        (OUTCOMES, holed(1, 0, value=np.inf), DataError, "outcomes: .*inf at step 1, coordinate 0"),
        (ACTIONS, holed(0, 0), DataError, "actions: .*nan at step 0, coordinate 0"),
        (REWARDS, holed(2, value=-np.inf), DataError, "rewards: .*-inf at step 2$"),
        (STATES, lambda x: x[:-1], ShapeError, r"states: .*\(4, 1\) for an episode of 3 periods"),
        (REWARDS, lambda x: np.append(x, 0), ShapeError, r"rewards: .*\(3,\).*got shape \(4,\)"),
        (ACTIONS, lambda x: x[:, 0], ShapeError, r"actions: .*\(3, 1\).*got shape \(3,\)"),
        (ACTIONS, holed(1, 0, value=1.5), DomainError, r"actions: .*point 1.*= 1\.5, outside by"),
        (STATES, holed(3, 0, value=-2.0), DomainError, "states: .*point 3 .*= -2, outside by 1"),
        (REWARDS, lambda x: ["a", "b", "c"], ArgumentError, "rewards: expected numbers"),
    ],
)
def test_tell(unchanged, place, change, error, message):
    with pytest.raises(error, match=message):
        unchanged.tell(*spoilt(place, change))


@pytest.mark.parametrize("periods", [H - 1, H + 1])
def test_episodes_of_another_length(unchanged, periods):
    states = np.zeros((periods + 1, 1))
    with pytest.raises(ShapeError, match="for an episode of 3 periods"):
        unchanged.tell(states, np.zeros((periods, 1)), np.zeros(periods))


def test_ask_and_predict(unchanged):
    with pytest.raises(ShapeError, match="first_state: expected a state of 1 numbers"):
        unchanged.ask([0.0, 0.0])
    with pytest.raises(DataError, match="observation: expected finite"):
        unchanged.predict([np.nan])
    with pytest.raises(ArgumentError, match="period: expected a whole number of at least 0"):
        unchanged.predict([0.0], period=-1)
    with pytest.raises(ArgumentError, match="episodes: expected a whole number"):
        unchanged.learn(0)


def test_a_checkpoint_of_another_problem(unchanged, tmp_path):
    unchanged.save(tmp_path / "agent")
    with pytest.raises(CheckpointError, match="another problem"):
        km.load(tmp_path / "agent", task=dataclasses.replace(unchanged.problem, name="other"))


# A system that falls ill while it is played with.


@pytest.fixture(scope="module")
def player():
    planner = km.GridPlanner(state_points=5, action_points=3)
    kernels = {"reward_kernel": "linear", "transition_kernel": "linear"}
    # Beyond bounds that a user gives, an observation is an error.
    task = km.from_gymnasium(Sick(), horizon=3, states=km.Box([-1.0, -1.0], [1.0, 1.0]))
    return km.Random(task, planner=planner, **kernels)


@pytest.mark.parametrize(
    ("illness", "error", "message"),
    [
        ({"coordinate": np.nan}, DataError, r"observation: .*nan in observation\[1\] after step 1"),
        ({"coordinate": 7.0}, DomainError, "observation after step 1: .*coordinate 1 = 7"),
        ({"reward": np.inf}, DataError, "reward: expected a finite number, got inf after step 1"),
    ],
    ids=["nan", "outside", "reward"],
)
def test_an_environment_that_falls_ill(player, illness, error, message):
    before = player.ask()([0.0, 0.0], 0)
    env = player.task.env
    env.coordinate, env.reward = illness.get("coordinate"), illness.get("reward", 0.0)
    with pytest.raises(error, match=message):
        player.learn(1, progress=False)
    assert player.episode == 0
    np.testing.assert_array_equal(player.ask()([0.0, 0.0], 0), before)
