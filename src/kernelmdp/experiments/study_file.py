"""Read the definition of a study: agents × environments × settings × seeds, each a trial."""

import dataclasses
import hashlib
import itertools
import json
import pathlib
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from kernelmdp.errors import ArgumentError, KernelMDPError
from kernelmdp.experiments.run_config import RunConfig
from kernelmdp.numerics.checks import integer, with_suggestion
from kernelmdp.settings import flatten

#: The keys of a study.
STUDY_KEYS = ("name", "episodes", "seeds", "environments", "agents")
#: The keys of an entry of ``environments``.
ENVIRONMENT_KEYS = ("name", "options", "grid")
#: The keys of an entry of ``agents``.
AGENT_KEYS = ("name", "set", "grid")
#: Most letters of a trial's name before its hash. Together they fit into a file name.
MAX_NAME_LENGTH = 100


@dataclasses.dataclass(frozen=True)
class Trial:
    """One run of a study.

    Attributes:
        name: The name of its folder.
        config: The configuration of the run.
    """

    name: str
    config: RunConfig


@dataclasses.dataclass(frozen=True)
class StudyPlan:
    """The trials of a study.

    Attributes:
        name: The name of the study.
        episodes: The number of episodes of each trial.
        trials: The trials.
        text: The text of the definition.
    """

    name: str
    episodes: int
    trials: tuple[Trial, ...]
    text: str

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of all trials, sorted."""
        return tuple(sorted({trial.config.seed for trial in self.trials}))


def read_plan(definition: Any) -> StudyPlan:
    """Read a study.

    Args:
        definition: The path of a TOML file, or a dictionary with the same content.

    Returns:
        The trials.

    Raises:
        ArgumentError: If the file cannot be read, or the definition is invalid.

    >>> plan = read_plan(
    ...     {
    ...         "name": "small",
    ...         "episodes": 2,
    ...         "seeds": 3,
    ...         "environments": [{"name": "rkhs", "grid": {"horizon": [3, 5]}}],
    ...         "agents": [{"name": "psrl"}, {"name": "random"}],
    ...     }
    ... )
    >>> len(plan.trials)
    12
    >>> plan.trials[0].name
    'rkhs-psrl-seed0-horizon=3-2709bd19'
    """
    if isinstance(definition, Mapping):
        table, default_name = dict(definition), None
        try:
            text = json.dumps(table, indent=1)
        except (TypeError, ValueError) as error:
            raise ArgumentError("study", "what JSON can hold", error) from None
    else:
        path = pathlib.Path(definition)
        default_name = path.stem
        try:
            text = path.read_text()
            table = tomllib.loads(text)
        except OSError as error:
            raise ArgumentError(
                "study", "a file to read", f"{path} ({error.strerror or error})"
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ArgumentError("study", "a TOML file", f"{path} ({error})") from None
    _require_keys("study", table, STUDY_KEYS)
    name = table.get("name", default_name)
    if not isinstance(name, str) or not re.fullmatch(r"[\w.+-]*\w[\w.+-]*", name):
        raise ArgumentError("name", "a word of letters, digits, '.', '+' and '-'", repr(name))
    for key in ("episodes", "environments", "agents"):
        if key not in table:
            raise ArgumentError("study", f"{key} to be given", "none")
    episodes = integer("episodes", table["episodes"], least=1)
    environments = _entries("environments", table["environments"], ENVIRONMENT_KEYS, "options")
    agents = _entries("agents", table["agents"], AGENT_KEYS, "set")
    trials: dict[str, Trial] = {}
    for environment, agent in itertools.product(environments, agents):
        for seed in _seeds(table.get("seeds", 1)):
            trial = _trial(environment, agent, seed)
            if trial.name in trials:
                raise ArgumentError("study", "each trial once", f"{trial.name} twice")
            trials[trial.name] = trial
    return StudyPlan(name, episodes, tuple(trials.values()), text)


def _trial(
    environment: tuple[str, dict[str, Any]], agent: tuple[str, dict[str, Any]], seed: int
) -> Trial:
    where = f"{agent[0]} on {environment[0]}"
    try:
        config = RunConfig(environment[0], agent[0], seed, environment[1], agent[1])
        config.require_environment()
    except ArgumentError as error:
        raise ArgumentError(
            f"study, {where}: {error.argument}", error.expected, error.got
        ) from None
    except KernelMDPError as error:
        raise ArgumentError("study", f"{where} to be possible", error) from None
    settings = [
        f"{key}={value}" for key, value in (config.env_options | flatten(config.settings)).items()
    ]
    readable = "-".join([config.env, config.agent, f"seed{seed}", *settings])
    safe = re.sub(r"[^\w=.+-]+", "_", readable)[:MAX_NAME_LENGTH]
    content = json.dumps(dataclasses.asdict(config), sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    return Trial(f"{safe}-{digest}", config)


def _require_keys(where: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            raise ArgumentError(where, "the keys " + ", ".join(known), with_suggestion(key, known))


def _entries(
    key: str, tables: Any, known: tuple[str, ...], settings_key: str
) -> list[tuple[str, dict[str, Any]]]:
    """Return names with their settings, one entry for each point of the grid."""
    if not isinstance(tables, list) or not tables:
        raise ArgumentError(key, f"tables under [[{key}]]", repr(tables))
    entries = []
    for table in tables:
        if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
            raise ArgumentError(key, "a name in each", repr(table))
        _require_keys(f"{key}, {table['name']}", table, known)
        fixed = _flat_settings(f"{key}, {settings_key}", table.get(settings_key, {}))
        grid = _flat_settings(f"{key}, grid", table.get("grid", {}))
        for name, values in grid.items():
            if not isinstance(values, list) or not values:
                raise ArgumentError(f"{key}, grid", f"a list of values of {name}", repr(values))
            if name in fixed:
                raise ArgumentError(f"{key}, grid", f"{name} in {settings_key} or in grid", "both")
        for values in itertools.product(*grid.values()):
            entries.append((table["name"], fixed | dict(zip(grid, values, strict=True))))
    return entries


def _flat_settings(where: str, table: Any) -> dict[str, Any]:
    """Flatten settings: TOML reads ``confidence.delta = 0.1`` as a table within a table."""
    if not isinstance(table, Mapping):
        raise ArgumentError(where, "a table of settings", repr(table))
    settings: dict[str, Any] = {}
    for name, value in table.items():
        if name == "confidence" and isinstance(value, Mapping):
            settings |= {f"confidence.{inner}": setting for inner, setting in value.items()}
        else:
            settings[name] = value
    return settings


def _seeds(value: Any) -> list[int]:
    """Return the seeds 0, 1, … of a number of seeds, or the listed ones."""
    if not isinstance(value, list):
        return list(range(integer("seeds", value, least=1)))
    seeds = [integer("seeds", seed, least=0) for seed in value]
    if not seeds or len(set(seeds)) < len(seeds):
        raise ArgumentError("seeds", "a number of seeds, or a list of different ones", repr(value))
    return seeds
