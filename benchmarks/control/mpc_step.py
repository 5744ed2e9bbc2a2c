"""The MPC planner by itself: what it earns in true models, and what a decision costs.

    python benchmarks/control/mpc_step.py                 both
    python benchmarks/control/mpc_step.py --set samples=64 horizon=20

Returns are those of closed-loop planning in the truth. Times are of one decision with a model of
the shape of a posterior on inducing points (m = 3, d = 4, 300 points), whatever its data; the least
of several runs. For times on one core run it under ``taskset -c 0``.
"""

import argparse
import ast
import math
import time

import jax
import jax.numpy as jnp
import numpy as np

import kernelmdp as km
from kernelmdp.mdp import MDP, NO_NOISE, MeanModel, Model, Prediction, rollout
from kernelmdp.mdp.policy import PolicyPlayer
from kernelmdp.numerics.modules import jit, replace_fields
from kernelmdp.planners import MPCPlanner

RANK, OUTPUTS, POINTS = 300, 3, 4


# Pendulum of Gymnasium with the state (angle, speed); its cost is that of the next state.


def pendulum_motion(z):
    angle, speed, torque = z[:, 0], z[:, 1], z[:, 2]
    speed = jnp.clip(speed + 0.05 * (15.0 * jnp.sin(angle) + 3.0 * torque), -8.0, 8.0)
    return jnp.stack([angle + 0.05 * speed, speed], axis=1)


def pendulum_reward(z):
    after = pendulum_motion(z)
    angle = jnp.mod(after[:, 0] + math.pi, 2 * math.pi) - math.pi
    return -(angle**2 + 0.1 * after[:, 1] ** 2 + 0.001 * z[:, 2] ** 2)


def pendulum(key):
    mdp = MDP(
        MeanModel(pendulum_reward, pendulum_motion),
        states=km.Box([-math.pi, -8.0], [math.pi, 8.0], periodic=[0]),
        actions=km.Box([-2.0], [2.0]),
        horizon=200,
        reward_noise=NO_NOISE,
        transition_noise=NO_NOISE,
    )
    high = jnp.array([math.pi, 1.0])
    return mdp, jax.random.uniform(key, (10, 2), minval=-high, maxval=high)


# Cart-pole swing-up (PILCO): position, speed, angle from upright, angular speed.


def cart_pole_motion(z):
    cart, pole, length, friction, gravity = 0.5, 0.5, 0.6, 0.1, 9.82
    x, v, angle, w, push = z[:, 0], z[:, 1], z[:, 2], z[:, 3], 10.0 * z[:, 4]
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    pushed = push - friction * v + 0.5 * pole * length * w**2 * sine
    speed_up = pushed - 0.75 * pole * gravity * sine * cosine
    speed_up = speed_up / (cart + pole * (1 - 0.75 * cosine**2))
    turn = 1.5 / length * (gravity * sine - speed_up * cosine)
    return jnp.stack([x + 0.1 * v, v + 0.1 * speed_up, angle + 0.1 * w, w + 0.1 * turn], axis=1)


def cart_pole_reward(z):
    after = cart_pole_motion(z)
    right = after[:, 0] + 0.6 * jnp.sin(after[:, 2])
    up = 0.6 * jnp.cos(after[:, 2])
    return jnp.exp(-(right**2 + (0.6 - up) ** 2) / (2 * 0.25**2)) - 1.0


def cart_pole(key):
    mdp = MDP(
        MeanModel(cart_pole_reward, cart_pole_motion),
        states=km.Box([-10.0, -20.0, -math.pi, -40.0], [10.0, 20.0, math.pi, 40.0], periodic=[2]),
        actions=km.Box([-1.0], [1.0]),
        horizon=25,
        reward_noise=NO_NOISE,
        transition_noise=NO_NOISE,
    )
    still = jnp.array([0.0, 0.0, math.pi, 0.0])[None, :]
    return mdp, mdp.states.nearest(still + 0.02 * jax.random.normal(key, (10, 4)))


def swing_up(penalty):
    def made(key):
        environment = km.make("pendulum-swingup", penalty=penalty)
        return environment.mdp, jnp.tile(environment.draw_start(key)[None, :], (10, 1))

    return made


TASKS = {
    "pendulum": pendulum,
    "cart-pole": cart_pole,
    "swing-up c=0": swing_up(0.0),
    "swing-up c=0.1": swing_up(0.1),
    "swing-up c=0.2": swing_up(0.2),
}


def returns(planner, task, keys=2):
    """Returns from ten starts, for several keys of the planner."""
    mdp, starts = TASKS[task](jax.random.key(0))
    totals = []
    for number in range(keys):
        policy = planner.plan(mdp, key=jax.random.key(number)).policy
        totals.append(_totals(mdp, policy, starts, jax.random.key(100 + number)))
    return np.concatenate(totals)


@jit
def _totals(mdp, policy, starts, key):
    # A key of their own for each: with one for all their errors would be alike.
    keys = jax.random.split(key, starts.shape[0])

    def one(start, own):
        return rollout(mdp, replace_fields(policy, key=own), start[None], key=own)[2]

    return jnp.sum(jax.vmap(one)(starts, keys), axis=(1, 2))


class Inducing(Model):
    """k(z, U) α as centre; with a factor F, |F k(z, U)| as width."""

    inducing: jax.Array
    weights: jax.Array
    factor: jax.Array | None

    def __call__(self, points):
        cross = points @ self.inducing.T
        squares = jnp.sum(points**2, axis=1)[:, None] + jnp.sum(self.inducing**2, axis=1)[None, :]
        near = jnp.exp(cross - 0.5 * squares)
        found = near @ self.weights
        state = points[:, :OUTPUTS] + 0.1 * found[:, :OUTPUTS]
        if self.factor is None:
            return Prediction(found[:, OUTPUTS], state)
        left = 1.0 - jnp.sum((near @ self.factor) ** 2, axis=1)
        deviation = jnp.sqrt(jnp.maximum(left, 1e-12))
        return Prediction(found[:, OUTPUTS], state, deviation, radius=deviation)


def synthetic(optimistic, rank=RANK):
    rng = np.random.default_rng(0)
    model = Inducing(
        jnp.asarray(rng.uniform(-1, 1, (rank, POINTS))),
        jnp.asarray(rng.normal(size=(rank, OUTPUTS + 1)) / rank),
        jnp.asarray(np.tril(rng.normal(size=(rank, rank))) / rank) if optimistic else None,
    )
    return MDP(
        model,
        states=km.Box([-1.0] * OUTPUTS, [1.0] * OUTPUTS),
        actions=km.Box([-1.0], [1.0]),
        horizon=200,
        reward_noise=NO_NOISE,
        transition_noise=NO_NOISE,
    )


def milliseconds(planner, mdp, repeats=40):
    """One decision: the least time, and that of the first with its compilation."""
    player = planner.plan(mdp, key=jax.random.key(0)).policy.player()
    assert isinstance(player, PolicyPlayer)
    state, times = np.full(mdp.states.dimension, 0.3), []
    for period in range(repeats):
        begin = time.perf_counter()
        player(state, period)
        times.append(1e3 * (time.perf_counter() - begin))
    return min(times[1:]), times[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--set", nargs="*", default=[], metavar="FIELD=VALUE")
    options = parser.parse_args()
    fields = dict(pair.split("=", 1) for pair in options.set)
    planner = MPCPlanner(**{name: _value(text) for name, text in fields.items()})
    print(planner)
    for task in options.tasks:
        begin = time.perf_counter()
        found = returns(planner, task)
        spread = found.std(ddof=1) / math.sqrt(len(found))
        print(
            f"{task:16s} mean {found.mean():8.2f} +- {spread:.2f}  least {found.min():8.2f}  "
            f"({time.perf_counter() - begin:.0f} s)",
            flush=True,
        )
    for name, optimistic in (("mean or sample", False), ("optimistic", True)):
        least, first = milliseconds(planner, synthetic(optimistic))
        print(f"{name:16s} {least:.2f} ms a decision, the first {first:.0f} ms")


def _value(text):
    try:
        return ast.literal_eval(text)
    except ValueError:
        return text


if __name__ == "__main__":
    main()
