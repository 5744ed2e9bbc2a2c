"""What newcomers tried: controllers on named coordinates, wrong fallbacks, and what runs say."""

import dataclasses

import gymnasium
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.errors import ArgumentError, SafetyWarning

NAMES = ("deviation", "drift")


def task():
    problem = km.Problem.from_spaces(
        states=km.Box([-2.0, -2.0], [2.0, 2.0]), actions=km.Box([-1.0], [1.0]), horizon=6
    )
    return dataclasses.replace(problem, coordinates=NAMES)


def pid(coordinate, **gains):
    return km.mdp.PID(coordinate, 0.0, 1.0, low=-1.0, high=1.0, **gains)


def agent(fallback, **settings):
    return km.Greedy(task(), constraints="drift <= 1.5", fallback=fallback, seed=0, **settings)


@pytest.mark.parametrize("coordinate", ["drift", 1])
@pytest.mark.parametrize("trusted", [None, km.Box([-1.0, -1.0], [1.0, 1.0])])
def test_controllers_know_coordinates_by_name(coordinate, trusted):
    controller = pid(coordinate, derivative=0.5, rate="deviation")
    given = controller if trusted is None else (controller, trusted)
    policy = agent(given).problem.fallback.policy
    assert (policy.coordinate, policy.rate) == (1, 0)
    np.testing.assert_allclose(policy([0.4, 0.2], 0), [-0.4])


@pytest.mark.parametrize(
    ("coordinate", "said"),
    [(7, "a number below 2"), (-1, "a number below 2"), ("drfit", "did you mean 'drift'")],
)
def test_controllers_on_coordinates_that_do_not_exist(coordinate, said):
    with pytest.raises(ArgumentError, match=said):
        agent(pid(coordinate))


def test_a_controller_alone_knows_numbers_only():
    with pytest.raises(ArgumentError, match="coordinate: expected a number"):
        pid("drift")([0.0, 0.0], 0)


class Ship(gymnasium.Env):
    """A ship whose rudder turns it. The fallback steers to the wrong side."""

    observation_space = gymnasium.spaces.Box(-2.0, 2.0, (2,), np.float64)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = np.array([0.0, 0.5])
        return self.state.copy(), {}

    def step(self, action):
        deviation, drift = self.state
        drift = np.clip(drift + 0.5 * float(action[0]), -2.0, 2.0)
        self.state = np.array([np.clip(deviation + 0.1 * drift, -2.0, 2.0), drift])
        return self.state.copy(), -abs(self.state[0]), False, False, {}


def test_runs_say_how_constraints_were_kept():
    ship = km.envs.NamedCoordinates(Ship(), NAMES)
    wrong = km.mdp.PID("drift", 0.0, -2.0, low=-1.0, high=1.0)
    planner = {"name": "mpc", "horizon": 3, "samples": 16, "first_rounds": 1}
    settings = {"constraints": "drift <= 1.5", "fallback": wrong, "planner": planner}
    made = km.Greedy(ship, horizon=8, seed=0, first_episode="fallback", **settings)
    with pytest.warns(SafetyWarning, match=r"the fallback itself broke drift <= 1\.5 in period"):
        result = made.learn(episodes=1, progress=False)
    assert "violations" in repr(result)
    assert "in 1 of 1 episodes" in repr(result)
    assert "drift <= 1.5" in str(made)
    assert "safety" in str(made)


def test_plans_beyond_the_risk_are_named_without_a_theorem():
    made = agent(pid("drift"))
    made.totals["exceeded_risk"] = 2.0
    assert "2 plans exceeded the risk" in str(made.safety)
    assert str(km.Greedy(task(), seed=0).safety) == "not covered: no theorem is about this agent"


def test_habits_of_other_libraries():
    made = km.Greedy("riverswim", seed=0)
    with pytest.raises(TypeError, match="learning is counted in episodes"):
        made.learn(total_timesteps=100)
    with pytest.raises(TypeError, match="predict never explores"):
        made.predict([0], deterministic=True)


def test_errors_of_settings():
    with pytest.raises(ArgumentError, match="did you mean 'episode'"):
        agent(None, risk_for="episod")
    with pytest.raises(ArgumentError, match="--set horizon=40 on the command line"):
        km.Greedy(Ship(), seed=0)
