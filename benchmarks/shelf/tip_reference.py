"""What a planner in the simulator earns on the goals of TIP's reacher on which agents are tested.

    .venv-shelf/bin/python benchmarks/shelf/tip_reference.py --seeds 5

The goals are those of the first evaluations of each seed. The cross-entropy method plans 20 steps
ahead in MuJoCo, with 4 rounds of 60 samples, and plans again at every step. It is no optimum:
agents may earn more.
"""

import argparse

import mujoco
import numpy as np
import tip_reacher
from run import evaluation_seed
from tasks import TASKS

SIGHT, ROUNDS, SAMPLES, ELITES = 20, 4, 60, 8


def returns(env: tip_reacher.TipReacher, plans: np.ndarray) -> np.ndarray:
    """Simulate plans (n, steps, 2) from the present state of the environment."""
    model, data = env.model, mujoco.MjData(env.model)
    tip, target = model.body("fingertip").id, model.body("target").id
    totals = np.zeros(len(plans))
    for number, plan in enumerate(plans):
        data.qpos[:], data.qvel[:] = env.data.qpos, env.data.qvel
        mujoco.mj_forward(model, data)
        for action in plan:
            data.ctrl[:] = action
            for _ in range(env.frame_skip):
                mujoco.mj_step(model, data)
            distance = np.linalg.norm(data.xpos[tip] - data.xpos[target])
            totals[number] -= distance + np.sum(action**2)
    return totals


def play(env: tip_reacher.TipReacher, seed: int, generator: np.random.Generator) -> float:
    """Play one episode, and return what it earned."""
    env.reset(seed=seed)
    mean, total = np.zeros((SIGHT, 2)), 0.0
    for step in range(tip_reacher.HORIZON):
        left, deviations = min(SIGHT, tip_reacher.HORIZON - step), np.full((SIGHT, 2), 0.5)
        for _ in range(ROUNDS):
            noise = generator.standard_normal((SAMPLES, SIGHT, 2))
            plans = np.clip(mean + deviations * noise, -1.0, 1.0)
            plans[0] = mean
            best = plans[np.argsort(-returns(env, plans[:, :left]))[:ELITES]]
            mean, deviations = best.mean(axis=0), best.std(axis=0) + 0.01
        total += env.step(mean[0])[1]
        mean = np.concatenate([mean[1:], np.zeros((1, 2))])
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--evaluations", type=int, default=1, help="evaluations of each seed")
    chosen = parser.parse_args()
    env, task = tip_reacher.TipReacher(), TASKS["tip-reacher"]
    for seed in range(chosen.seeds):
        first, generator = evaluation_seed(seed, 0, task), np.random.default_rng(seed)
        count = task.evaluations * chosen.evaluations
        totals = [play(env, first + number, generator) for number in range(count)]
        print(f"seed {seed}: {np.round(totals, 2)}, mean {np.mean(totals):.2f}", flush=True)


if __name__ == "__main__":
    main()
