"""Golden runs: a few episodes of every agent, to show that a change of the code changed no number.

    python benchmarks/golden/run.py before          # writes before/NAME.csv, one file a run
    ... change the code ...
    python benchmarks/golden/run.py after
    python benchmarks/golden/run.py --compare before after

Files are compared bit for bit, but for the columns that are times. Numbers are those of one machine
and one set of versions: the files are not committed.
"""

import argparse
import csv
import pathlib
import sys
import time

#: Columns that differ from run to run.
TIMES = {"plan_seconds", "update_seconds"}
#: Agents for every environment, those for tables, and those for linear-quadratic control.
ALL = ("gp-ucrl", "psrl", "greedy", "random", "oracle")
TABULAR = ("dirichlet-psrl", "ucbvi", "ucrl2")
LINEAR = ("certainty-equivalence", "ofu-lq", "lqr-ts")

#: Name, environment, agent, episodes, settings of the environment, settings of the agent.
RUNS = [
    *((f"rkhs-{agent}", "rkhs", agent, 6, {}, {}) for agent in ALL),
    *((f"riverswim-{agent}", "riverswim", agent, 8, {}, {}) for agent in ALL + TABULAR),
    *((f"lqr-2d-{agent}", "lqr-2d", agent, 6, {}, {}) for agent in ALL + LINEAR),
    *((f"pendulum-coarse-{agent}", "pendulum-coarse", agent, 4, {}, {}) for agent in ALL),
    *(
        (f"rkhs-{word}", "rkhs", "gp-ucrl", 4, {}, {"confidence": word})
        for word in ("paper", "valid")
    ),
    ("rkhs-gp-setting", "gp-prior", "gp-ucrl", 4, {}, {"confidence.setting": "gp"}),
    ("rkhs-known", "rkhs", "gp-ucrl", 4, {}, {"reward": "known"}),
    ("rkhs-paper-planner", "rkhs", "gp-ucrl", 3, {}, {"planner": "paper"}),
    ("rkhs-bonus", "rkhs", "gp-ucrl", 3, {}, {"planner": "bonus"}),
    ("rkhs-auto", "rkhs", "psrl", 4, {}, {"kernel": "auto"}),
    ("rkhs-inflated", "rkhs", "psrl", 3, {}, {"inflate": "gp-ts"}),
    ("lqr-1d-valid", "lqr-1d", "gp-ucrl", 4, {}, {"confidence": "valid"}),
    ("branin-gp-ucrl", "bandit-branin", "gp-ucrl", 5, {}, {}),
    *(
        (f"prior-{word}", "rkhs", "psrl", 3, {"horizon": 4}, {"prior": word})
        for word in ("student-t", "hyperparameters", "unknown-noise")
    ),
    ("prior-norm-ball", "lqr-1d", "psrl", 3, {}, {"prior": "norm-ball"}),
    *((f"pendulum-v1-{agent}", "Pendulum-v1", agent, 3, {}, {}) for agent in ALL[:4]),
    *(
        (f"pendulum-v1-mpc-{agent}", "Pendulum-v1", agent, 2, {"horizon": 40}, {"planner": "mpc"})
        for agent in ALL[:3]
    ),
    *((f"cartpole-v1-{agent}", "CartPole-v1", agent, 5, {}, {}) for agent in ALL[:3]),
    ("balance-psrl", "cartpole-balance", "psrl", 3, {"horizon": 40}, {"reward": "known"}),
    ("frozen-lake-psrl", "FrozenLake-v1", "psrl", 10, {}, {}),
    (
        "pendulum-by-step",
        "pendulum",
        "psrl",
        1,
        {},
        {"update": "step", "kernel": "auto", "reward": "known"},
    ),
]


def play(folder: pathlib.Path, only: list[str]) -> None:
    from kernelmdp.experiments import RunConfig, run

    for name, env, agent, episodes, options, settings in RUNS:
        target = folder / f"{name}.csv"
        if target.exists() or (only and not any(part in name for part in only)):
            continue
        begin = time.perf_counter()
        place = folder / "runs" / name
        run(RunConfig(env, agent, 0, options, settings), place, episodes=episodes)
        target.write_bytes((place / "episodes.csv").read_bytes())
        print(f"{name}: {time.perf_counter() - begin:.1f} s", flush=True)


def rows(path: pathlib.Path) -> list[dict[str, str]]:
    """Rows by column, without times and without columns that say nothing."""
    with path.open(newline="") as file:
        return [
            {k: v for k, v in row.items() if k not in TIMES and v not in ("", "nan")}
            for row in csv.DictReader(file)
        ]


def compare(before: pathlib.Path, after: pathlib.Path) -> int:
    wrong = 0
    for name, *_ in RUNS:
        files = [folder / f"{name}.csv" for folder in (before, after)]
        missing = [str(path) for path in files if not path.exists()]
        if missing:
            print(f"{name}: no {', '.join(missing)}")
            wrong += 1
            continue
        one, other = (rows(path) for path in files)
        if one != other:
            wrong += 1
            for number, (left, right) in enumerate(zip(one, other, strict=False), start=1):
                columns = [k for k in left.keys() | right.keys() if left.get(k) != right.get(k)]
                if columns:
                    shown = ", ".join(f"{k} {left.get(k)} -> {right.get(k)}" for k in columns[:4])
                    print(f"{name}: episode {number}: {shown}")
                    break
            else:
                print(f"{name}: {len(one)} and {len(other)} rows")
    print(f"{len(RUNS) - wrong} passed, {wrong} failed")
    return int(wrong > 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("other", type=pathlib.Path, nargs="?")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--only", nargs="*", default=[], help="parts of names")
    arguments = parser.parse_args()
    if arguments.compare:
        sys.exit(compare(arguments.folder, arguments.other))
    arguments.folder.mkdir(parents=True, exist_ok=True)
    play(arguments.folder, arguments.only)


if __name__ == "__main__":
    main()
