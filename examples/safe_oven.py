"""Learn on a plant that must not break: from a PID controller to a learned one, within a limit.

The element of an oven must not get hotter than 140 degrees. A cautious PID controller holds the
load at 60 degrees. The aim is 90 degrees, quickly.

    python examples/safe_oven.py --out safe_oven.png
"""

import argparse
import pathlib
import tempfile
from typing import Any

import gymnasium
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import kernelmdp as km

LIMIT, STEPS = 140.0, 30


# --8<-- [start:plant]
class Oven(gymnasium.Env[np.ndarray, np.ndarray]):
    """An oven whose element must not get too hot. Temperatures are in degrees."""

    observation_space = gymnasium.spaces.Box(0.0, 300.0, (2,))  # load, element
    action_space = gymnasium.spaces.Box(0.0, 1.0, (1,))  # power

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin at room temperature."""
        super().reset(seed=seed)
        self.load, self.element = 20.0, 20.0
        return np.array([self.load, self.element]), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Heat the element. It heats the load, and loses heat to the room."""
        flow = 0.1 * (self.element - self.load)
        self.load += flow + 0.1 * self.np_random.standard_normal()
        self.element += 30.0 * float(action[0]) - flow - 0.05 * (self.element - 20.0)
        self.element += 0.3 * self.np_random.standard_normal()
        reward = -abs(self.load - 90.0) / 70.0
        return np.array([self.load, self.element]), reward, False, False, {}


# --8<-- [end:plant]

# --8<-- [start:fallback]
pid = km.mdp.PID(coordinate=0, set_point=60.0, proportional=0.01, bias=0.1, low=0.0, high=1.0)
trusted = km.Box([10.0, 10.0], [90.0, 110.0])
SAFETY: dict[str, Any] = {
    "constraints": "observation[1] <= 140",  # the element
    "fallback": (pid, trusted),
}
# --8<-- [end:fallback]


# --8<-- [start:learn]
def learn(episodes: int) -> tuple[km.Frugal, Any]:
    """Learn within the limit. Return the agent and its result."""
    agent = km.Frugal(
        Oven(),
        horizon=STEPS,
        risk=0.01,  # accepted probability of a violation
        risk_for="episode",  # in each episode; the default is for all of learning
        planner={"name": "mpc", "horizon": 12},
        seed=0,
        **SAFETY,
    )
    result = agent.learn(episodes=episodes)
    for number, row in enumerate(np.transpose([result.episodes[name] for name in COLUMNS]), 1):
        print(
            f"episode {number}: "
            + ", ".join(f"{n} {x:.2g}" for n, x in zip(COLUMNS, row, strict=True))
        )
    return agent, result


COLUMNS = ("return", "violations", "fallback_share", "planned_risk")
# --8<-- [end:learn]


# --8<-- [start:use]
def use(agent: km.Frugal, path: str) -> float:
    """Save what was learned, load it again, and run the oven with it. Return the reward."""
    agent.save(path)
    learned = km.load(path, task=Oven(), **SAFETY)
    oven, total = Oven(), 0.0
    observation, _ = oven.reset(seed=1)
    for period in range(STEPS):
        observation, reward, *_ = oven.step(learned.predict(observation, period))
        total += reward
    return total


# --8<-- [end:use]


def main() -> None:
    """Learn, use what was learned, and draw the temperatures of the element."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="safe_oven.png", help="where the figure goes")
    parser.add_argument("--episodes", type=int, default=5)
    options = parser.parse_args()
    agent, result = learn(options.episodes)
    print(agent.safety)
    with tempfile.TemporaryDirectory() as folder:
        total = use(agent, str(pathlib.Path(folder) / "oven.kmdp"))
    print(f"learned controller: return {total:.2f}")
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    left.plot(range(1, options.episodes + 1), result.episodes["return"], "o-")
    left.set(xlabel="episode", ylabel="return", xticks=range(1, options.episodes + 1))
    for number, episode in enumerate(agent.history, 1):
        label = "1: PID controller" if number == 1 else str(number)
        right.plot(np.asarray(episode.states)[:, 1], label=label)
    right.axhline(LIMIT, color="black", ls="--", lw=1)
    right.set(xlabel="step", ylabel="element (degrees)")
    right.legend(frameon=False, title="episode")
    figure.savefig(options.out, dpi=100)
    print(f"figure: {options.out}")


if __name__ == "__main__":
    main()
