"""Pendulum swing-up with a price of torque: all agents, penalties, lengthscales, seeds; a figure.

    .venv/bin/python benchmarks/control/swingup.py --agents psrl greedy gp-ucrl
    .venv/bin/python benchmarks/control/swingup.py --figure

Every run is kept in benchmarks/control/results/swingup.json and not run again; the table is of what
is there. With ``--confidence valid`` the kernel of motion is the additive one, and
its norm is given. Returns are of 100 decisions held for four base steps; ``base`` is what
the actions of the last episode earn in the problem of 400 steps.
"""

import argparse
import itertools
import json
import pathlib
import time

import numpy as np

import kernelmdp as km
from kernelmdp.agents import AGENTS
from kernelmdp.envs.pendulum_swingup import OPTIMA, base_return
from kernelmdp.experiments import interact

RESULTS = pathlib.Path(__file__).parent / "results"
PLACE = RESULTS / "swingup.json"
FIGURE = RESULTS.parents[2] / "docs" / "figures" / "swingup.png"
KEYS = ("agent", "confidence", "penalty", "reward", "short", "macro", "seed")
COLOURS = {"gp-ucrl": "#0072b2", "psrl": "#d55e00", "greedy": "#555555"}


def one(key: tuple, episodes: int) -> dict:
    agent, confidence, penalty, reward, short, macro, seed = key
    valid = confidence == "valid"
    env = km.make("pendulum-swingup", penalty=penalty, short=short, macro=macro, additive=valid)
    if valid:
        confidence = {"name": "valid", "norm_transition": env.problem.assumed_norms[1]}
    words = {"confidence": confidence} if agent == "gp-ucrl" else {}
    learner = AGENTS[agent](env, reward=reward, seed=seed, **words)
    begin = time.perf_counter()
    rows = list(interact(learner, episodes))
    last = learner.history[-1]
    seconds = [row["plan_seconds"] + row["update_seconds"] for row in rows[2:]]
    return dict(zip(KEYS, key, strict=True)) | {
        "returns": [round(float(row["return"]), 3) for row in rows],
        "covered_transition": [float(row.get("covered_transition", np.nan)) for row in rows],
        "base": base_return(env, last.states[0], last.actions),
        "episode_seconds": float(np.median(seconds)) if seconds else None,
        "seconds": time.perf_counter() - begin,
        "theory": str(learner.coverage),
    }


def stored() -> list[dict]:
    return json.loads(PLACE.read_text()) if PLACE.exists() else []


def first_held(returns: np.ndarray, level: float) -> float:
    """The episode from which on all returns reach the level; infinite if the last does not."""
    below = np.flatnonzero(returns < level)
    if not len(below):
        return 1
    return below[-1] + 2 if below[-1] + 1 < len(returns) else np.inf


def table(runs: list[dict]) -> None:
    print(
        "| agent | reward | lengthscales | c | seeds | best | level first by | held from | ", end=""
    )
    print("regret / optimum | s an episode |\n" + "|---" * 10 + "|")
    groups = itertools.groupby(sorted(runs, key=_group), key=_group)
    for (agent, confidence, reward, short, penalty, macro), own in groups:
        own = list(own)
        optimum = OPTIMA[macro, penalty].value
        level = (0.98 if reward == "known" else 0.95) * optimum
        returns = [np.array(run["returns"]) for run in own]
        first = [next((i + 1 for i, r in enumerate(rs) if r >= level), np.inf) for rs in returns]
        held = [first_held(rs, level) for rs in returns]
        best = [rs.max() for rs in returns]
        regret = [(optimum - rs).sum() / optimum for rs in returns]
        name = f"{agent} {confidence}" if agent == "gp-ucrl" else agent
        name += "" if macro == 4 else f" (hold {macro})"
        print(
            f"| {name} | {reward} | {'short' if short else 'long'} | {penalty} | {len(own)} | "
            f"{min(best):.1f} to {max(best):.1f} | {_range(first)} | {_range(held)} | "
            f"{np.mean(regret):.1f} (max {max(regret):.1f}) | "
            f"{np.median([run['episode_seconds'] for run in own]):.2f} |"
        )


def _group(run: dict) -> tuple:
    return tuple(run[k] for k in ("agent", "confidence", "reward", "short", "penalty", "macro"))


def _range(values: list[float]) -> str:
    words = ["never" if np.isinf(v) else str(int(v)) for v in (np.median(values), max(values))]
    return f"{words[0]} (last {words[1]})"


def figure(runs: list[dict]) -> None:
    """Returns by episode, every seed a thin line, the median thick; short beside long."""
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(2, 3, figsize=(11, 6), sharex=True, sharey=True)
    for (row, short), (column, penalty) in itertools.product(
        enumerate((True, False)), enumerate((0.0, 0.1, 0.2))
    ):
        axis = axes[row, column]
        for agent, colour in COLOURS.items():
            own = [
                run["returns"]
                for run in runs
                if (run["agent"], run["reward"], run["confidence"], run["macro"])
                == (agent, "known", "practical", 4)
                and (run["short"], run["penalty"]) == (short, penalty)
            ]
            if not own:
                continue
            episodes = np.arange(1, len(own[0]) + 1)
            axis.plot(episodes, np.transpose(own), color=colour, alpha=0.25, lw=0.7)
            axis.plot(episodes, np.median(own, axis=0), color=colour, lw=2, label=agent)
        axis.axhline(OPTIMA[4, penalty].value, color="black", ls=":", lw=1)
        axis.set_title(f"c = {penalty}, {'short' if short else 'long'} lengthscales", fontsize=10)
    axes[0, 0].legend(frameon=False)
    for axis in axes[1]:
        axis.set_xlabel("episode")
    for axis in axes[:, 0]:
        axis.set_ylabel("return")
    drawing.suptitle("Swing-up, reward known; dotted: optimum")
    drawing.tight_layout()
    place = FIGURE
    drawing.savefig(place, dpi=110)
    print(place)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", nargs="+", default=["psrl", "greedy", "gp-ucrl"])
    parser.add_argument("--confidence", default="practical", choices=["practical", "valid"])
    parser.add_argument("--penalties", nargs="+", type=float, default=[0.2, 0.1, 0.0])
    parser.add_argument("--rewards", nargs="+", default=["known", "learned"])
    parser.add_argument("--lengthscales", nargs="+", default=["short", "long"])
    parser.add_argument("--macro", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--figure", action="store_true", help="draw and tabulate what is stored")
    chosen = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    grid = itertools.product(
        chosen.agents,
        [chosen.confidence],
        chosen.penalties,
        chosen.rewards,
        [length == "short" for length in chosen.lengthscales],
        [chosen.macro],
        range(chosen.seeds),
    )
    for key in () if chosen.figure else grid:
        runs = stored()
        if any(tuple(run[k] for k in KEYS) == key for run in runs):
            continue
        runs.append(one(key, chosen.episodes))
        print(*key, runs[-1]["returns"], f"{runs[-1]['seconds']:.0f} s", flush=True)
        PLACE.write_text("[\n" + ",\n".join(json.dumps(run) for run in runs) + "\n]\n")
    table(stored())
    if chosen.figure:
        figure(stored())


if __name__ == "__main__":
    main()
