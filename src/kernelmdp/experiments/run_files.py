"""The files of a run's folder: their names, and the one place that reads them.

``config.toml`` says what the run is, ``episodes.csv`` has a row for each episode, ``checkpoint``
holds the data of episodes, ``journal`` those since the checkpoint, ``bound.csv`` a theorem's curve.
"""

import csv
import dataclasses
import pathlib
import tomllib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from kernelmdp import archive
from kernelmdp.agents import Agent
from kernelmdp.confidence import Coverage
from kernelmdp.errors import ArgumentError, CheckpointError
from kernelmdp.experiments.run_bounds import run_bound
from kernelmdp.experiments.run_config import RunConfig
from kernelmdp.experiments.toml_writer import to_toml
from kernelmdp.mdp import Episode
from kernelmdp.mdp.episode import from_arrays
from kernelmdp.version import __version__

CONFIG, ROWS, JOURNAL, CHECKPOINT, BOUND = (
    "config.toml",
    "episodes.csv",
    "journal",
    "checkpoint",
    "bound.csv",
)


@dataclasses.dataclass(frozen=True)
class RunDescription:
    """What ``config.toml`` says: the run, and what was found about it when it began."""

    run: dict[str, Any]
    coverage: Coverage = Coverage(None)
    #: Which theorem bounds the regret, or why none does; and whether one does.
    bound: str = ""
    bounded: bool = False
    versions: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def config(self) -> RunConfig:
        """The run, checked: its agent and its settings are known here."""
        return RunConfig(**self.run)


def read_config(folder: Any) -> RunConfig:
    """The configuration of a run's folder.

    >>> import tempfile
    >>> from kernelmdp.experiments import RunConfig, run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = run(RunConfig("riverswim", "random"), folder, episodes=1)
    ...     read_config(folder).env
    'riverswim'
    """
    return read_description(folder).config


def read_description(folder: Any) -> RunDescription:
    """What ``config.toml`` of a run's folder says.

    Raises:
        ArgumentError: If there is none, or it cannot be read.
    """
    path = pathlib.Path(folder) / CONFIG
    if not path.is_file():
        raise ArgumentError("folder", f"the folder of a run, with {CONFIG}", str(folder))
    try:
        content = tomllib.loads(path.read_text())
        run, theory = content["run"], content.get("theory", {})
        config = {
            "env": str(run["env"]),
            "agent": str(run["agent"]),
            "seed": int(run["seed"]),
            "env_options": run.get("env_options", {}),
            "settings": run.get("settings", {}),
        }
        coverage = Coverage(theory.get("theorem"), tuple(theory.get("reasons", ())))
        return RunDescription(
            config,
            coverage,
            str(theory.get("bound", "")),
            bool(theory.get("bounded", False)),
            content.get("versions", {}),
        )
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ArgumentError("folder", f"a {CONFIG} that can be read ({error})", path) from None


def write_config(config: RunConfig, place: pathlib.Path, agent: Agent) -> None:
    """Write ``config.toml``: the run, and what was found about the problem."""
    coverage, problem, bound = agent.coverage, agent.problem, run_bound(agent)
    content = {
        "run": dataclasses.asdict(config),
        "theory": {
            "covered": coverage.covered,
            "theorem": coverage.theorem,
            "reasons": list(coverage.reasons),
            "bound": bound.text,
            "bounded": bound.covered,
            "lipschitz": f"{problem.lipschitz:g} ({problem.lipschitz_rule})",
        },
        "problem": problem.summary(),
        "versions": {
            "kernelmdp": __version__,
            "jax": jax.__version__,
            "numpy": np.__version__,
        },
    }
    archive.write_atomically(place / CONFIG, to_toml(content).encode())


def read_history(place: pathlib.Path, config: RunConfig) -> tuple[list[Episode], dict[str, float]]:
    """The episodes of a checkpoint and the running sums beside them.

    Raises:
        CheckpointError: If the file is none, or holds another agent or seed.
    """
    path = place / CHECKPOINT
    description, arrays = archive.read(path)
    name, seed = description.get("agent"), description.get("seed")
    if (name, seed) != (config.agent_class.name, config.seed):
        raise CheckpointError(f"{path}: holds {name} with seed {seed}, not this run")
    totals = {key: float(value) for key, value in description.get("totals", {}).items()}
    return from_arrays(arrays), totals


def read_rows(place: pathlib.Path) -> list[dict[str, Any]]:
    """Rows on disk; a last one cut short by a crash is left out."""
    whole: list[dict[str, Any]] = []
    for row in csv.DictReader(read_lines(place / ROWS)):
        try:
            numbers = {name: float(value) for name, value in row.items()}
            whole.append(numbers | {"episode": int(numbers["episode"])})
        except (KeyError, TypeError, ValueError):
            break
    return whole


def read_lines(path: pathlib.Path) -> list[str]:
    """Lines of a file, none where there is no file; bytes that are no text become marks."""
    if not path.exists():
        return []
    with path.open(newline="", errors="replace") as file:
        return [line.replace("\0", "?") for line in file]


def header(columns: Sequence[str]) -> str:
    """The first line of ``episodes.csv``."""
    return ",".join(columns) + "\r\n"


def as_line(row: dict[str, Any], columns: Sequence[str]) -> str:
    """A row as it is written; all its values are numbers."""
    return ",".join([str(row.get(name, "nan")) for name in columns]) + "\r\n"
