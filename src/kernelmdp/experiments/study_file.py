"""A study as its file says it: agents x environments x settings x seeds, each a trial."""

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
from kernelmdp.numerics.checks import integer, suggested
from kernelmdp.settings import flat

KEYS = ("name", "episodes", "seeds", "environments", "agents")
ENVIRONMENT = ("name", "options", "grid")
AGENT = ("name", "set", "grid")
#: Letters of a trial's folder before its mark.
LONGEST = 100


@dataclasses.dataclass(frozen=True)
class Trial:
    """One run of a study, and the name of its folder."""

    name: str
    config: RunConfig


@dataclasses.dataclass(frozen=True)
class StudyPlan:
    """What a study is: its trials, how long each is, and the text it was read from."""

    name: str
    episodes: int
    trials: tuple[Trial, ...]
    text: str

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of all trials."""
        return tuple(sorted({trial.config.seed for trial in self.trials}))


def read_plan(given: Any) -> StudyPlan:
    """A study from its TOML file, or from the same as a dictionary.

    >>> words = {"name": "small", "episodes": 2, "seeds": 3}
    >>> plan = read_plan(
    ...     words
    ...     | {
    ...         "environments": [{"name": "rkhs", "grid": {"horizon": [3, 5]}}],
    ...         "agents": [{"name": "psrl"}, {"name": "random"}],
    ...     }
    ... )
    >>> len(plan.trials)
    12
    >>> plan.trials[0].name
    'rkhs-psrl-seed0-horizon=3-2709bd19'
    """
    if isinstance(given, Mapping):
        table, typical = dict(given), None
        try:
            text = json.dumps(table, indent=1)
        except (TypeError, ValueError) as error:
            raise ArgumentError("study", "what JSON can hold", error) from None
    else:
        path = pathlib.Path(given)
        typical = path.stem
        try:
            text = path.read_text()
            table = tomllib.loads(text)
        except OSError as error:
            raise ArgumentError(
                "study", "a file to read", f"{path} ({error.strerror or error})"
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ArgumentError("study", "a TOML file", f"{path} ({error})") from None
    _require_keys("study", table, KEYS)
    name = table.get("name", typical)
    if not isinstance(name, str) or not re.fullmatch(r"[\w.+-]*\w[\w.+-]*", name):
        raise ArgumentError("name", "a word of letters, digits, '.', '+' and '-'", repr(name))
    for key in ("episodes", "environments", "agents"):
        if key not in table:
            raise ArgumentError("study", f"{key} to be given", "none")
    episodes = integer("episodes", table["episodes"], least=1)
    environments = _entries("environments", table["environments"], ENVIRONMENT, "options")
    agents = _entries("agents", table["agents"], AGENT, "set")
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
        f"{key}={value}" for key, value in (config.env_options | flat(config.settings)).items()
    ]
    readable = "-".join([config.env, config.agent, f"seed{seed}", *settings])
    safe = re.sub(r"[^\w=.+-]+", "_", readable)[:LONGEST]
    whole = json.dumps(dataclasses.asdict(config), sort_keys=True)
    mark = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return Trial(f"{safe}-{mark}", config)


def _require_keys(where: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            raise ArgumentError(where, "the keys " + ", ".join(known), suggested(key, known))


def _entries(
    key: str, given: Any, known: tuple[str, ...], settings: str
) -> list[tuple[str, dict[str, Any]]]:
    """Names with their settings, one for each point of the grid."""
    if not isinstance(given, list) or not given:
        raise ArgumentError(key, f"tables under [[{key}]]", repr(given))
    found = []
    for entry in given:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            raise ArgumentError(key, "a name in each", repr(entry))
        _require_keys(f"{key}, {entry['name']}", entry, known)
        fixed = _settings(f"{key}, {settings}", entry.get(settings, {}))
        grid = _settings(f"{key}, grid", entry.get("grid", {}))
        for name, values in grid.items():
            if not isinstance(values, list) or not values:
                raise ArgumentError(f"{key}, grid", f"a list of values of {name}", repr(values))
            if name in fixed:
                raise ArgumentError(f"{key}, grid", f"{name} in {settings} or in grid", "both")
        for values in itertools.product(*grid.values()):
            found.append((entry["name"], fixed | dict(zip(grid, values, strict=True))))
    return found


def _settings(where: str, given: Any) -> dict[str, Any]:
    """As a flat table: ``confidence.delta = 0.1`` is a table within a table to TOML."""
    if not isinstance(given, Mapping):
        raise ArgumentError(where, "a table of settings", repr(given))
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name == "confidence" and isinstance(value, Mapping):
            found |= {f"confidence.{inner}": each for inner, each in value.items()}
        else:
            found[name] = value
    return found


def _seeds(given: Any) -> list[int]:
    """So many from 0 on, or those listed."""
    if not isinstance(given, list):
        return list(range(integer("seeds", given, least=1)))
    seeds = [integer("seeds", seed, least=0) for seed in given]
    if not seeds or len(set(seeds)) < len(seeds):
        raise ArgumentError("seeds", "a number of seeds, or a list of different ones", repr(given))
    return seeds
