"""Play agents on plants and tasks: each agent, plant and seed is a run in a process of its own.

    .venv/bin/python benchmarks/control/plants/run.py --agents psrl gp-ucrl greedy \
        --plants development --seeds 5 --episodes 15 --out runs/plants --jobs 2

After every third episode on a plant, ``predict`` plays five episodes with fixed seeds, the same for
all agents. On the tasks of tasks.py it does not, and they have their own numbers of episodes. Each
run is a JSON file, which is replaced after every episode. Repeat the command to
continue: complete runs are skipped, and others start again.
"""

import argparse
import itertools
import json
import math
import os
import pathlib
import sys
import time

import numpy as np
from catalogue import PLANTS, select
from driver import is_complete, parse_setting, play_all, write
from plant import Plant
from tasks import TASKS

#: The first seed of the episodes that evaluate ``predict``.
EVALUATION_SEEDS = 9_000
EVALUATIONS = 5
#: Keys of a run that say what it is a run of. The others are its results.
IDENTITY = ("agent", "label", "plant", "seed", "episodes", "every", "settings")


def evaluate(agent, plant: Plant) -> list[float]:
    """Return the returns of ``predict`` in the evaluation episodes."""
    returns = []
    for number in range(EVALUATIONS):
        observation, _ = plant.reset(seed=EVALUATION_SEEDS + number)
        total = 0.0
        for period in range(plant.horizon):
            action = np.asarray(agent.predict(observation, period))
            observation, reward, terminated, truncated, _ = plant.step(action)
            total += reward
            if terminated or truncated:
                break
        returns.append(total)
    return returns


def play(run: dict, path: pathlib.Path, driver: int) -> None:
    """Play one run, and write it after every episode."""
    from kernelmdp.agents import AGENTS
    from kernelmdp.experiments import interact

    task = TASKS.get(run["plant"])
    if task is None:
        made, settings = PLANTS[run["plant"]](), {"horizon": PLANTS[run["plant"]].horizon}
    else:
        made, settings = task.make(), dict(task.settings)
    agent = AGENTS[run["agent"]](made, seed=run["seed"], **settings | run["settings"])
    learn_from = agent.tell
    planned: list[bool] = []

    def tell(*data, **ending):
        """Learn from an episode, and record whether the agent had planned it."""
        planned.append(agent.planned.planned)
        learn_from(*data, **ending)

    agent.tell = tell
    run |= {"returns": [], "planned": planned, "seconds": [], "evaluations": [], "complete": False}
    run |= {"steps": [], "values": []}
    begin = time.perf_counter()
    for row in interact(agent, run["episodes"]):
        episode = agent.episode
        run["returns"].append(float(row["return"]))
        run["steps"].append(len(agent.history[-1]))
        run["values"].append(row.get("value", math.nan) / row.get("optimal_value", math.nan))
        run["seconds"].append(round(time.perf_counter() - begin, 3))
        if task is None and episode % run["every"] == 0:
            begin = time.perf_counter()
            evaluation = {"after": episode, "returns": evaluate(agent, made)}
            seconds = round(time.perf_counter() - begin, 3)
            run["evaluations"].append(evaluation | {"seconds": seconds})
        enough = task is not None and task.is_over(run["returns"])
        run["complete"] = enough or episode == run["episodes"]
        write(path, run)
        if os.getppid() != driver:
            raise SystemExit("the process that started this run has ended")
        if enough:
            return
        begin = time.perf_counter()


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        play(json.loads(sys.argv[2]), pathlib.Path(sys.argv[3]), int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", nargs="+", required=True, help="names in kernelmdp's registry")
    parser.add_argument(
        "--plants", nargs="+", required=True, help="names, development, held-back, tasks"
    )
    parser.add_argument("--seeds", type=int, default=5, help="seeds 0, 1, ... of every agent")
    parser.add_argument("--episodes", type=int, default=15)
    parser.add_argument("--every", type=int, default=3, help="episodes between evaluations")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/plants"))
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--set", nargs="+", type=parse_setting, default=[], metavar="NAME=VALUE")
    parser.add_argument("--label", help="name of the variant; the agent's name by default")
    chosen = parser.parse_args()
    if chosen.label and len(chosen.agents) > 1:
        parser.error(f"--label: expected one agent, got {len(chosen.agents)}")
    runs = []
    grid = itertools.product(range(chosen.seeds), select(chosen.plants), chosen.agents)
    for seed, plant, agent in grid:
        label = chosen.label or agent
        episodes = TASKS[plant].episodes if plant in TASKS else chosen.episodes
        values = (agent, label, plant, seed, episodes, chosen.every, dict(chosen.set))
        run = dict(zip(IDENTITY, values, strict=True))
        path = chosen.out / label / f"{plant}-{seed}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not is_complete(path, run, IDENTITY):
            runs.append((run, path))
    raise SystemExit(1 if play_all(__file__, runs, chosen.jobs) else 0)


if __name__ == "__main__":
    main()
