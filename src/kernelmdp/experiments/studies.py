"""A study: many runs in one folder, played by several processes. A stopped study can be resumed."""

import dataclasses
import pathlib
from typing import Any

from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.local_backend import play_locally
from kernelmdp.experiments.ray_backend import play_on_cluster
from kernelmdp.experiments.run import is_finished
from kernelmdp.experiments.run_folder import lock
from kernelmdp.experiments.study_file import read_plan
from kernelmdp.experiments.study_manifest import require_same_study, write_manifest
from kernelmdp.experiments.study_progress import StudyProgress
from kernelmdp.experiments.trial_worker import TrialResult
from kernelmdp.numerics.checks import choice, integer
from kernelmdp.numerics.keywords import suggests_keywords

#: Where trials can be played: in processes of this machine, or on a Ray cluster.
BACKENDS = ("local", "ray")
#: The folder of the runs, inside the folder of the study.
TRIALS_FOLDER = "trials"


@dataclasses.dataclass(frozen=True)
class Study:
    """A study on disk.

    Attributes:
        folder: The folder of the study.
        trials: The folders of its runs.
        failed: The results of the trials that failed, by the name of the trial.

    >>> Study(pathlib.Path("studies/small"), trials=(), failed={}).folder.name
    'small'
    """

    folder: pathlib.Path
    trials: tuple[pathlib.Path, ...]
    failed: dict[str, TrialResult]


@suggests_keywords
def study(
    definition: Any,
    *,
    out: Any = None,
    jobs: int = 1,
    backend: str = "local",
    address: str | None = None,
    progress: bool = True,
    tensorboard: bool = False,
    vectorise: bool = False,
) -> Study:
    """Play all trials of a study.

    Finished trials are not played again, and interrupted ones continue. The numbers do not depend
    on where trials are played.

    Args:
        definition: The study: the path of a TOML file, or a dictionary with the same content.
        out: The folder of the study. None means ``studies/NAME``.
        jobs: The number of worker processes. Each uses one core.
        backend: "local" plays on this machine, "ray" on a Ray cluster.
        address: The address of a running Ray cluster. None starts one with ``jobs`` workers.
        progress: Whether to show progress.
        tensorboard: Whether to write event files for TensorBoard.
        vectorise: Whether trials that differ in seeds and numbers only are played in one compiled
            program. Their numbers are the same up to rounding. This needs environments of this
            library, fixed kernels, and plans that can be compiled.

    Returns:
        The folders of the trials, and those that failed.

    Raises:
        ArgumentError: If the definition is wrong, or the backend cannot vectorise.

    >>> study({"name": "small", "episode": 20})
    Traceback (most recent call last):
    kernelmdp.errors.ArgumentError: study: expected the keys name, episodes, seeds, environments,
    agents, got 'episode'; did you mean 'episodes'?
    """
    plan = read_plan(definition)
    jobs = integer("jobs", jobs, least=1)
    choice("backend", backend, BACKENDS)
    if vectorise and backend != "local":
        raise ArgumentError("vectorise", "the backend 'local'", repr(backend))
    folder = pathlib.Path(out) if out is not None else pathlib.Path("studies") / plan.name
    require_same_study(folder, plan)
    with lock(folder):
        require_same_study(folder, plan)  # Another process may have used the folder meanwhile.
        trials = folder / TRIALS_FOLDER
        finished = [t.name for t in plan.trials if is_finished(trials / t.name, plan.episodes)]
        remaining = [trial for trial in plan.trials if trial.name not in set(finished)]
        failed: dict[str, TrialResult] = {}
        display = StudyProgress(plan, trials, finished, show=progress, tensorboard=tensorboard)
        if remaining:
            write_manifest(folder, plan, jobs=jobs, backend=backend)

        def on_end(result: TrialResult) -> None:
            if result.error:
                failed[result.name] = result
            display.end_trial(result)

        with display:
            options: dict[str, Any] = {"episodes": plan.episodes, "jobs": jobs}
            options |= {"on_poll": display.refresh, "on_end": on_end}
            if backend == "ray" and remaining:
                play_on_cluster(remaining, trials, address=address, **options)
            elif remaining:
                play_locally(remaining, trials, vectorise=vectorise, **options)
    return Study(folder, tuple(trials / trial.name for trial in plan.trials), failed)
