"""Play the trials of a study in groups, each in one compiled program (``vectorise=True``)."""

import itertools
import json
import operator
import pathlib
import traceback
from collections.abc import Sequence
from typing import NamedTuple

from kernelmdp.agents import Agent
from kernelmdp.errors import KernelMDPError
from kernelmdp.experiments.results import PlayedRun
from kernelmdp.experiments.run import record_run
from kernelmdp.experiments.run_files import CONFIG_FILE
from kernelmdp.experiments.study_file import Trial
from kernelmdp.experiments.trial_worker import TrialResult, exit_without_driver, play_trials
from kernelmdp.experiments.vectorised import play_together

#: Most runs of one program. What a worker has not finished when it dies is played again, and their
#: episodes are kept in memory until then.
MOST_RUNS = 100


def groups_of(trials: Sequence[Trial], jobs: int) -> list[tuple[Trial, ...]]:
    """Arrange trials in groups that may be played together.

    Args:
        trials: The trials.
        jobs: The number of worker processes. There are at least as many groups, if possible.

    Returns:
        The groups. All trials of a group have the same environment and the same agent.
    """
    groups = []
    by_kind = operator.attrgetter("config.env", "config.agent")
    for _, same in itertools.groupby(sorted(trials, key=by_kind), key=by_kind):
        members = tuple(same)
        size = min(-(-len(members) // jobs), MOST_RUNS)
        groups += [members[i : i + size] for i in range(0, len(members), size)]
    return groups


def play_group(trials: Sequence[Trial], folder: pathlib.Path, episodes: int) -> list[TrialResult]:
    """Play trials of one environment and one agent. Errors are returned and not raised.

    Trials that were begun before are continued one by one. The others are played together. If
    their settings do not allow that, those with equal settings are.

    Args:
        trials: The trials.
        folder: Where their folders are. Each is named after its trial.
        episodes: The number of episodes of each.

    Returns:
        How the trials ended.
    """
    begun = [trial for trial in trials if (folder / trial.name / CONFIG_FILE).exists()]
    new = [trial for trial in trials if trial not in begun]
    results = play_trials(begun, folder, episodes)
    if not new:
        return results
    ordered = sorted(new, key=_settings_text)
    parts = [list(same) for _, same in itertools.groupby(ordered, key=_settings_text)]
    outcomes = [(new, _played(new, episodes))]
    if outcomes[0][1].error and len(parts) > 1:  # these settings need different programs
        outcomes = [(part, _played(part, episodes)) for part in parts]
    for part, outcome in outcomes:
        if outcome.error:
            results += [TrialResult(each.name, outcome.error, outcome.details) for each in part]
        else:
            pairs = zip(part, outcome.runs, strict=True)
            results += [_recorded(trial, *played, folder) for trial, played in pairs]
    return results


def _settings_text(trial: Trial) -> str:
    """All settings of agent and environment, as text."""
    return json.dumps([trial.config.settings, trial.config.env_options], sort_keys=True)


class _Outcome(NamedTuple):
    """Agents and their runs; or none, and why."""

    runs: list[tuple[Agent, PlayedRun]]
    error: str = ""
    details: str = ""


def _played(trials: Sequence[Trial], episodes: int) -> _Outcome:
    """Play trials together."""
    try:
        agents = [trial.config.make_agent() for trial in trials]
        runs = play_together(agents, episodes, between=exit_without_driver)
        return _Outcome(list(zip(agents, runs, strict=True)))
    except KernelMDPError as error:
        return _Outcome([], str(error))
    except Exception as error:
        return _Outcome([], f"{type(error).__name__}: {error}", traceback.format_exc())


def _recorded(trial: Trial, agent: Agent, run: PlayedRun, folder: pathlib.Path) -> TrialResult:
    """Write the folder of a trial."""
    try:
        record_run(trial.config, folder / trial.name, agent, run)
    except KernelMDPError as error:
        return TrialResult(trial.name, str(error))
    return TrialResult(trial.name)
