"""Follow a set point that was never seen in training: learn the plant once, change the schedule.

A tank has a level, and a second coordinate of its state is the level that is wanted. That one is
no part of the plant: it follows a schedule, which plans see ahead. Training uses random steps; the
trial is a ramp with a wave.

    python examples/reference_tracking.py --out reference_tracking.png
"""

import argparse
from typing import Any

import gymnasium
import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import kernelmdp as km

STEPS = 30


# --8<-- [start:plant]
class Tank(gymnasium.Env):
    """A pump fills a tank that drains by itself. It shows its level, and the one that is wanted."""

    observation_space = gymnasium.spaces.Dict(
        {
            "level": gymnasium.spaces.Box(0.0, 2.0, ()),
            "wanted": gymnasium.spaces.Box(0.0, 2.0, ()),
        }
    )
    action_space = gymnasium.spaces.Box(0.0, 1.0, (1,))  # the pump

    def __init__(self, schedules: np.ndarray) -> None:
        self.schedules, self.episode = schedules, -1  # (episodes, STEPS + 1)

    def shown(self) -> dict[str, float]:
        """The observation."""
        wanted = self.schedules[self.episode % len(self.schedules)][self.time]
        return {"level": self.level, "wanted": float(wanted)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """A tank that is nearly empty, and the next schedule."""
        super().reset(seed=seed)
        self.level, self.time, self.episode = 0.3, 0, self.episode + 1
        return self.shown(), {}

    def step(self, action: Any) -> Any:
        """One minute. The reward is for the level before it."""
        before = self.shown()
        flow = 0.4 * float(action[0]) - 0.2 * np.sqrt(self.level)
        noise = 0.005 * self.np_random.standard_normal()
        self.level = float(np.clip(self.level + flow + noise, 0.0, 2.0))
        self.time += 1
        return self.shown(), -abs(before["level"] - before["wanted"]), False, False, {}


# --8<-- [end:plant]


# --8<-- [start:schedules]
def random_steps(episodes: int, seed: int = 0) -> np.ndarray:
    """Schedules for training: two levels, with a step from one to the other."""
    rng = np.random.default_rng(seed)
    levels = rng.uniform(0.3, 1.5, (episodes, 2))
    return np.repeat(levels, [STEPS // 2, STEPS + 1 - STEPS // 2], axis=1)


TIMES = np.arange(STEPS + 1)
NEW = np.clip(0.3 + 0.04 * TIMES + 0.15 * np.sin(TIMES / 3.0), 0.0, 2.0)
# --8<-- [end:schedules]


def main() -> None:
    """Learn with steps, then follow the new schedule with and without seeing it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="reference_tracking.png", help="where the figure goes")
    parser.add_argument("--episodes", type=int, default=4, help="episodes of training")
    options = parser.parse_args()
    # --8<-- [start:learn]
    training = random_steps(options.episodes)
    agent = km.PSRL(
        Tank(training),
        horizon=STEPS,
        reward=lambda z: -jnp.abs(z[:, 0] - z[:, 1]),  # z = (level, wanted, pump)
        known={"wanted": training},  # a row for each episode
        planner={"name": "mpc", "horizon": 8, "samples": 32},
        seed=0,
    )
    returns = agent.learn(options.episodes, progress=False).episodes["return"]
    print("training:", " ".join(f"{each:.2f}" for each in returns))
    # --8<-- [end:learn]
    # --8<-- [start:follow]
    agent.schedule(wanted=NEW)
    path = follow(agent, Tank(NEW[None]))
    # --8<-- [end:follow]
    print(f"a schedule never seen in training: return {-np.abs(path - NEW)[:-1].sum():.2f}")
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    axes.plot(TIMES, NEW, color="black", ls="--", lw=1, label="wanted")
    axes.plot(TIMES, path, label="level")
    axes.set(xlabel="minute", ylabel="level")
    axes.legend(frameon=False)
    figure.savefig(options.out, dpi=100)
    print(f"figure: {options.out}")


def follow(agent: km.PSRL, tank: Tank) -> np.ndarray:
    """The levels of an episode with the controller of what was learned."""
    observation, _ = tank.reset(seed=1)
    levels = [observation["level"]]
    with agent.controller() as controller:
        for _ in range(STEPS):
            observation, *_ = tank.step(controller(observation))
            levels.append(observation["level"])
    return np.array(levels)


if __name__ == "__main__":
    main()
