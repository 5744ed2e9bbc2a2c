"""Time of one MPC decision with ten coordinates and two actions, after 400 steps of random actions.

    taskset -c 0 .venv/bin/python benchmarks/control/decision_chain.py
    taskset -c 0 .venv/bin/python benchmarks/control/decision_chain.py --limit 20

Five carts in a row, with springs that harden, are to be brought to rest by forces on the first and
the last one. Kernels are fitted, and the reward is learned. The mean (greedy) and a draw (PSRL) are
planned for. ``--limit`` is the planner's ``decision_time`` in milliseconds. The median is shown.
"""

import argparse
import time

import gymnasium
import numpy as np

import kernelmdp as km

CARTS, HORIZON, EPISODES = 5, 50, 8


class Carts(gymnasium.Env):
    """Positions and velocities of carts in a row, with forces at both ends."""

    observation_space = gymnasium.spaces.Box(-3.0, 3.0, (2 * CARTS,), np.float64)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-0.5, 0.5, 2 * CARTS)
        return self.state.copy(), {}

    def step(self, action):
        place, speed = self.state[:CARTS], self.state[CARTS:]
        stretch = np.diff(place, prepend=0.0, append=0.0)
        pull = stretch + stretch**3
        force = pull[1:] - pull[:-1]
        force[[0, -1]] += np.asarray(action)
        speed = speed + 0.1 * (force - 0.1 * speed)
        self.state = np.clip(np.concatenate([place + 0.1 * speed, speed]), -3.0, 3.0)
        return self.state.copy(), -float(self.state @ self.state), False, False, {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, help="decision_time in milliseconds")
    limit = parser.parse_args().limit
    planner = {"name": "mpc", "decision_time": limit}
    wanderer = km.Random(Carts(), horizon=HORIZON, seed=0)
    wanderer.learn(EPISODES, progress=False)
    for kind in (km.Greedy, km.PSRL):
        agent = kind(Carts(), horizon=HORIZON, planner=planner, seed=0)
        for episode in wanderer.history:
            agent.replay(episode)
        states = wanderer.history[0].states
        player, times = agent.ask(states[0]).player(), []
        for period, state in enumerate(states[:-1]):
            begin = time.perf_counter()
            player(state, period)
            times.append(1e3 * (time.perf_counter() - begin))
        samples = agent.planned.policy.planner.samples
        print(f"{kind.name:8s} {np.median(times[1:]):6.1f} ms, {samples} samples")


if __name__ == "__main__":
    main()
