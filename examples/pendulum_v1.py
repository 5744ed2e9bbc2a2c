"""Gymnasium's Pendulum-v1 as it comes: reward, dynamics and kernels are all learned.

The first episode is of random actions. After it kernels fit themselves to what was seen, and PSRL
plans every episode anew on a grid of angle and speed.

    python examples/pendulum_v1.py --out pendulum_v1.png
"""

import argparse

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import kernelmdp as km


def main() -> None:
    """Learn, and draw returns and angles."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="pendulum_v1.png", help="where the figure goes")
    parser.add_argument("--episodes", type=int, default=8)
    parser.add_argument("--horizon", type=int, default=200, help="steps of an episode")
    parser.add_argument("--grid", type=int, nargs=2, default=(48, 41), help="angles and speeds")
    parser.add_argument("--torques", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    agent = km.PSRL(
        "Pendulum-v1",
        horizon=options.horizon,
        planner=km.GridPlanner(tuple(options.grid), (options.torques,)),
        seed=options.seed,
    )
    result = agent.learn(options.episodes, progress=False)
    print("returns", result.episodes["return"].round(1))
    print("what was fitted:", agent.beliefs.transition.kernel)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    left.plot(result.episodes["episode"], result.episodes["return"], "o-")
    left.set(xlabel="episode", ylabel="return")
    for number in sorted({0, 1, options.episodes - 1} & set(range(options.episodes))):
        states = agent.history[number].states
        right.plot(states[:, 0], states[:, 1], ".", ms=3, label=f"episode {number + 1}")
    right.plot(0, 0, "k*", ms=10, label="upright, at rest")
    right.set(xlabel="angle", ylabel="speed")
    right.legend(frameon=False, fontsize=8)
    figure.savefig(options.out, dpi=100)
    print(f"figure: {options.out}")


if __name__ == "__main__":
    main()
