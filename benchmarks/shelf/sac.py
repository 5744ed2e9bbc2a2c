"""SAC on tasks of the shelf, with the same levels, windows and files as our agents.

    .venv-shelf/bin/python benchmarks/shelf/sac.py --seeds 2 --limit 50000 --out runs/shelf

SAC is that of Stable-Baselines3 with its default settings. It holds actions for as many steps as
our agents do, and learns rewards where ours know them. Its score is the return of its learning
episodes, with its exploration noise. It cannot play tasks with discrete actions.
"""

import argparse
import json
import pathlib
import sys

import gymnasium
from processes import Record, is_complete, play_all, select

#: The tasks that SAC plays unless others are named.
DEFAULT_TASKS = [
    "InvertedPendulum-v5",
    "InvertedDoublePendulum-v5",
    "Reacher-v5",
    "tip-reacher",
    "Swimmer-v5",
    "LunarLanderContinuous-v3",
    "dmc-pendulum-swingup",
    "dmc-cartpole-swingup",
    "dmc-cartpole-swingup_sparse",
    "dmc-ball_in_cup-catch",
]


class Repeat(gymnasium.Wrapper):
    """Holds each action for some steps, sums their rewards, and counts all steps."""

    def __init__(self, env: gymnasium.Env, repeat: int) -> None:
        super().__init__(env)
        self.repeat, self.steps = repeat, 0

    def step(self, action):
        total = 0.0
        for _ in range(self.repeat):
            observation, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            self.steps += 1
            if terminated or truncated:
                break
        return observation, total, terminated, truncated, info


class Episodes(gymnasium.Wrapper):
    """Adds every episode to the record of the run, and says when the run has ended."""

    def __init__(self, env: Repeat, record: Record) -> None:
        super().__init__(env)
        self.record, self.total, self.over = record, 0.0, False

    def reset(self, **options):
        self.total = 0.0
        return self.env.reset(**options)

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.total += reward
        if terminated or truncated:
            score = self.record.task.score(self, self.total)
            self.over = self.record.add(self.total, score, self.env.steps, None)
        return observation, reward, terminated, truncated, info


def play(run: dict, path: pathlib.Path, driver: int) -> None:
    """Play one run, and write it after every episode."""
    import torch
    from stable_baselines3 import SAC
    from stable_baselines3.common.callbacks import BaseCallback

    torch.set_num_threads(1)
    record = Record(run, path, driver)
    env = record.task.make()
    if not isinstance(env.observation_space, gymnasium.spaces.Box):
        env = gymnasium.wrappers.FlattenObservation(env)
    repeat = record.task.settings.get("action_repeat", 1)
    episodes = Episodes(Repeat(env, repeat), record)
    record.content |= {"m": env.observation_space.shape[0], "q": env.action_space.shape[0]}

    class Stop(BaseCallback):
        """Ends learning when the run has ended."""

        def _on_step(self) -> bool:
            return not episodes.over

    model = SAC("MlpPolicy", episodes, seed=run["seed"], device="cpu")
    # The record ends the run: an episode may be longer than the rest of the budget.
    model.learn(10 * run["budget"], callback=Stop())


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        play(json.loads(sys.argv[2]), pathlib.Path(sys.argv[3]), int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=DEFAULT_TASKS, help="names")
    parser.add_argument("--seeds", type=int, default=2, help="seeds 0, 1, ...")
    parser.add_argument("--limit", type=int, default=50_000, help="steps after which a run ends")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/shelf"))
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument(
        "--budget-minutes", type=float, help="end a run at the first episode after so many minutes"
    )
    chosen = parser.parse_args()
    runs = []
    tasks = select(chosen.tasks)
    for seed in range(chosen.seeds):
        for task in tasks:
            run = {"agent": "sac", "label": "sac", "task": task.name, "seed": seed, "settings": {}}
            run |= {"budget": chosen.limit, "minutes": chosen.budget_minutes}
            path = chosen.out / "sac" / f"{task.name}-{seed}.json"
            if not is_complete(path, run):
                runs.append((run, path))
    raise SystemExit(1 if play_all(__file__, runs, chosen.jobs) else 0)


if __name__ == "__main__":
    main()
