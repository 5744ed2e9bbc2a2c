"""The main job: three agents learn to swing up a pendulum whose torque costs something.

The reward is known, the dynamics are not. Torque is paid for at once and the reward near upright
is far away. With short lengthscales the mean of what was learned says nothing of places not yet
seen, so the greedy agent never finds it worthwhile to move; optimism (GP-UCRL) and posterior
sampling (PSRL) explore, and reach the optimum. With long lengthscales (--smooth) greedy is the
fastest of the three.

    python examples/swing_up.py --out demo.png
"""

import argparse
import pathlib
import sys
import tempfile

from kernelmdp.experiments import RunConfig, run
from kernelmdp.experiments.progress import track
from kernelmdp.report import draw_regret

AGENTS = ("greedy", "psrl", "gp-ucrl")


def main() -> None:
    """Run all three and draw their regret."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("demo.png"))
    parser.add_argument("--episodes", type=int, default=15)
    parser.add_argument("--smooth", action="store_true", help="long lengthscales")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--agents", nargs="+", default=AGENTS, choices=AGENTS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folders = []
        for agent in options.agents:
            words = {"reward": "known"}
            config = RunConfig(
                "pendulum-swingup", agent, options.seed, {"short": not options.smooth}, words
            )
            folders.append(pathlib.Path(place) / agent)
            print(f"{agent} ...", file=sys.stderr, flush=True)
            result = run(
                config,
                folders[-1],
                episodes=options.episodes,
                track=lambda rows, total, who: track(rows, total=total, agent=who.name),
            )
            table = result.episodes
            print(
                f"{agent:<8} best return {table['return'].max():6.1f} of an optimum of "
                f"{table['optimal_value'][0]:.1f} ± {table['optimal_value_error'][0]:.1g}, "
                f"cumulative regret {result.regret:7.1f}  ({result.coverage})"
            )
        draw_regret(folders, options.out)
    print(f"cumulative regret of each: {options.out}")


if __name__ == "__main__":
    main()
