"""One small environment for all tests of agents: it is solved once, its programs compiled once."""

import functools

import numpy as np

import kernelmdp as km
from kernelmdp import kernels
from kernelmdp.mdp import Gaussian

H = 3
# The grid on which regret is judged: small enough, and its programs are compiled anyway.
PLANNER = km.GridPlanner(state_points=(61,), action_points=(11,))


@functools.cache
def environment():
    return km.make("rkhs", horizon=H)


def problem(**words):
    """What is known of a pendulum-like box: an angle and a speed; no system behind it."""
    kernel = kernels.Linear()  # of finite rank: nothing to compile
    usual = {
        "name": "angle and speed",
        "states": km.Box([-1.0, -1.0], [1.0, 1.0], periodic=[0]),
        "actions": km.Box([-1.0], [1.0]),
        "horizon": 2,
        "reward_kernel": kernel,
        "transition_kernel": kernel @ kernels.Index(2),
        "reward": None,
        "reward_noise": Gaussian(0.1),
        "transition_noise": Gaussian(0.1),
        "offset": "identity",
        "state_points": (7, 7),
        "action_points": (3,),
    }
    return km.Problem(**(usual | words))


def make(kind=km.Greedy, seed=0, **words):
    return kind(environment(), seed=seed, **({"planner": PLANNER} | words))


def episode(seed=0):
    """Some episode of the environment's shape; whether it could have happened does not matter."""
    rng = np.random.default_rng(seed)
    states = rng.uniform(-1, 1, size=(H + 1, 1))
    return states, rng.uniform(-1, 1, size=(H, 1)), rng.normal(size=H), states[1:] + 0.01


def actions(agent):
    """The policy of the coming episode, at a few states and all periods."""
    policy = agent.ask()
    return np.array([[policy([s], h) for s in (-0.9, 0.0, 0.4)] for h in range(H)])


def same(one, other):
    """Whether two agents have lived the same life, bit for bit, and plan the same."""
    return (
        one.episode == other.episode
        and one.totals == other.totals
        and all(
            np.array_equal(getattr(a, name), getattr(b, name))
            for a, b in zip(one.history, other.history, strict=True)
            for name in ("states", "actions", "rewards", "outcomes")
        )
        and np.array_equal(actions(one), actions(other))
    )
