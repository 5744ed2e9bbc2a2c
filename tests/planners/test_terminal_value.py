"""Terminal values: against value iteration on a fine grid, and plans that see beyond their end."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp import Box
from kernelmdp.domains import FiniteSet
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp import MDP, NO_NOISE, MeanModel, play
from kernelmdp.numerics.modules import replace_fields
from kernelmdp.planners import MPCPlanner
from kernelmdp.planners.ilqr import TrackedPath, ilqr_refine
from kernelmdp.planners.model_rollout import rollout_returns
from kernelmdp.planners.terminal_value import TerminalValueConfig, fit_terminal_value

KEY = jax.random.key(0)
CONFIG = TerminalValueConfig(states=60, steps=4, sequences=16, discount=0.9, backups=40)
START = jnp.array([-0.8])


def goal(z):
    """A reward that is earned at the right end and nowhere else."""
    return jnp.where(z[:, 0] > 0.8, 1.0, 0.0)


def walk(z):
    return z[:, :1] + 0.1 * z[:, 1:]


def corridor(**options):
    words = {
        "states": Box([-1.0], [1.0]),
        "actions": Box([-1.0], [1.0]),
        "horizon": 40,
        "reward_noise": NO_NOISE,
        "transition_noise": NO_NOISE,
        "visited": jnp.linspace(-1.0, 1.0, 80)[:, None],
    }
    return MDP(MeanModel(goal, walk), **(words | options))


def dense_values(discount):
    """Value iteration with three actions on a grid that every action maps to itself."""
    nodes = np.arange(-100, 101)
    values = np.zeros(len(nodes))
    for _ in range(400):
        after = np.clip(nodes[:, None] + np.array([-10, 0, 10])[None, :], -100, 100)
        values = (nodes > 80) + discount * values[after + 100].max(axis=1)
    return nodes / 100, values


@pytest.mark.parametrize("actions", [Box([-1.0], [1.0]), FiniteSet([[-1.0], [0.0], [1.0]])])
def test_values_agree_with_a_fine_grid(actions):
    value = fit_terminal_value(corridor(actions=actions), key=KEY, config=CONFIG)
    nodes, exact = dense_values(CONFIG.discount)
    fitted = value(None, jnp.asarray(nodes)[:, None])
    # Random sequences are not the best ones, and interpolation rounds the corner off.
    assert np.abs(np.asarray(fitted) - exact).mean() < 0.1 * exact.max()
    assert np.corrcoef(fitted, exact)[0, 1] > 0.98


def test_values_stay_within_what_can_be_earned():
    value = fit_terminal_value(corridor(), key=KEY, config=CONFIG)
    everywhere = value(None, jnp.linspace(-50.0, 50.0, 101)[:, None])
    assert 0.0 <= float(everywhere.min()) <= float(everywhere.max()) <= 1 / (1 - CONFIG.discount)


def test_a_period_is_one_circle():
    box = Box([-np.pi], [np.pi], periodic=[0])
    mdp = corridor(states=box, visited=jnp.linspace(-np.pi, np.pi, 80)[:, None])
    value = fit_terminal_value(mdp, key=KEY, config=CONFIG)
    ends = value(None, jnp.array([[-np.pi], [np.pi]]))
    assert float(ends[0]) == pytest.approx(float(ends[1]))


def test_nothing_is_earned_after_termination():
    trap = corridor(termination=lambda points, after: after[:, 0] > 0.75)
    value = fit_terminal_value(trap, key=KEY, config=CONFIG)
    assert float(jnp.abs(value(None, jnp.array([[0.0], [0.5]]))).max()) < 0.05
    # A sequence that has ended there is not given the value of its last state.
    mdp = trap.with_signals(terminal_value=fit_terminal_value(corridor(), key=KEY, config=CONFIG))
    right, none = jnp.ones((1, 8, 1)), jnp.zeros((1, 8, 0))
    returns = [
        float(rollout_returns(each, START + 1.2, 0, right, none, None, optimism="ball")[0])
        for each in (mdp, corridor().with_signals(**mdp.signals | {"termination": _never}))
    ]
    assert returns[0] == 0.0 < returns[1]


def _never(points, after):
    return jnp.zeros(after.shape[0], bool)


def test_no_value_is_left_at_the_end_of_the_episode():
    mdp = corridor()
    mdp = mdp.with_signals(terminal_value=fit_terminal_value(mdp, key=KEY, config=CONFIG))
    right, none = jnp.ones((1, 8, 1)), jnp.zeros((1, 8, 0))
    plain = corridor()
    for period, is_last in ((0, False), (20, False), (32, True), (36, True)):
        found, reward = (
            float(rollout_returns(each, START, period, right, none, None, optimism="ball")[0])
            for each in (mdp, plain)
        )
        assert (found == reward) == is_last


def test_plans_go_where_they_cannot_see():
    """Plans of 4 steps see no reward, which is 16 steps away."""
    options = {"horizon": 4, "samples": 20, "elites": 4, "first_rounds": 2}
    without, with_value = (
        play(
            corridor(),
            MPCPlanner(terminal_value=setting, **options).plan(corridor(), key=KEY).policy,
            START,
            key=KEY,
        ).total
        for setting in (False, CONFIG)
    )
    # The fastest way takes 17 steps.
    assert without < 10.0 < 20.0 <= with_value <= 23.0


def test_by_default_only_where_plans_are_short_and_coordinates_few():
    for horizon, m, is_used in ((40, 1, True), (8, 1, False), (40, 3, True), (40, 4, False)):
        box, visited = Box([-1.0] * m, [1.0] * m), jnp.zeros((4, m))
        mdp = corridor(horizon=horizon, states=box, visited=visited)
        assert (MPCPlanner(horizon=4).visited_states(mdp) > 0) == is_used
        assert MPCPlanner(horizon=4, terminal_value=True).visited_states(mdp) == 768
        assert MPCPlanner(horizon=4, terminal_value=False).visited_states(mdp) == 0
    ends = corridor(termination=_never)
    assert MPCPlanner(horizon=4).prepared(ends, key=KEY) is ends


def test_short_episodes_need_no_value():
    mdp = corridor(horizon=4)
    assert MPCPlanner(horizon=4, terminal_value=True).prepared(mdp, key=KEY) is mdp
    unvisited = corridor(visited=None)
    assert MPCPlanner(horizon=4, terminal_value=True).prepared(unvisited, key=KEY) is unvisited


def test_ilqr_climbs_to_the_terminal_value():
    """s' = s + u with cost u² and terminal value −(s − 3)²: the best u is the same every step."""
    steps = 5

    def step(states, decisions):
        rewards = -(decisions[:, 0] ** 2)
        return rewards, states + decisions, jnp.zeros(states.shape[0], bool)

    nothing = jnp.zeros((steps, 1))
    path, total = ilqr_refine(
        step,
        jnp.zeros(1),
        nothing,
        low=jnp.array([-9.0]),
        high=jnp.array([9.0]),
        scale=jnp.ones(1),
        active=jnp.ones(steps, bool),
        difference=lambda a, b: a - b,
        iterations=2,
        previous=TrackedPath.without_feedback(nothing, dimension=1, laws=4),
        terminal_value=lambda states: -((states[:, 0] - 3.0) ** 2),
    )
    np.testing.assert_allclose(path.decisions[:, 0], 3 / (1 + steps), rtol=1e-4)
    assert float(total) == pytest.approx(-9 / (1 + steps), rel=1e-6)


def test_an_agent_with_terminal_values_is_saved_and_loaded(tmp_path):
    small = {"states": 20, "steps": 2, "sequences": 4, "backups": 4}
    planner = {"name": "mpc", "horizon": 5, "samples": 13, "first_rounds": 1}
    agent = km.Frugal(
        "cartpole-swingup",
        kernel="auto",
        planner=planner | {"terminal_value": small},
        draws=2,
        seed=0,
    )
    agent.learn(episodes=2, progress=False)
    agent.save(tmp_path / "agent.kmdp")
    loaded = km.load(tmp_path / "agent.kmdp")
    state = agent.starts[-1]
    np.testing.assert_array_equal(agent.predict(state, 0), loaded.predict(state, 0))
    assert loaded.planner.terminal_value == TerminalValueConfig.of(small)
    assert agent.learner.mean(agent.state).visited.shape == (40, 4)


@pytest.mark.parametrize(
    ("setting", "match"),
    [
        ({"discount": 1.0}, "discount: expected above 0 and below 1, got 1.0"),
        ({"states": 1}, "states"),
        ({"state": 3}, "did you mean 'states'"),
        ({"ridge": -1.0}, "ridge"),
    ],
)
def test_bad_settings(setting, match):
    with pytest.raises(ArgumentError, match=match):
        MPCPlanner(terminal_value=setting)


def test_no_field_of_the_mdp_is_lost():
    mdp = corridor()
    assert replace_fields(mdp, horizon=3).visited is mdp.visited
