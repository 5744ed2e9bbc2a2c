"""The controller: what predict does, within a time limit, with a watchdog and a log."""

import threading

import jax
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.controllers import Controller, StepLog
from kernelmdp.errors import ArgumentError, ObservationError, StaleControllerError
from kernelmdp.mdp.policy import Policy, PolicyPlayer

PROBLEM = km.Problem.from_spaces(
    states=km.Box([-1.0], [1.0]), actions=km.Box([-1.0], [1.0]), horizon=4, name="slider"
)


class Gate(Policy):
    """Halves the state, once its gate is open. It stands for a policy that takes long."""

    opened = threading.Event()
    entered = threading.Event()

    def actions(self, states, period):
        return -0.5 * states

    def __call__(self, state, period):
        Gate.entered.set()
        assert Gate.opened.wait(60)
        return -0.5 * np.atleast_1d(np.asarray(state, float))


@pytest.fixture
def gate():
    Gate.opened.set()
    yield Gate.opened
    Gate.opened.set()


def test_it_does_what_predict_does():
    agent = km.Greedy("lqr-1d", seed=0)
    agent.learn(episodes=2, progress=False)
    controller = agent.controller()
    for period, state in enumerate(([0.4], [0.1], [-0.2])):
        np.testing.assert_array_equal(controller(state), agent.predict(state, period))
    assert [step.source for step in controller.log.steps] == ["plan"] * 3
    assert controller.period == 3


def test_it_plays_a_policy_with_its_memory():
    """MPC searches from its last plan, which ``predict`` does not."""
    agent = mpc_agent()
    player = PolicyPlayer(agent.controller_plan().policy)
    controller = agent.controller()
    for period, state in enumerate(([0.4, 0.0], [0.3, 0.1], [0.2, 0.0])):
        np.testing.assert_array_equal(controller(state), player(state, period))


def mpc_agent():
    planner = {"name": "mpc", "horizon": 4, "samples": 16, "first_rounds": 2}
    return km.Greedy("lqr-2d", planner=planner, seed=0)


def test_a_late_decision_is_replaced_by_the_planned_action():
    agent = mpc_agent()
    controller = agent.controller(time_limit=1e-9)
    controller.reset([0.4, 0.0])
    first = controller([0.4, 0.0])  # planned at the reset, so it is in time
    ahead = controller._first.planned
    late = controller([0.3, 0.1])
    assert [step.source for step in controller.log.steps] == ["plan", "late"]
    np.testing.assert_array_equal(late, ahead[0])
    np.testing.assert_array_equal(first, controller.log.steps[0].action)
    controller.close()


def test_without_a_sequence_the_fallback_acts(gate):
    controller = Controller(Gate(), PROBLEM, time_limit=1e-3, fallback=[0.25])
    gate.clear()
    assert controller([0.8]) == [0.25]
    gate.set()
    assert controller.log.steps[0].source == "fallback"
    controller.close()


def test_without_anything_it_waits_first_and_holds_then(gate):
    controller = Controller(Gate(), PROBLEM, time_limit=1e-6)
    assert controller([0.8]) == [-0.4]  # there is nothing else, so it waits
    gate.clear()
    assert controller([0.2]) == [-0.4]
    gate.set()
    assert [step.source for step in controller.log.steps] == ["plan", "held"]
    controller.reset()  # it waits for the late decision
    assert controller([0.2]) == [-0.1]
    controller.close()


def test_only_the_newest_request_is_decided(gate):
    controller = Controller(Gate(), PROBLEM, time_limit=1e-3, fallback=[0.0])
    gate.clear()
    Gate.entered.clear()
    controller([0.1])
    assert Gate.entered.wait(60)
    controller([0.2])
    controller([0.3])
    gate.set()
    assert controller._decisions.wait(2, 60)
    assert controller._decisions.latest.state == [0.3]
    controller.close()


def test_an_error_in_the_thread_reaches_the_caller():
    class Broken(Gate):
        def __call__(self, state, period):
            if state[0] > 0.5:
                raise ValueError("broken")
            return np.zeros(1)

    controller = Controller(Broken(), PROBLEM, time_limit=60.0, fallback=[0.0])
    with pytest.raises(ValueError, match="broken"):
        controller([0.9])
    assert controller([0.1]) == [0.0]
    controller.close()


def test_beyond_the_horizon_the_last_rule_is_held():
    agent = km.Greedy("lqr-1d", seed=0)
    H = agent.problem.horizon
    controller = agent.controller()
    actions = [controller([0.3]) for _ in range(H + 2)]
    np.testing.assert_array_equal(actions[H], agent.predict([0.3], H - 1))
    np.testing.assert_array_equal(actions[H], actions[H + 1])


def test_beyond_the_horizon_mpc_keeps_its_receding_horizon():
    policy = mpc_agent().controller_plan().policy
    assert policy.later_period(50) == 46  # a plan of 4 steps is seen as a whole
    assert policy.later_period(3) == 1  # never period 0, which is searched longer
    controller = mpc_agent().controller()
    H = controller.problem.horizon
    for _ in range(H + 2):
        controller([0.3, 0.0])
    assert len(controller._decisions.latest.planned) == 3


class Clock:
    """A clock that stands still until it is set."""

    now = 0.0

    def __call__(self):
        return self.now


def test_watchdog():
    clock, called = Clock(), []
    brake = Gate()
    Gate.opened.set()
    options = {"watchdog": 1.0, "on_stale": called.append, "fallback": [0.5], "clock": clock}
    controller = Controller(brake, PROBLEM, **options)
    clock.now = 100.0
    controller([0.1])  # the first call arms it
    clock.now = 100.9
    controller([0.1])
    clock.now = 102.0
    with pytest.raises(StaleControllerError, match="reset"):
        controller([0.1])
    with pytest.raises(StaleControllerError):
        controller([0.1])
    assert controller.stale
    assert called == [np.array([0.5])]  # once
    assert len(controller.log.steps) == 2
    controller.reset()
    assert not controller.stale
    controller([0.1])
    controller.close()


def test_the_watchdog_has_a_thread_of_its_own():
    noticed = threading.Event()
    controller = Controller(
        Gate(), PROBLEM, watchdog=0.01, on_stale=lambda action: noticed.set(), fallback=[0.0]
    )
    controller.reset()
    assert noticed.wait(60)  # nobody called
    controller.close()


@pytest.mark.parametrize("bad", [[np.nan], [0.1, 0.2], "warm", [np.inf], None, [[0.1]], [3.0]])
def test_bad_observations(bad, unchecked):
    controller = Controller(Gate(), PROBLEM, bounds=km.Box([-2.0], [2.0]))
    controller([0.4])
    with pytest.raises(ObservationError):
        controller(bad, reward=7.0)
    assert controller.period == 1
    assert controller.log.steps[0].reward is None
    guarded = Controller(Gate(), PROBLEM, bounds=km.Box([-2.0], [2.0]), fallback=[0.25])
    assert guarded(bad) == [0.25]
    assert guarded.log.steps[0].source == "fallback"
    assert guarded([0.4]) == [-0.2]


def test_a_fallback_controller_acts_in_the_last_good_state(unchecked):
    controller = Controller(Gate(), PROBLEM, fallback=lambda state, period: -0.1 * state)
    with pytest.raises(ObservationError):
        controller([np.nan])  # it has not seen any state
    controller([0.4])
    np.testing.assert_allclose(controller([np.nan]), [-0.04])


def test_bad_arguments():
    for name, value in (("time_limit", 0.0), ("watchdog", -1.0), ("fallback", [3.0])):
        with pytest.raises(ArgumentError, match=name):
            Controller(Gate(), PROBLEM, **{name: value})
    with pytest.raises(ArgumentError, match="bounds"):
        Controller(Gate(), PROBLEM, bounds=km.Box([0.0, 0.0], [1.0, 1.0]))
    controller = Controller(Gate(), PROBLEM)
    with pytest.raises(ArgumentError, match="before the first action"):
        controller.observe(1.0)
    controller([0.1])
    with pytest.raises(ArgumentError, match="reward"):
        controller([0.1], reward=float("nan"))
    assert controller.period == 1


def test_the_log_is_told():
    agent = km.PSRL(PROBLEM, planner=km.GridPlanner(9, 3), seed=0)
    controller = agent.controller()
    state = [0.5]
    controller.reset(state)
    for period in range(4):
        action = controller(state, reward=None if period == 0 else -abs(state[0]))
        state = [0.9 * state[0] + 0.2 * action[0]]
    controller.observe(-abs(state[0]), state)
    agent.tell(**controller.log.episode())
    episode = agent.history[0]
    assert len(episode) == 4
    np.testing.assert_allclose(episode.outcomes[-1], state)
    np.testing.assert_allclose(episode.actions, [s.action for s in controller.log.steps])


def test_the_log_is_cut_where_it_must_be(unchecked):
    controller = Controller(Gate(), PROBLEM, fallback=[0.0])
    for number in range(11):
        state = [np.nan] if number == 6 else [0.1 * number]
        controller(state, reward=None if number == 0 else float(number))
    pieces = controller.log.episodes()
    # Steps 0 to 3 and 4; 5 leads to a bad observation, 6 is one; 7 to 9; 10 is not complete.
    assert [len(piece["rewards"]) for piece in pieces] == [4, 1, 3]
    assert [piece["truncated"] for piece in pieces] == [False, True, True]
    assert pieces[1]["rewards"].tolist() == [5.0]
    assert pieces[0]["outcomes"][-1] == pytest.approx(0.4)
    agent = km.PSRL(PROBLEM, planner=km.GridPlanner(9, 3), seed=0)
    for piece in pieces:
        agent.tell(**piece)
    with pytest.raises(ArgumentError, match="one episode"):
        controller.log.episode()


def test_a_missing_reward_is_said():
    controller = Controller(Gate(), PROBLEM)
    controller([0.1])
    controller([0.1])
    with pytest.raises(ArgumentError, match="step 0"):
        controller.log.episodes()


def test_states_beyond_the_border_are_projected_and_angles_unwrapped():
    problem = km.Problem.from_spaces(
        states=km.Box([-np.pi, -1.0], [np.pi, 1.0], periodic=[0]),
        actions=km.Box([-1.0], [1.0]),
        horizon=1,
    )

    class Rest(Policy):
        def actions(self, states, period):
            return 0.0 * states[:, :1]

    controller = Controller(Rest(), problem)
    controller([3.1, 0.9])
    controller.observe(0.0, [-3.1, 1.2], terminated=True)
    episode = controller.log.episode()
    np.testing.assert_allclose(episode["states"][1], [-3.1, 1.0])
    np.testing.assert_allclose(episode["outcomes"][0], [2 * np.pi - 3.1, 1.2])
    assert episode["terminated"]


def test_a_measured_cost_is_logged():
    agent = km.GPUCRL(
        PROBLEM,
        constraints="cost <= 0.5",
        fallback=lambda state, period: 0.0 * state[:1],
        planner={"name": "mpc", "horizon": 4, "samples": 16},
        seed=0,
    )
    controller = Controller(agent.ask(), agent.problem)
    controller([0.1])
    controller([0.1], reward=1.0, cost=0.2)
    controller.observe(1.0, [0.2], cost=0.3)
    episode = controller.log.episode()
    assert episode["costs"].tolist() == [0.2, 0.3]
    assert episode["states"].shape == (3, 1)
    agent.tell(**episode)


def test_a_long_log_drops_its_oldest_steps():
    controller = Controller(Gate(), PROBLEM)
    controller.reset(log=StepLog(PROBLEM, size=3))
    for number in range(8):
        controller([0.1 * number], reward=None if number == 0 else float(number))
    assert (controller.period, len(controller.log.steps)) == (8, 3)
    assert controller.log.episode()["rewards"].tolist() == [6.0, 7.0]


@pytest.mark.parametrize("limit", [None, 60.0])
def test_nothing_is_compiled_after_it_is_made(limit):
    agent, compiled = mpc_agent(), []
    controller = agent.controller(time_limit=limit, fallback=lambda state, period: 0.1 * state[:1])

    def note(event, duration, **_):
        compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        controller.reset([0.4, 0.0])
        for _ in range(agent.problem.horizon + 2):
            controller([0.3, 0.1])
        controller.reset()
        controller([0.2, 0.1])
        assert [event for event in compiled if "compile" in event or "trac" in event] == []
        jax.jit(lambda x: x + 1)(1.0)  # a program is noticed
        assert compiled
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
    controller.close()


def test_it_goes_on_with_a_log():
    controller = Controller(Gate(), PROBLEM)
    controller([0.1])
    log = controller.log
    other = Controller(Gate(), PROBLEM)
    other.reset(log=log)
    assert other.period == 1
    other([0.2], reward=1.0)
    assert len(log.steps) == 2
