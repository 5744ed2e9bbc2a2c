"""What distilled controllers lose against the plans that they imitate, and how fast they decide.

    .venv/bin/python benchmarks/export/distil.py cartpole-swingup quadrotor glucose Pendulum-v1
    .venv/bin/python benchmarks/export/distil.py Pendulum-v1-grid

PSRL learns each task with seed 0. Its controller is then exported with the default settings, except
for the number of episodes played. The bar is a loss of at most 3 % of the optimum minus random
play in the true system, at 50 µs a decision in C. The two plants are of the development half. Their
planner is MPC because they have more than two coordinates. A quadrotor is unstable, has two actions
and may crash. Glucose is slow, noisy and has costs. The table of a grid plan of Pendulum-v1 is
measured too. Results are in benchmarks/export/results/, one file for each task.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

import kernelmdp as km
from kernelmdp.export.export_loss import mean_loss
from kernelmdp.mdp.mdp import rollout
from kernelmdp.mdp.policy import UniformPolicy

HERE = pathlib.Path(__file__).parent
RESULTS = HERE / "results"
CONTROL = HERE.parent / "control"
PLANTS = CONTROL / "plants"
#: Episodes of learning, and settings of the agent. Rewards of the swing-up are known, as in
#: benchmarks/control/steps.py.
TASKS = {
    "cartpole-swingup": (8, {"kernel": "auto", "reward": "known"}),
    "quadrotor": (12, {}),
    "glucose": (10, {}),
    "Pendulum-v1": (8, {"planner": "mpc"}),
    "Pendulum-v1-grid": (8, {}),
}
#: Seeds of the episodes in which the true system is played, and of random play.
FIRST_SEED, PLAYED, RANDOM = 5000, 12, 50


def make(name: str, settings: dict) -> km.PSRL:
    sys.path += [str(CONTROL), str(PLANTS)]
    from catalogue import PLANTS as KINDS

    if name in KINDS:
        return km.PSRL(KINDS[name](), seed=0, horizon=KINDS[name].horizon, **settings)
    return km.PSRL(name.removesuffix("-grid"), seed=0, **settings)


def scale(name: str, agent: km.PSRL) -> tuple[float, float]:
    """The returns of random play and of the optimum, from the same seeds as the losses."""
    reference = json.loads((PLANTS / "reference.json").read_text())["plants"]
    if name in reference:
        return reference[name]["random"], reference[name]["optimum"]
    if name == "cartpole-swingup":
        mdp, keys = agent.task.mdp, jax.random.split(jax.random.key(FIRST_SEED), RANDOM)
        starts = jnp.stack([agent.task.draw_start(key) for key in keys])
        policy = UniformPolicy(mdp.actions, jax.random.key(0))
        rewards = rollout(mdp, policy, starts, key=jax.random.key(1))[2]
        return float(rewards.sum(axis=0).mean()), -7.4
    from pendulum_v1 import MODEL

    env, returns, starts = gymnasium.make("Pendulum-v1"), [], []
    env.action_space.seed(0)
    for seed in range(FIRST_SEED, FIRST_SEED + RANDOM):
        cosine, sine, speed = env.reset(seed=seed)[0]
        starts.append([np.arctan2(sine, cosine), speed])
        returns.append(sum(env.step(env.action_space.sample())[1] for _ in range(200)))
    policy = km.MPCPlanner().plan(MODEL, key=jax.random.key(0)).policy
    rewards = rollout(MODEL, policy, jnp.asarray(starts[:PLAYED], float), key=jax.random.key(1))[2]
    return float(np.mean(returns)), float(rewards.sum(axis=0).mean())


def measure(name: str) -> dict:
    episodes, settings = TASKS[name]
    begin = time.perf_counter()
    agent = make(name, settings)
    agent.learn(episodes, progress=False)
    learned = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder) / f"controller{end}" for end in (".c", ".npz", ".onnx")]
        distils = type(agent.planner).__name__ == "MPCPlanner"
        export = agent.export(paths[0], **({"play_episodes": 0} if distils else {}))
        exported = time.perf_counter()
        from kernelmdp.export.numpy_archive import numpy_archive
        from kernelmdp.export.onnx_model import onnx_model

        paths[1].write_bytes(numpy_archive(export.table, export.check))
        paths[2].write_bytes(onnx_model(export.table, export.check))
        program = str(paths[0].with_suffix(""))
        flags = ["-std=c99", "-O2", "-DKMDP_MAIN", str(paths[0]), "-o", program, "-lm"]
        subprocess.run(["gcc", *flags], check=True)
        said = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        sizes = {path.suffix: path.stat().st_size for path in [*paths, paths[0].with_suffix("")]}
    seeds = range(FIRST_SEED, FIRST_SEED + PLAYED)
    plan = agent.controller_plan().policy
    returns = [agent.system.evaluate(policy, seeds=seeds) for policy in (plan, export.policy)]
    loss, error = mean_loss(*returns)
    random, optimum = scale(name, agent)
    return {
        "task": name,
        "seed": 0,
        "episodes": episodes,
        "learning_returns": [round(float(each.total), 2) for each in agent.history],
        "kind": export.table.kind,
        "reads_period": bool(getattr(export.policy, "reads_period", False)),
        "printed": str(export.loss),
        "random": random,
        "optimum": optimum,
        "plan": returns[0].tolist(),
        "exported": returns[1].tolist(),
        "true_loss": loss,
        "true_loss_error": error,
        "true_loss_share": loss / (optimum - random),
        "true_loss_share_error": error / (optimum - random),
        "model_loss_share": export.loss.in_model / (optimum - random),
        "model_loss_share_error": export.loss.in_model_error / (optimum - random),
        "microseconds": float(re.search(r"([\d.]+) us", said).group(1)),
        "self_check": said.splitlines()[0],
        "bytes": sizes,
        "seconds_learning": round(learned - begin, 1),
        "seconds_export": round(exported - learned, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", help="names; without names, stored results are printed")
    RESULTS.mkdir(exist_ok=True)
    for name in parser.parse_args().tasks:
        (RESULTS / f"{name}.json").write_text(json.dumps(measure(name), indent=1) + "\n")
    print("| task | kind | plan | exported | loss / (optimum − random) | µs | .c | .npz |")
    print("|---" * 8 + "|")
    for path in sorted(RESULTS.glob("*.json")):
        run = json.loads(path.read_text())
        share = f"{run['true_loss_share']:.1%} ± {run['true_loss_share_error']:.1%}"
        sizes = " | ".join(f"{run['bytes'][end] / 1e3:.0f} kB" for end in (".c", ".npz"))
        means = f"{np.mean(run['plan']):.2f} | {np.mean(run['exported']):.2f}"
        kind = f"{run['kind']}{', period' if run['reads_period'] else ''}"
        print(f"| {run['task']} | {kind} | {means} | {share} | {run['microseconds']} | {sizes} |")


if __name__ == "__main__":
    main()
