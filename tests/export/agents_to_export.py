"""Agents of each kind of controller, their exports, and the actions that these must choose."""

import functools

import jax.numpy as jnp
import numpy as np

import kernelmdp as km
from kernelmdp.export import controller_of
from kernelmdp.export.self_check import drawn_inputs


def linear():
    """Gains that differ in every period, and actions that meet their limits."""
    return learned(km.Greedy("lqr-2d", seed=0, planner="riccati"), 3), {}


def arms():
    return learned(km.Greedy("bandit-branin", seed=0), 3), {}


def nearest_choices():
    """Finite actions over a box: a table of numbers of actions."""
    planner = {"name": "grid", "state_points": [13, 11]}
    agent = km.Greedy("MountainCar-v0", horizon=3, planner=planner, reward=reward_of_side)
    return learned(agent, 1), {}


def reward_of_side(points):
    """Left of 0 the first action is best, right of it the last one."""
    return points[:, 0] * points[:, 2]


def points():
    return learned(km.Greedy("riverswim", seed=0), 3), {}


def shifted_points():
    """A table of Gymnasium, whose observations are integers."""
    return learned(km.Greedy("FrozenLake-v1", seed=0, horizon=10), 1), {}


def interpolated():
    return learned(km.Greedy("rkhs", seed=0), 2), {"interpolation": "linear"}


@functools.cache
def angles():
    """Cosine and sine become an angle, whose axis is periodic."""
    planner = {"name": "grid", "state_points": [15, 9], "action_points": [5]}
    return learned(km.Greedy("Pendulum-v1", seed=0, horizon=5, planner=planner), 1), {
        "interpolation": "linear"
    }


#: A distillation that takes seconds.
SMALL = {"width": 16, "rounds": 2, "states": 40, "steps": 400, "episodes": 4, "loss_episodes": 2}
#: A search that takes little time.
SEARCH = {"name": "mpc", "horizon": 3, "samples": 16, "first_rounds": 2}


def distilled():
    """A network, with the period as an input."""
    return learned(km.Greedy("rkhs", seed=0, planner=SEARCH), 2), SMALL | {"period": True}


def distilled_choices():
    """A network whose outputs are scores of finite actions."""
    agent = km.Greedy("MountainCar-v0", horizon=3, planner=SEARCH, reward=reward_of_side)
    return learned(agent, 1), SMALL | {"play_episodes": 0}


def nearest_angles():
    return angles()[0], {"interpolation": "nearest"}


def learned(agent, episodes):
    agent.learn(episodes, progress=False)
    return agent


@functools.cache
def export_of(maker):
    """Made once for all modules: an agent takes seconds to compile."""
    agent, options = maker()
    return agent, options, controller_of(agent, **options)


def thousand_actions(exported):
    """1,000 observations with periods, and the actions of the exported policy."""
    agent, _, export = exported
    observations, periods = drawn_inputs(export.table, agent.problem.states, count=1000, seed=7)
    states = np.array([state_of(export.table.inputs, row) for row in observations])
    actions = np.empty((len(states), len(export.table.action_low)))
    for period in set(periods.tolist()):
        at = periods == period
        chosen = export.policy.actions(jnp.asarray(states[at]), jnp.asarray(period))
        actions[at] = np.asarray(chosen)
    assert export.table.kind == "linear" or len(np.unique(actions)) > 1
    return observations, periods, actions


def state_of(inputs, observation):
    """The state of an observation, written again: in complex numbers instead of atan2."""
    values, seconds = observation - inputs.shift, dict(inputs.angle_pairs)
    state = [
        np.angle(value + 1j * values[seconds[i]]) if i in seconds else value
        for i, value in enumerate(values)
        if i not in seconds.values()
    ]
    for axis in inputs.periodic:
        width = inputs.high[axis] - inputs.low[axis]
        state[axis] -= width * np.floor((state[axis] - inputs.low[axis]) / width)
    return np.minimum(np.maximum(state, inputs.low), inputs.high)
