"""Pendulum-v1: what a planner on the true model earns from the same starts as the agents did.

    .venv/bin/python benchmarks/control/returns.py Pendulum-v1 --seeds 5 --episodes 10
    .venv/bin/python benchmarks/control/pendulum_v1.py

Reads benchmarks/control/results/Pendulum-v1.json and compares means over episodes 3 to 10.
"""

import json
import math
import pathlib

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

import kernelmdp as km
from kernelmdp.mdp import MDP, NO_NOISE, MeanModel, rollout

RESULTS = pathlib.Path(__file__).parent / "results" / "Pendulum-v1.json"
FIRST = 3


def motion(z):
    speed = z[:, 1] + 0.05 * (15.0 * jnp.sin(z[:, 0]) + 3.0 * z[:, 2])
    speed = jnp.clip(speed, -8.0, 8.0)
    return jnp.stack([z[:, 0] + 0.05 * speed, speed], axis=1)


def reward(z):
    angle = jnp.mod(z[:, 0] + math.pi, 2 * math.pi) - math.pi
    return -(angle**2 + 0.1 * z[:, 1] ** 2 + 0.001 * z[:, 2] ** 2)


MODEL = MDP(
    MeanModel(reward, motion),
    states=km.Box([-math.pi, -8.0], [math.pi, 8.0], periodic=[0]),
    actions=km.Box([-2.0], [2.0]),
    horizon=200,
    reward_noise=NO_NOISE,
    transition_noise=NO_NOISE,
)


def start(seed: int, episode: int) -> np.ndarray:
    """Where the agent with this seed began the episode; see agents.learning.interact."""
    world = jax.random.fold_in(jax.random.key(seed), 2**31 - 1)
    _, play_key = jax.random.split(jax.random.fold_in(world, episode))
    number = int(jax.random.randint(play_key, (), 0, 2**31 - 1))
    cosine, sine, speed = gymnasium.make("Pendulum-v1").reset(seed=number)[0]
    return np.array([math.atan2(sine, cosine), speed])


def main() -> None:
    runs = json.loads(RESULTS.read_text())["runs"]
    policy = km.MPCPlanner().plan(MODEL, key=jax.random.key(0)).policy
    truth = {}
    for seed in sorted({run["seed"] for run in runs}):
        count = max(len(run["returns"]) for run in runs if run["seed"] == seed)
        starts = jnp.asarray(np.stack([start(seed, episode) for episode in range(count)]))
        rewards = rollout(MODEL, policy, starts, key=jax.random.key(1))[2]
        truth[seed] = np.asarray(jnp.sum(rewards, axis=0))
    print("| agent | seed | mean of episodes 3 on | true model | behind |\n|---|---|---|---|---|")
    for run in runs:
        own, best = (np.mean(r[FIRST - 1 :]) for r in (run["returns"], truth[run["seed"]]))
        print(f"| {run['agent']} | {run['seed']} | {own:.1f} | {best:.1f} | {best - own:.1f} |")


if __name__ == "__main__":
    main()
