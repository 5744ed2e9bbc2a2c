"""Play the trials of a study in groups, each in one compiled program (``vectorise=True``)."""

import itertools
import json
import pathlib
import traceback
from collections.abc import Callable, Sequence

from kernelmdp.errors import ArgumentError, KernelMDPError
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
    by_kind = lambda trial: (trial.config.env, trial.config.agent)  # noqa: E731
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
    by_settings = lambda trial: json.dumps(  # noqa: E731
        [trial.config.settings, trial.config.env_options], sort_keys=True
    )
    parts = [
        list(same) for _, same in itertools.groupby(sorted(new, key=by_settings), key=by_settings)
    ]
    if len(parts) > 1:
        try:
            return results + _play(new, folder, episodes)
        except ArgumentError:
            pass  # these settings need different programs
    for part in parts:
        results += _with_errors(part, lambda part=part: _play(part, folder, episodes))
    return results


def _play(trials: Sequence[Trial], folder: pathlib.Path, episodes: int) -> list[TrialResult]:
    agents = [trial.config.make_agent() for trial in trials]
    runs = play_together(agents, episodes, between=exit_without_driver)
    for trial, agent, run in zip(trials, agents, runs, strict=True):
        record_run(trial.config, folder / trial.name, agent, run)
    return [TrialResult(trial.name) for trial in trials]


def _with_errors(
    trials: Sequence[Trial], play: Callable[[], list[TrialResult]]
) -> list[TrialResult]:
    """The results, or the error as a result of every trial."""
    try:
        return play()
    except KernelMDPError as error:
        message, details = str(error), ""
    except Exception as error:
        message, details = f"{type(error).__name__}: {error}", traceback.format_exc()
    return [TrialResult(trial.name, message, details) for trial in trials]
