"""Kernel bandits: our agents at H = 1 beside BoTorch's GP-UCB; the loops are benchmarks/bandits."""

import importlib.util
import pathlib
import time

import numpy as np

TITLE = "Bandits"
PROBLEMS = ("bandit-branin", "bandit-hartmann6", "bandit-rkhs")
AGENTS = ("random", "gp-ucrl", "psrl", "botorch GP-UCB")
HERE = pathlib.Path(__file__).resolve().parent


def cells(quick):
    problems, seeds, rounds = (PROBLEMS[:1], 1, 8) if quick else (PROBLEMS, 3, 30)
    return [
        {"problem": problem, "agent": agent, "rounds": rounds, "seed": seed}
        for seed in range(seeds)
        for problem in problems
        for agent in AGENTS
    ]


def limit(cell):
    return 300.0


def run(cell):
    place = HERE.parent / "bandits" / "run.py"
    spec = importlib.util.spec_from_file_location("bandit_loops", place)
    loops = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loops)
    loops.torch.set_default_dtype(loops.torch.float64)
    loops.warnings.filterwarnings("ignore")
    import kernelmdp as km

    environment = km.make(cell["problem"], seed=cell["seed"])
    begin = time.process_time()
    if cell["agent"] == "botorch GP-UCB":
        regret = loops.botorch(environment, cell["rounds"], cell["seed"])
    else:
        regret = loops.ours(environment, cell["agent"], cell["rounds"], cell["seed"])
    seconds = time.process_time() - begin
    return {"regret": np.round(regret, 5).tolist(), "seconds": seconds}


def _by(found):
    for problem in PROBLEMS:
        for agent in AGENTS:
            own = [
                one["found"]
                for one in found
                if (one["cell"]["problem"], one["cell"]["agent"]) == (problem, agent)
                and "failed" not in one["found"]
            ]
            if own:
                yield problem, agent, own


def table(found):
    lines = ["| problem | agent | seeds | regret of each seed | best arm's regret | s in all |"]
    lines.append("|---" * 6 + "|")
    for problem, agent, own in _by(found):
        sums = ", ".join(f"{sum(one['regret']):.2f}" for one in own)
        best = np.mean([min(one["regret"]) for one in own])
        seconds = np.mean([one["seconds"] for one in own])
        lines.append(f"| {problem} | {agent} | {len(own)} | {sums} | {best:.3g} | {seconds:.3g} |")
    return "\n".join(lines)


def figure(found, path):
    import matplotlib.pyplot as plt

    picture, axes = plt.subplots(1, len(PROBLEMS), figsize=(10, 3.5))
    for problem, agent, own in _by(found):
        axis = axes[PROBLEMS.index(problem)]
        mean = np.mean([np.cumsum(one["regret"]) for one in own], axis=0)
        axis.plot(np.arange(1, len(mean) + 1), mean, label=agent)
        axis.set_title(problem, fontsize=9)
        axis.set_xlabel("round")
    axes[0].set_ylabel("cumulative regret")
    axes[0].legend(fontsize=7)
    picture.tight_layout()
    picture.savefig(path, dpi=110)
