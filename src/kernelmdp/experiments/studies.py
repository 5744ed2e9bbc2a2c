"""A study: many runs in one folder, played by many processes, gone on with at any time."""

import dataclasses
import pathlib
from typing import Any

from kernelmdp.experiments.local_backend import play_locally
from kernelmdp.experiments.ray_backend import play_on_cluster
from kernelmdp.experiments.run import is_finished
from kernelmdp.experiments.run_folder import lock
from kernelmdp.experiments.study_file import read_plan
from kernelmdp.experiments.study_manifest import require_same_study, write_manifest
from kernelmdp.experiments.study_progress import StudyProgress
from kernelmdp.experiments.trial_worker import Outcome
from kernelmdp.numerics.checks import choice, integer

BACKENDS = ("local", "ray")
#: Where the runs of a study are, within its folder.
TRIALS = "trials"


@dataclasses.dataclass(frozen=True)
class Study:
    """A study on disk.

    >>> Study(pathlib.Path("studies/small"), trials=(), failed={}).folder.name
    'small'
    """

    folder: pathlib.Path
    #: Folders of its runs.
    trials: tuple[pathlib.Path, ...]
    #: What went wrong, by the name of the trial.
    failed: dict[str, Outcome]


def study(
    given: Any,
    *,
    out: Any = None,
    jobs: int = 1,
    backend: str = "local",
    address: str | None = None,
    progress: bool = True,
    tensorboard: bool = False,
) -> Study:
    """Play all trials of a study: a TOML file, or a dictionary of the same shape.

    Each has a folder under ``out`` (usually ``studies/NAME``). What is finished is not played
    again, what was interrupted goes on. ``jobs`` processes use a core each; ``backend="ray"`` plays
    on the Ray cluster at ``address``, or on one of ``jobs`` workers started here. The numbers are
    the same wherever trials are played.

    >>> study({"name": "small", "episode": 20})
    Traceback (most recent call last):
    kernelmdp.errors.ArgumentError: study: expected the keys name, episodes, seeds, environments,
    agents, got 'episode'; did you mean 'episodes'?
    """
    plan = read_plan(given)
    jobs = integer("jobs", jobs, least=1)
    choice("backend", backend, BACKENDS)
    place = pathlib.Path(out) if out is not None else pathlib.Path("studies") / plan.name
    require_same_study(place, plan)
    with lock(place):
        require_same_study(place, plan)  # another process may have been here meanwhile
        trials = place / TRIALS
        finished = [t.name for t in plan.trials if is_finished(trials / t.name, plan.episodes)]
        left = [trial for trial in plan.trials if trial.name not in set(finished)]
        failed: dict[str, Outcome] = {}
        watch = StudyProgress(plan, trials, finished, show=progress, tensorboard=tensorboard)
        if left:
            write_manifest(place, plan, jobs=jobs, backend=backend)

        def ended(outcome: Outcome) -> None:
            if outcome.error:
                failed[outcome.name] = outcome
            watch.ended(outcome)

        with watch:
            common: dict[str, Any] = {"episodes": plan.episodes, "jobs": jobs}
            common |= {"look": watch.look, "ended": ended}
            if backend == "ray" and left:
                play_on_cluster(left, trials, address=address, **common)
            elif left:
                play_locally(left, trials, **common)
    return Study(place, tuple(trials / trial.name for trial in plan.trials), failed)
