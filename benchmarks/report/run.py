"""How long ``kmdp report`` takes, and how much memory, for many stored trials.

python benchmarks/report/run.py --trials 1000 --episodes 200

The trials are made up: 5 agents in 4 environments, one of them with a bound; no JAX is needed to
make them. Peak memory is that of the command's own process.
"""

from __future__ import annotations

import argparse
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

AGENTS = ("gp-ucrl", "psrl", "greedy", "random", "oracle")
ENVS = ("rkhs", "pendulum-coarse", "lqr-1d", "gp-prior")


def store(place: pathlib.Path, env: str, agent: str, seed: int, episodes: int) -> None:
    """A run's folder as ``kmdp run`` leaves it."""
    rng = np.random.default_rng([seed, AGENTS.index(agent), ENVS.index(env)])
    place.mkdir(parents=True)
    numbers = np.arange(1, episodes + 1)
    optimum = 10.0
    regret = rng.gamma(2.0, 0.5, episodes) * numbers ** -(0.2 + 0.1 * AGENTS.index(agent))
    columns = {
        "episode": numbers,
        "return": optimum - regret + rng.normal(size=episodes),
        "value": optimum - regret,
        "optimal_value": np.full(episodes, optimum),
        "regret": regret,
        "cumulative_regret": np.cumsum(regret),
        "gain_reward": np.log1p(numbers),
        "gain_transition": 2 * np.log1p(numbers),
        "plan_seconds": rng.gamma(4.0, 1e-3, episodes),
        "update_seconds": rng.gamma(4.0, 2e-4, episodes),
        "width_reward": 1 / np.sqrt(numbers),
        "width_transition": 2 / np.sqrt(numbers),
    }
    if agent == "gp-ucrl":
        columns |= {name: np.ones(episodes) for name in ("covered_reward", "covered_transition")}
    table = np.stack(list(columns.values()), axis=1).astype(float)
    lines = [",".join(map(repr, row)) for row in table.tolist()]
    (place / "episodes.csv").write_text("\r\n".join([",".join(columns), *lines]) + "\r\n")
    covered = agent == "gp-ucrl" and env == "rkhs"
    words = "Theorem 1, improved, for all T at once" if covered else "not covered: made up"
    config = [
        "[run]",
        f'env = "{env}"',
        f'agent = "{agent}"',
        f"seed = {seed}",
        "[theory]",
        f"bounded = {str(covered).lower()}",
        f'bound = "{words}"',
        "[versions]",
        'kernelmdp = "0.1.0"',
    ]
    (place / "config.toml").write_text("\n".join(config) + "\n")
    if covered:
        bounds = [f"{own},{200 * own**0.5},{20 * own}" for own in (1, 10, 50, episodes)]
        (place / "bound.csv").write_text("\n".join(["episode,bound,trivial", *bounds]) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--keep", type=pathlib.Path, help="where the trials go, to look at")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = options.keep or pathlib.Path(temporary) / "trials"
        pairs = [(env, agent) for env in ENVS for agent in AGENTS]
        for number in range(options.trials):
            env, agent = pairs[number % len(pairs)]
            seed = number // len(pairs)
            store(place / env / agent / str(seed), env, agent, seed, options.episodes)
        begin = time.perf_counter()
        command = [sys.executable, "-m", "kmdp", "report", str(place)]
        subprocess.run(command, check=True)
        seconds = time.perf_counter() - begin
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        peak = used.ru_maxrss / 2**20
        size = (place / "report.html").stat().st_size / 2**20
        processor = used.ru_utime + used.ru_stime
        print(
            f"{options.trials} trials of {options.episodes} episodes: {seconds:.1f} s, of which "
            f"{processor:.1f} s processor; {peak:.2f} GiB at peak, a page of {size:.1f} MiB"
        )


if __name__ == "__main__":
    main()
