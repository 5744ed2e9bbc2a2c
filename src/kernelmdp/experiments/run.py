"""One run in one folder: an agent, an environment, a seed.

The folder holds ``config.toml`` (all that is needed to repeat the run), ``episodes.csv`` (one row
an episode, on disk when the episode ends) and ``checkpoint`` (the agent); where a theorem covers
the run also ``bound.csv`` (its regret bound). Running again goes on where it stopped: everything
random depends on seed and episode alone, so episodes that were played after the last checkpoint
come out the same again.
"""

import csv
import dataclasses
import json
import os
import pathlib
import time
import tomllib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from kernelmdp.agents import AGENTS, Agent, Result, Table, load
from kernelmdp.agents.learning import interact
from kernelmdp.agents.problem import gymnasium_task
from kernelmdp.agents.records import COLUMNS
from kernelmdp.confidence import as_confidence
from kernelmdp.envs import make, names
from kernelmdp.errors import ArgumentError, CheckpointError
from kernelmdp.experiments.bounds import run_bound, write_curve
from kernelmdp.version import __version__

#: Seconds between checkpoints.
PAUSE = 2.0
WORDS = (
    "reward",
    "reward_kernel",
    "transition_kernel",
    "noise",
    "confidence",
    "planner",
    "prior",
    "inflate",
    "scale",
    "delta",
    "concentration",
    "reward_bounds",
    "kernel",
    "update",
    "first",
)


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """What a run is: enough to repeat it."""

    env: str
    agent: str = "gp-ucrl"
    seed: int = 0
    env_options: dict[str, Any] = dataclasses.field(default_factory=dict)
    words: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.agent not in AGENTS:
            raise ArgumentError("agent", "one of " + ", ".join(AGENTS), repr(self.agent))
        for word in self.words:
            if word not in WORDS and not word.startswith("confidence."):
                expected = "one of " + ", ".join(WORDS) + ", or confidence.NAME"
                raise ArgumentError("set", expected, repr(word))
        for argument in ("env_options", "words"):
            # As they will be read from config.toml, so that a run knows itself again.
            object.__setattr__(self, argument, _through_json(argument, getattr(self, argument)))

    def task(self) -> Any:
        """The environment of this run; the seed draws the instance where there is one to draw."""
        if self.env in names() or "-v" not in self.env:
            if "name" in self.env_options:
                raise ArgumentError("options", "no other name of the environment", self.env_options)
            return make(self.env, **{"seed": self.seed, **self.env_options})
        unknown = sorted(set(self.env_options) - {"horizon"})
        if unknown:
            raise ArgumentError("options", f"for {self.env}: horizon", ", ".join(unknown))
        return gymnasium_task(self.env, **self.env_options)

    def make_agent(self) -> Agent:
        """The agent, new."""
        words = {k: v for k, v in self.words.items() if "." not in k}
        details = {
            k.partition(".")[2]: v for k, v in self.words.items() if k.startswith("confidence.")
        }
        if details:
            preset = as_confidence(words.get("confidence", "practical"))
            fields = {field.name for field in dataclasses.fields(preset)}
            for name in details:
                if name not in fields:
                    raise ArgumentError("set", f"confidence. and one of {sorted(fields)}", name)
            words["confidence"] = dataclasses.replace(preset, **details)
        return AGENTS[self.agent](self.task(), seed=self.seed, **words)


def run(
    config: RunConfig,
    folder: Any,
    *,
    episodes: int,
    watch: Callable[[Any, int, Agent], Any] = lambda rows, total, agent: rows,
) -> Result:
    """Play until the folder holds ``episodes`` episodes; ``watch`` may show rows as they come."""
    place = pathlib.Path(folder)
    begun = (place / "config.toml").exists()
    if begun and (saved := read_config(place)) != config:
        raise ArgumentError(
            "out", "a folder of the same run, or a new one", f"{place}, which holds {saved}"
        )
    if place.exists() and not begun and (not place.is_dir() or any(place.iterdir())):
        raise ArgumentError("out", "an empty or new folder, or one of a run", str(place))
    saved_agent = begun and (place / "checkpoint").exists()
    agent = load_run(config, place) if saved_agent else config.make_agent()
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError("out", "a folder that can be made", f"{place} ({error})") from None
    if not begun:
        _write_config(config, place, agent)
    rows = read_rows(place / "episodes.csv")[: agent.episode]
    if len(rows) < agent.episode:
        agent = _rewound(config, agent, len(rows))
    agent.cumulative_regret = float(rows[-1]["cumulative_regret"]) if rows else 0.0
    left = max(0, episodes - agent.episode)
    with (place / "episodes.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="nan")
        writer.writeheader()
        writer.writerows(rows)
        saved_at = time.monotonic()
        try:
            for row in watch(interact(agent, agent.task, left), left, agent):
                writer.writerow(row)
                file.flush()
                rows.append(row)
                if time.monotonic() - saved_at > PAUSE:
                    os.fsync(file.fileno())
                    agent.save(place / "checkpoint")
                    saved_at = time.monotonic()
        finally:
            agent.save(place / "checkpoint")
    told = (agent.problem.name, agent.name, agent.covered, Table(rows))
    return Result(*told, *_bounded(agent, len(rows), place))


def _bounded(
    agent: Agent, episodes: int, place: pathlib.Path
) -> tuple[str, tuple[np.ndarray, np.ndarray] | None]:
    """What a theorem says of the run, and its curve.

    At the end, as gains take seconds; it depends on nothing but the number of episodes.
    """
    found = run_bound(agent)
    curve = found.curve(episodes) if episodes else []
    if not curve:
        return found.text, None
    write_curve(curve, place / "bound.csv", found.gains)
    text = found.text + ("; vacuous so far" if curve[-1].vacuous else "")
    return text, (np.array([b.episodes for b in curve]), np.array([b.value for b in curve]))


def load_run(config: RunConfig, place: pathlib.Path) -> Agent:
    """The agent of a run's folder, as its checkpoint has it."""
    file = place / "checkpoint"
    words = {k: v for k, v in config.words.items() if k == "noise"}
    agent = load(file, task=config.task(), **words)
    if agent.name != config.agent or agent.seed != config.seed:
        raise CheckpointError(f"{file}: holds {agent.name} with seed {agent.seed}, not this run")
    return agent


def _rewound(config: RunConfig, agent: Agent, episodes: int) -> Agent:
    """The agent as it was after that many episodes.

    An episode may be in the checkpoint and its row not on disk, as when a run is stopped between
    the two; played again it gives the row.
    """
    earlier = config.make_agent()
    for told in agent.history[:episodes]:
        earlier.tell(told.states, told.actions, told.rewards, told.outcomes)
    return earlier


def _through_json(argument: str, value: Any) -> Any:
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError) as error:
        raise ArgumentError(argument, "what JSON can hold", f"{value} ({error})") from None


def read_rows(path: pathlib.Path) -> list[dict[str, Any]]:
    """Rows on disk; a last one cut short by a crash is left out."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    whole = []
    for row in rows:
        try:
            # A column that an older version did not write is not a row cut short.
            numbers = {name: float(row.get(name, "nan")) for name in COLUMNS}
            whole.append(numbers | {"episode": int(float(row["episode"]))})
        except (KeyError, TypeError, ValueError):
            break
    return whole


def read_config(folder: Any) -> RunConfig:
    """The configuration of a run's folder."""
    path = pathlib.Path(folder) / "config.toml"
    if not path.is_file():
        raise ArgumentError("folder", "the folder of a run, with config.toml", str(folder))
    try:
        found = tomllib.loads(path.read_text())["run"]
        return RunConfig(
            env=found["env"],
            agent=found["agent"],
            seed=found["seed"],
            env_options=json.loads(found["env_options"]),
            words=json.loads(found["words"]),
        )
    except (tomllib.TOMLDecodeError, KeyError, ValueError) as error:
        raise ArgumentError("folder", f"a config.toml that can be read ({error})", path) from None


def _write_config(config: RunConfig, place: pathlib.Path, agent: Agent) -> None:
    def text(value: Any) -> str:
        return json.dumps(value)  # a TOML string is a JSON string

    lines = [
        "[run]",
        *(f"{name} = {text(getattr(config, name))}" for name in ("env", "agent", "seed")),
        # As JSON inside strings, since values may be of any kind.
        f"env_options = {text(json.dumps(config.env_options))}",
        f"words = {text(json.dumps(config.words))}",
        "",
        "[found]",
        f"covered = {text(agent.covered)}",
        f"bound = {text(run_bound(agent).text)}",
        f"lipschitz = {text(f'{agent.problem.lipschitz:g} ({agent.problem.lipschitz_rule})')}",
        *(f"{key} = {text(value)}" for key, value in agent.problem.summary().items()),
        "",
        "[versions]",
        f"kernelmdp = {text(__version__)}",
        f"jax = {text(jax.__version__)}",
        f"numpy = {text(np.__version__)}",
    ]
    (place / "config.toml").write_text("\n".join(lines) + "\n")
