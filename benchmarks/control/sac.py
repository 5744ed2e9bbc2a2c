"""Pendulum-v1: PSRL beside Stable-Baselines3's SAC, by environment steps and by the clock.

    .venv-bench/bin/python benchmarks/control/sac.py

PSRL learns ten episodes, the reward unknown, compilation counted; then its policy plays ten
evaluation episodes. SAC (learning rate 1e-3) is evaluated on the same ten starts every thousand
steps until its mean return is at least that of PSRL. Both in one process, on the same two cores.
"""

import argparse
import json
import pathlib
import time

import gymnasium
import numpy as np

import kernelmdp as km
from kernelmdp.experiments.playing import play_best

STARTS = range(10_000, 10_010)


def ours(seed: int, episodes: int) -> dict:
    begin = time.perf_counter()
    agent = km.PSRL("Pendulum-v1", seed=seed)
    agent.learn(episodes, progress=False)
    seconds = time.perf_counter() - begin
    returns = [play_best(agent, seed=start).total for start in STARTS]
    return {"steps": 200 * episodes, "seconds": seconds, "return": float(np.mean(returns))}


def sac(seed: int, target: float, limit: int) -> dict:
    from stable_baselines3 import SAC

    env = gymnasium.make("Pendulum-v1")
    model = SAC("MlpPolicy", env, learning_rate=1e-3, seed=seed, device="cpu")
    curve, seconds = [], 0.0
    while not curve or (curve[-1][1] < target and curve[-1][0] < limit):
        begin = time.perf_counter()
        model.learn(1000, reset_num_timesteps=not curve)
        seconds += time.perf_counter() - begin
        curve.append((model.num_timesteps, evaluate(model), seconds))
    return {"reached": curve[-1][1] >= target, "curve": curve}


def evaluate(model) -> float:
    env, totals = gymnasium.make("Pendulum-v1"), []
    for start in STARTS:
        observation, _ = env.reset(seed=start)
        total, over = 0.0, False
        while not over:
            action, _ = model.predict(observation, deterministic=True)
            observation, reward, ended, cut, _ = env.step(action)
            total, over = total + float(reward), ended or cut
        totals.append(total)
    return float(np.mean(totals))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=int, default=30_000, help="steps of SAC at most")
    chosen = parser.parse_args()
    runs = []
    for seed in range(chosen.seeds):
        found = ours(seed, 10)
        other = sac(seed, found["return"], chosen.limit)
        runs.append({"seed": seed, "psrl": found, "sac": other})
        last = other["curve"][-1]
        print(
            f"seed {seed}: PSRL {found['return']:.1f} after {found['steps']} steps, "
            f"{found['seconds']:.0f} s; SAC {last[1]:.1f} after {last[0]} steps, {last[2]:.0f} s"
            f"{'' if other['reached'] else ' (not reached)'}; ratios {last[0] / found['steps']:.1f}"
            f" in steps, {last[2] / found['seconds']:.1f} in time",
            flush=True,
        )
    place = pathlib.Path(__file__).parent / "results" / "sac.json"
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps(runs, indent=0) + "\n")


if __name__ == "__main__":
    main()
