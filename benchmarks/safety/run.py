"""Play agents on the systems that must not break: each is a run in a process of its own.

    .venv/bin/python benchmarks/safety/run.py --agents frugal --systems all \
        --variants safe unconstrained penalty fallback --seeds 5 --episodes 15 --out runs/safety

Variants:

- safe: the agent knows the constraints and the fallback.
- unconstrained: the agent knows nothing of them.
- penalty: the reward is less by ``--penalty`` at each violating step.
- fallback: the fallback alone. It is no agent, and runs once for all agents.

Each run is a JSON file, ``<out>/<label>/<system>-<seed>.json``, which is replaced after every
episode. Returns never include the penalty. Repeat the command to continue: complete runs are
skipped, and others start again.
"""

import argparse
import itertools
import json
import math
import os
import pathlib
import sys
import time
from collections.abc import Iterator

import gymnasium
import plants_path  # noqa: F401
from constrained import ConstrainedPlant, Constraint
from driver import is_complete, parse_setting, play_all, write
from systems import SYSTEMS, select

VARIANTS = ("safe", "unconstrained", "penalty", "fallback")
#: Keys of a run that say what it is a run of. The others are its results.
IDENTITY = ("agent", "variant", "label", "system", "seed", "episodes", "penalty", "settings")
#: Columns of an agent's row that are kept, by the name in the file. Agents without them give NaN.
COLUMNS = {"fallback_share": "fallback_share", "predicted_risk": "planned_risk"}
#: The first seed of the fallback's episodes. Runs have a thousand each.
FALLBACK_SEEDS = 20_000


class RecordedSystem(gymnasium.Wrapper):
    """Records each episode, and may lower the reward at violating steps.

    Args:
        system: The system.
        penalty: What a violating step costs.

    Attributes:
        total: The return of the current episode, without penalties.
        violations: Its violating steps.
        length: Its steps.
    """

    def __init__(self, system: ConstrainedPlant, penalty: float):
        super().__init__(system)
        self.penalty = penalty
        self.total, self.violations, self.length = 0.0, 0, 0

    def reset(self, *, seed=None, options=None):
        self.total, self.violations, self.length = 0.0, 0, 0
        return super().reset(seed=seed, options=options)

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        self.total += reward
        self.violations += int(info["cost"] > 0.0)
        self.length += 1
        return observation, reward - self.penalty * info["cost"], terminated, truncated, info


def safety_settings(system: ConstrainedPlant) -> dict:
    """Return what a safe agent is told: constraints, and the fallback with its trusted states."""
    import kernelmdp as km

    def as_box(space: gymnasium.spaces.Box) -> km.Box:
        return km.Box(low=space.low.astype(float), high=space.high.astype(float))

    def of_states(constraint: Constraint) -> km.mdp.Constraint:
        return km.mdp.Constraint(
            lambda states: constraint.function(states, None), constraint.name, constraint.unit
        )

    functions = [of_states(each) for each in system.constraints]
    constraints = functions if system.allowed is None else [as_box(system.allowed)]
    return {"constraints": constraints, "fallback": (system.fallback, as_box(system.trusted))}


def agent_rows(run: dict, system: ConstrainedPlant, recorded: RecordedSystem) -> Iterator[dict]:
    """Let an agent learn. Yield its row after every episode."""
    from kernelmdp.agents import AGENTS
    from kernelmdp.experiments import interact

    settings = {"horizon": system.horizon} | run["settings"]
    if run["variant"] == "safe":
        settings = {"risk": 0.01, "risk_for": "episode"} | safety_settings(system) | settings
    agent = AGENTS[run["agent"]](recorded, seed=run["seed"], **settings)
    yield from interact(agent, run["episodes"])


def fallback_rows(run: dict, system: ConstrainedPlant, recorded: RecordedSystem) -> Iterator[dict]:
    """Play the fallback. Yield a row after every episode."""
    for episode in range(run["episodes"]):
        state, _ = recorded.reset(seed=FALLBACK_SEEDS + 1_000 * run["seed"] + episode)
        for period in range(system.horizon):
            state, *_ = recorded.step(system.fallback(state, period))
        yield {"fallback_share": 1.0}


def play(run: dict, path: pathlib.Path, driver: int) -> None:
    """Play one run, and write it after every episode."""
    system = SYSTEMS[run["system"]]()
    recorded = RecordedSystem(system, run["penalty"])
    rows = fallback_rows if run["variant"] == "fallback" else agent_rows
    run |= {"returns": [], "violations": [], "steps": [], "seconds": [], "complete": False}
    run |= {name: [] for name in COLUMNS}
    begin = time.perf_counter()
    for row in rows(run, system, recorded):
        run["returns"].append(recorded.total)
        run["violations"].append(recorded.violations)
        run["steps"].append(recorded.length)
        for name, column in COLUMNS.items():
            run[name].append(float(row.get(column, math.nan)))
        run["seconds"].append(round(time.perf_counter() - begin, 3))
        run["complete"] = len(run["returns"]) == run["episodes"]
        write(path, run)
        if os.getppid() != driver:
            raise SystemExit("the process that started this run has ended")
        begin = time.perf_counter()


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        play(json.loads(sys.argv[2]), pathlib.Path(sys.argv[3]), int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", nargs="+", default=["frugal"], help="names in the registry")
    parser.add_argument("--systems", nargs="+", default=["all"], help="names, or all")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, default=5, help="seeds 0, 1, ... of every agent")
    parser.add_argument("--episodes", type=int, default=15)
    parser.add_argument("--penalty", type=float, default=10.0, help="of a violating step")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/safety"))
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--set", nargs="+", type=parse_setting, default=[], metavar="NAME=VALUE")
    parser.add_argument("--label", help="name of the results; agent and variant by default")
    chosen = parser.parse_args()
    if chosen.label and len(chosen.agents) * len(chosen.variants) > 1:
        parser.error("--label: expected one agent and one variant")
    runs = {}
    grid = itertools.product(
        range(chosen.seeds), select(chosen.systems), chosen.variants, chosen.agents
    )
    for seed, system, variant, agent in grid:
        alone = variant == "fallback"
        label = chosen.label or (variant if alone else f"{agent}-{variant}")
        penalty = chosen.penalty if variant == "penalty" else 0.0
        settings = {} if alone else dict(chosen.set)
        values = ("" if alone else agent, variant, label, system, seed)
        values += (chosen.episodes, penalty, settings)
        run = dict(zip(IDENTITY, values, strict=True))
        path = chosen.out / label / f"{system}-{seed}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not is_complete(path, run, IDENTITY):
            runs[path] = run
    ordered = [(run, path) for path, run in runs.items()]
    raise SystemExit(1 if play_all(__file__, ordered, chosen.jobs) else 0)


if __name__ == "__main__":
    main()
