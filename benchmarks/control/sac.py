"""Pendulum-v1: PSRL's ten episodes, and what SAC needs to get as far (steps and seconds).

    make bench-control

PSRL learns the reward too; its seconds include all compilation (nothing is kept on disk). Both are
examined on the same ten starts, without learning and off the clock: PSRL after every episode from
the second on, SAC (Stable-Baselines3's, learning rate 1e-3) every 500 steps. The level is within 1
of PSRL's mean after ten episodes; what counts is the first exam that reaches it.
"""

import argparse
import json
import pathlib
import time

import gymnasium
import numpy as np
import torch
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import BaseCallback

import kernelmdp as km

RESULTS = pathlib.Path(__file__).parent / "results"
EXAMINED, EPISODES = 10, 10
NAME = "Pendulum-v1"


def examined(choose) -> float:
    """The mean return over the same ten starts; ``choose(observation, period)`` gives an action."""
    totals = []
    for number in range(EXAMINED):
        env = gymnasium.make(NAME)
        observation, _ = env.reset(seed=10_000 + number)
        total, period, over = 0.0, 0, False
        while not over:
            observation, reward, ended, cut, _ = env.step(choose(observation, period))
            total, period, over = total + float(reward), period + 1, ended or cut
        totals.append(total)
    return float(np.mean(totals))


def ours(seed: int) -> dict:
    begin, exams, curve = time.perf_counter(), 0.0, []
    agent = km.PSRL(NAME, seed=seed)
    for episode in range(1, EPISODES + 1):
        agent.learn(1, progress=False)
        seconds = time.perf_counter() - begin - exams
        if episode > 1:
            start = time.perf_counter()
            mean = examined(lambda observation, period: agent.predict(observation, period))
            exams += time.perf_counter() - start
            curve.append((episode * agent.problem.horizon, seconds, mean))
    level = curve[-1][2] - 1.0
    steps, reached, _ = next(point for point in curve if point[2] >= level)
    return {"level": level, "steps": steps, "seconds": reached, "all": seconds, "curve": curve}


class Exam(BaseCallback):
    """Stops when good enough; the time of exams does not count."""

    def __init__(self, goal: float, every: int) -> None:
        super().__init__()
        self.goal, self.every = goal, every
        self.curve: list[tuple[int, float, float]] = []
        self.begin, self.exams = time.perf_counter(), 0.0

    def _on_step(self) -> bool:
        if self.num_timesteps % self.every:
            return True
        start = time.perf_counter()
        mean = examined(
            lambda observation, _: self.model.predict(observation, deterministic=True)[0]
        )
        self.exams += time.perf_counter() - start
        seconds = time.perf_counter() - self.begin - self.exams
        self.curve.append((self.num_timesteps, seconds, mean))
        return mean < self.goal


def theirs(seed: int, goal: float, limit: int) -> dict:
    model = SAC("MlpPolicy", NAME, learning_rate=1e-3, seed=seed, device="cpu")
    exam = Exam(goal, 500)
    model.learn(limit, callback=exam)
    steps, seconds, mean = exam.curve[-1]
    return {"steps": steps, "seconds": seconds, "reached": mean >= goal, "curve": exam.curve}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=int, default=30_000)
    chosen = parser.parse_args()
    torch.set_num_threads(2)
    runs = []
    for seed in range(chosen.seeds):
        own = ours(seed)
        print(f"seed {seed}: PSRL {own}", flush=True)
        peer = theirs(seed, own["level"], chosen.limit)
        print(
            f"  SAC {peer['steps']} steps, {peer['seconds']:.0f} s, {peer['reached']}", flush=True
        )
        runs.append({"seed": seed, "psrl": own, "sac": peer})
        more = peer["steps"] / own["steps"], peer["seconds"] / own["seconds"]
        print(f"  {more[0]:.1f} times the steps, {more[1]:.1f} times the seconds", flush=True)
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "sac.json").write_text(json.dumps(runs, indent=0) + "\n")


if __name__ == "__main__":
    main()
