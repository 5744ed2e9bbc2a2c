"""The files of a run's folder: their names, and functions that read and write them.

``run`` describes what each file holds.
"""

import csv
import dataclasses
import pathlib
import tomllib
from collections.abc import Mapping, Sequence
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

#: The configuration of the run, and which theorem covers it.
CONFIG_FILE = "config.toml"
#: The table of the run, one row an episode.
EPISODES_FILE = "episodes.csv"
#: The episodes since the checkpoint was written.
JOURNAL_FILE = "journal"
#: The saved agent with its episodes.
CHECKPOINT_FILE = archive.RUN_CHECKPOINT
#: The curve of a theorem's regret bound.
BOUND_FILE = "bound.csv"


@dataclasses.dataclass(frozen=True)
class RunDescription:
    """The content of ``config.toml``.

    Attributes:
        run: The fields of the run's ``RunConfig``.
        coverage: Which theorem covers the run, or why none does, when it began.
        bound: Which theorem bounds the regret, or why none does.
        bounded: Whether a theorem bounds the regret.
        versions: The versions of the libraries.
    """

    run: dict[str, Any]
    coverage: Coverage = Coverage(None)
    bound: str = ""
    bounded: bool = False
    versions: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def config(self) -> RunConfig:
        """The configuration, checked: this installation knows its agent and settings."""
        return RunConfig(**self.run)


def read_config(folder: Any) -> RunConfig:
    """Read the configuration of a run.

    Args:
        folder: The run's folder.

    Returns:
        The configuration.

    >>> import tempfile
    >>> from kernelmdp.experiments import RunConfig, run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = run(RunConfig("riverswim", "random"), folder, episodes=1)
    ...     read_config(folder).env
    'riverswim'
    """
    return read_description(folder).config


def read_description(folder: Any) -> RunDescription:
    """Read ``config.toml`` of a run.

    Args:
        folder: The run's folder.

    Returns:
        Its content.

    Raises:
        ArgumentError: If there is no such file, or it cannot be read.
    """
    path = pathlib.Path(folder) / CONFIG_FILE
    if not path.is_file():
        raise ArgumentError("folder", f"the folder of a run, with {CONFIG_FILE}", str(folder))
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
        raise ArgumentError("folder", f"a {CONFIG_FILE} that can be read ({error})", path) from None


def write_config(config: RunConfig, folder: pathlib.Path, agent: Agent) -> None:
    """Write ``config.toml``: the run, which theorem covers it, and a summary of the problem.

    Args:
        config: The run's configuration.
        folder: Its folder.
        agent: Its agent.
    """
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
    archive.write_atomically(folder / CONFIG_FILE, to_toml(content).encode())


def read_history(
    folder: pathlib.Path, config: RunConfig
) -> tuple[list[Episode], dict[str, float], Mapping[str, Mapping[str, np.ndarray]]]:
    """Read the episodes of a checkpoint.

    Args:
        folder: The run's folder.
        config: The run's configuration.

    Returns:
        The episodes, running sums such as cumulative regret, and arrays of the learner's states.

    Raises:
        CheckpointError: If the file is no checkpoint, or holds another agent or seed.
    """
    path = folder / CHECKPOINT_FILE
    description, arrays, states = archive.read(path)
    name, seed = description.get("agent"), description.get("seed")
    if (name, seed) != (config.agent_class.name, config.seed):
        raise CheckpointError(f"{path}: holds {name} with seed {seed}, not this run")
    totals = {key: float(value) for key, value in description.get("totals", {}).items()}
    return from_arrays(arrays), totals, states


def read_rows(folder: pathlib.Path) -> list[dict[str, Any]]:
    """Read the rows of a run, up to the first incomplete one. A crash may cut a row short.

    Args:
        folder: The run's folder.

    Returns:
        The rows, one number for each column.
    """
    rows: list[dict[str, Any]] = []
    for row in csv.DictReader(read_lines(folder / EPISODES_FILE)):
        try:
            numbers = {name: float(value) for name, value in row.items()}
            rows.append(numbers | {"episode": int(numbers["episode"])})
        except (KeyError, TypeError, ValueError):
            break
    return rows


def read_lines(path: pathlib.Path) -> list[str]:
    """Read the lines of a file.

    Args:
        path: The file.

    Returns:
        The lines; none if there is no file. Bytes that are no text become replacement characters.
    """
    if not path.exists():
        return []
    with path.open(newline="", errors="replace") as file:
        return [line.replace("\0", "?") for line in file]


def header(columns: Sequence[str]) -> str:
    """Format the first line of ``episodes.csv``.

    Args:
        columns: The columns of the run.

    Returns:
        The line, with its end.
    """
    return ",".join(columns) + "\r\n"


def as_line(row: dict[str, Any], columns: Sequence[str]) -> str:
    """Format a row of ``episodes.csv``. All its values are numbers, so nothing is quoted.

    Args:
        row: Numbers by column. Missing numbers are NaN.
        columns: The columns of the run.

    Returns:
        The line, with its end.
    """
    return ",".join([str(row.get(name, "nan")) for name in columns]) + "\r\n"
