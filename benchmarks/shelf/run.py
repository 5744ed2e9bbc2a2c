"""Play agents on the tasks of the shelf: each agent, task and seed is a run in its own process.

    .venv-shelf/bin/python benchmarks/shelf/run.py --tasks all --seeds 5 --out runs/shelf

A run ends when the task's level is reached or its budget of steps is used. Each run is a JSON file.
It is replaced after every episode. Repeat the command to continue: complete runs are skipped, and
others start again. With --check, one random episode of each task is played, and described.
"""

import argparse
import itertools
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

import gymnasium
import numpy as np
from processes import Record, interpreter, is_complete, play_all, select
from tasks import TASKS, Task

import kernelmdp as km

#: The first seed of evaluation episodes. No other episode of the shelf has such a seed.
EVALUATION_SEEDS = 1_000_000
#: Seeds of evaluation episodes that are set aside for each run.
EVALUATION_SEEDS_OF_A_RUN = 1_000


class DecisionTimer(gymnasium.Wrapper):
    """Measures the time between an observation and the next decision.

    Args:
        env: The environment.
        repeat: The number of steps for which each decision holds.
    """

    def __init__(self, env: gymnasium.Env, repeat: int) -> None:
        super().__init__(env)
        self.repeat = repeat
        self.seconds: list[float] = []
        self.steps, self.observed = 0, 0.0

    def reset(self, **options):
        result = self.env.reset(**options)
        self.seconds, self.steps, self.observed = [], 0, time.perf_counter()
        return result

    def step(self, action):
        if self.steps % self.repeat == 0:
            self.seconds.append(time.perf_counter() - self.observed)
        result = self.env.step(action)
        self.steps += 1
        self.observed = time.perf_counter()
        return result


def evaluation_seed(seed: int, number: int, task: Task) -> int:
    """Return the first seed of an evaluation. Starts and goals are drawn anew for each one.

    Args:
        seed: The seed of the run.
        number: The number of the evaluation in its run, counted from 0.
        task: The task.
    """
    return EVALUATION_SEEDS + EVALUATION_SEEDS_OF_A_RUN * seed + task.evaluations * number


def make_agent(task: Task, name: str, seed: int, settings: dict) -> tuple[km.Agent, DecisionTimer]:
    """Make an agent for a task, and the timer of its decisions."""
    timer = DecisionTimer(task.make(), task.settings.get("action_repeat", 1))
    system = km.from_gymnasium(timer, **task.settings)
    known = {} if task.reward is None or name == "random" else {"reward": task.reward}
    return km.agents.AGENTS[name](system, seed=seed, **known | settings), timer


def play(run: dict, path: pathlib.Path, driver: int) -> None:
    """Play one run, and write it after every episode."""
    from kernelmdp.experiments import interact

    record = Record(run, path, driver)
    task = record.task
    agent, timer = make_agent(task, run["agent"], run["seed"], run["settings"])
    problem = agent.problem
    record.content |= {"m": problem.states.dimension, "q": problem.actions.dimension}
    longest = problem.horizon * timer.repeat
    episodes = task.episodes or math.ceil(run["budget"] / longest)
    not_counted = 0  # steps of evaluation episodes
    while True:  # more episodes than expected, if they ended early
        for row in interact(agent, episodes):
            total, milliseconds = float(row["return"]), 1e3 * statistics.median(timer.seconds)
            score, steps = task.score(timer, total), agent.task.environment_steps - not_counted
            if task.evaluations:
                first_seed = evaluation_seed(run["seed"], len(record.content["scores"]), task)
                score = agent.evaluate(task.evaluations, seed=first_seed).mean
                not_counted = agent.task.environment_steps - steps
            if record.add(total, score, steps, round(milliseconds, 3)):
                return


def check(task: Task) -> None:
    """Play one random episode, and print the task's numbers."""
    from kernelmdp.experiments import interact

    agent, timer = make_agent(task, "random", 0, {})
    row = next(iter(interact(agent, 1)))
    problem, episode = agent.problem, agent.history[-1]
    rewards = np.asarray(episode.rewards)
    words = [f"m={problem.states.dimension}", f"q={problem.actions.dimension}"]
    words += [f"H={problem.horizon}", f"steps={agent.task.environment_steps}"]
    words += [f"rewards {rewards.min():.4g} to {rewards.max():.4g}"]
    words += [f"return {float(row['return']):.4g}"]
    if task.unit:
        words += [f"score {task.score(timer, float(row['return'])):.4g}{task.unit}"]
    if task.reward is not None:
        error = np.abs(np.asarray(task.reward(np.asarray(episode.points))) - rewards).mean()
        words += [f"known reward differs by {error:.2g} in the mean"]
    print(f"{task.name}: {', '.join(words)}", flush=True)


def check_all(tasks: list[Task]) -> int:
    """Check tasks, each in its virtual environment. Return how many failed."""
    failed = 0
    for task in tasks:
        command = [str(interpreter(task)), "-W", "ignore", __file__, "--check-worker", task.name]
        failed += subprocess.run(command, check=False).returncode != 0
    return failed


def parse_setting(text: str) -> tuple[str, object]:
    """Parse ``name=value``. The value is JSON, or else text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        play(json.loads(sys.argv[2]), pathlib.Path(sys.argv[3]), int(sys.argv[4]))
        return
    if sys.argv[1:2] == ["--check-worker"]:
        check(TASKS[sys.argv[2]])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=["all"], help="names, or all")
    parser.add_argument("--agents", nargs="+", default=["frugal"], help="names of the registry")
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds of every agent")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/shelf"))
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument(
        "--budget-minutes", type=float, help="end a run at the first episode after so many minutes"
    )
    parser.add_argument("--set", nargs="+", type=parse_setting, default=[], metavar="NAME=VALUE")
    parser.add_argument("--label", help="name of the variant; the agent's name by default")
    parser.add_argument("--check", action="store_true", help="play one random episode of each task")
    chosen = parser.parse_args()
    if chosen.label and len(chosen.agents) > 1:
        parser.error(f"--label: expected one agent, got {len(chosen.agents)}")
    tasks = select(chosen.tasks)
    if chosen.check:
        raise SystemExit(1 if check_all(tasks) else 0)
    runs = []
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    for seed, task, agent in itertools.product(seeds, tasks, chosen.agents):
        run = {"agent": agent, "label": chosen.label or agent, "task": task.name, "seed": seed}
        run |= {"settings": dict(chosen.set), "budget": task.budget}
        run |= {"minutes": chosen.budget_minutes}
        path = chosen.out / run["label"] / f"{task.name}-{seed}.json"
        if not is_complete(path, run):
            runs.append((run, path))
    raise SystemExit(1 if play_all(__file__, runs, chosen.jobs) else 0)


if __name__ == "__main__":
    main()
