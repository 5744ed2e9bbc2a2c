"""What real plants look like: velocities that are not seen, delays, rough models, and drift.

    .venv/bin/python benchmarks/lab/run.py hidden --seeds 5 --jobs 2 --out runs/lab
    .venv/bin/python benchmarks/lab/run.py --report runs/lab

Each run is a JSON file, replaced after every episode. Complete runs are skipped.

hidden   Pendulum-v1 and CartPole-v1 without velocities and history=2, beside the full state
delay    a tank whose pump acts two steps late, with delay=2, beside the one without a delay
prior    six plants with a model that is 30 % wrong in its parameters, beside none; rewards known
learned  the same with rewards learned: the first episode is then random, with a model too
drift    a DC motor and a tank whose gain halves after ten episodes, with and without forgetting,
         beside those that are weak from the beginning
lags     whether the warning of a missing past is given, on systems with and without one
"""

import argparse
import itertools
import json
import os
import pathlib
import sys
import warnings

import gymnasium
import numpy as np
import systems
from driver import play_all, write

#: Episodes of each study.
EPISODES = {"hidden": 10, "delay": 10, "prior": 10, "learned": 10, "drift": 18, "lags": 3}
#: Episodes of the study "lags" where velocities are hidden: those of CartPole-v1 are short.
HIDDEN_LAGS = 12
#: The episode after which the gain halves.
WEARS = 10
#: Fully observed systems on which the warning must not be given.
OBSERVED = [
    "Pendulum-v1", "CartPole-v1", "MountainCarContinuous-v0", "Acrobot-v1", "coupled-tanks",
    "reactor", "thermal-zone", "room-chain", "rotary-pendulum", "quadrotor", "two-link-arm",
    "hill-car", "dc-motor", "boost-converter", "magnetic-levitation", "inventory", "queue",
    "glucose", "epidemic", "harvest",
]  # fmt: skip


def variants(study: str) -> list[tuple[str, str]]:
    """The pairs of system and variant of a study."""
    if study == "hidden":
        return list(itertools.product(systems.HIDDEN, ["full", "hidden"]))
    if study == "delay":
        return list(itertools.product(["coupled-tanks"], ["none", "unaware", "told"]))
    if study in ("prior", "learned"):
        return list(itertools.product(systems.WRONG, ["none", "rough"]))
    if study == "drift":
        return list(itertools.product(["dc-motor", "coupled-tanks"], ["worn", "keeps", "forgets"]))
    return [*((name, "full") for name in OBSERVED), *((name, "hidden") for name in systems.HIDDEN)]


def make(study: str, system: str, variant: str) -> tuple[gymnasium.Env, dict]:
    """Make the environment of a run, and the settings of its agent."""
    known = "-v" in system
    env = gymnasium.make(system) if known else systems.plant(system)
    settings: dict = {} if known else {"horizon": env.horizon}
    if variant == "hidden":
        env = systems.Shown(env, systems.HIDDEN[system])
        settings["history"] = 1 if study == "lags" else 2
    if study == "delay" and variant != "none":
        env = systems.Delayed(env, 2)
        settings["delay"] = 2 if variant == "told" else 0
    if study == "prior":
        settings["reward"] = systems.reward(system)
    if variant == "rough":
        settings["prior_model"] = systems.rough_model(system)
    if study == "drift":
        # "worn" is weak from the beginning: what can be reached after the change.
        env = systems.Weaker(env, 0 if variant == "worn" else WEARS)
        settings["forgetting"] = 0.7 if variant == "forgets" else 0
    return env, settings


def play(run: dict, path: pathlib.Path, driver: int) -> None:
    """Play one run, and write it after every episode."""
    from kernelmdp.agents import AGENTS
    from kernelmdp.experiments import interact

    env, settings = make(run["study"], run["system"], run["variant"])
    agent = AGENTS[run["agent"]](env, seed=run["seed"], **settings)
    returns, errors, messages = [], [], []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for row in interact(agent, run["episodes"]):
            returns.append(float(row["return"]))
            errors.append([float(row[name]) for name in ("one_step_error", "prior_model_error")])
            messages = sorted({str(each.message) for each in caught})
            done = len(returns) == run["episodes"]
            content = {"returns": returns, "errors": errors, "warnings": messages}
            write(path, run | content | {"complete": done})
            if os.getppid() != driver:
                raise SystemExit("the process that started this run has ended")


def report(folder: pathlib.Path) -> None:
    """Print one line for each system and variant."""
    runs = [json.loads(path.read_text()) for path in sorted(folder.glob("*/*.json"))]
    key = lambda run: (run["study"], run["system"], run["variant"])  # noqa: E731
    for (study, system, variant), group in itertools.groupby(sorted(runs, key=key), key=key):
        members = list(group)
        if study == "lags":
            lines = {
                text for run in members for text in run["warnings"] if "observed state" in text
            }
            fired = sum(any("observed state" in t for t in run["warnings"]) for run in members)
            print(f"{study} {system} {variant}: warned in {fired} of {len(members)}", *lines)
            continue
        width = min(len(run["returns"]) for run in members)
        mean = np.mean([run["returns"][:width] for run in members], axis=0)
        print(f"{study} {system} {variant}: {len(members)} seeds, means {mean.round(2).tolist()}")
        for run in members:
            print(f"    seed {run['seed']}: {np.round(run['returns'], 1).tolist()}")
            for text in run["warnings"]:
                print(f"        {text}")


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        play(json.loads(sys.argv[2]), pathlib.Path(sys.argv[3]), int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("studies", nargs="*", default=[], help=", ".join(EPISODES))
    parser.add_argument("--systems", nargs="+", help="some systems only")
    parser.add_argument("--agent", default="frugal")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, help="instead of the study's own number")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/lab"))
    parser.add_argument("--report", type=pathlib.Path, metavar="FOLDER", help="print what is there")
    chosen = parser.parse_args()
    if chosen.report:
        report(chosen.report)
        return
    unknown = sorted(set(chosen.studies) - set(EPISODES))
    if unknown:
        parser.error(f"studies: expected {', '.join(EPISODES)}, got {unknown[0]}")
    runs = []
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    for study in chosen.studies:
        for seed, (system, variant) in itertools.product(seeds, variants(study)):
            if chosen.systems and system not in chosen.systems:
                continue
            run = {"study": study, "system": system, "variant": variant, "agent": chosen.agent}
            usual = HIDDEN_LAGS if (study, variant) == ("lags", "hidden") else EPISODES[study]
            run |= {"seed": seed, "episodes": chosen.episodes or usual}
            path = chosen.out / study / f"{system}-{variant}-{chosen.agent}-{seed}.json"
            stored = json.loads(path.read_text()) if path.exists() else {}
            if stored.get("complete") and stored["episodes"] == run["episodes"]:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            runs.append((run, path))
    raise SystemExit(1 if play_all(__file__, runs, chosen.jobs) else 0)


if __name__ == "__main__":
    main()
