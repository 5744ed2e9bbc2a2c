"""What made a study: trials, versions, seeds, the state of git and the command, in one file."""

import dataclasses
import datetime
import importlib.metadata
import json
import pathlib
import platform
import shlex
import subprocess
import sys
from typing import Any

from kernelmdp import archive
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.run_folder import LOCK, storage_errors
from kernelmdp.experiments.study_file import StudyPlan
from kernelmdp.version import __version__

FORMAT = "kernelmdp study"
LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "gymnasium", "joblib")
NAME = "manifest.json"


def require_same_study(place: pathlib.Path, plan: StudyPlan) -> None:
    """The folder is new, empty, or of this study: trials, seeds and episodes may be added."""
    path = place / NAME
    if not path.exists():
        if place.exists() and (
            not place.is_dir() or {child.name for child in place.iterdir()} - {LOCK, NAME + ".part"}
        ):
            raise ArgumentError("out", "an empty or new folder, or one of a study", str(place))
        return
    found = read_manifest(place)
    missing = {trial["name"] for trial in found["trials"]} - {trial.name for trial in plan.trials}
    if missing:
        raise ArgumentError(
            "out",
            "a folder of this study, to which trials may be added but not taken away",
            f"{place}, which holds {len(missing)} others, such as {min(missing)}",
        )
    if plan.episodes < found["episodes"]:
        raise ArgumentError(
            "episodes", f"at least the {found['episodes']} of {place}", plan.episodes
        )


def read_manifest(place: pathlib.Path) -> dict[str, Any]:
    """The manifest of a study's folder."""
    path = place / NAME
    try:
        found = json.loads(path.read_text())
        if found["format"] == FORMAT and isinstance(found["trials"], list):
            return found
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError("folder", f"a {NAME} that can be read ({error})", path) from None
    raise ArgumentError("folder", f"the {NAME} of a study", path)


def write_manifest(place: pathlib.Path, plan: StudyPlan, **how: Any) -> None:
    """Say what the study is and how it is run; what was said of it before is kept."""
    earlier: list[Any] = []
    if (place / NAME).exists():
        before = read_manifest(place)
        earlier = before.pop("earlier", [])
        earlier.append({name: before.get(name) for name in ("made", "study", "episodes")})
    content = {
        "format": FORMAT,
        "name": plan.name,
        "episodes": plan.episodes,
        "seeds": plan.seeds,
        "made": {
            "command": shlex.join([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]]),
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            **how,
            "versions": versions(),
            "platform": platform.platform(),
            "git": git_state(),
        },
        "study": plan.text,
        "trials": [
            {"name": trial.name, **dataclasses.asdict(trial.config)} for trial in plan.trials
        ],
        "earlier": earlier,
    }
    with storage_errors(place):
        archive.write_atomically(place / NAME, (json.dumps(content, indent=1) + "\n").encode())


def versions() -> dict[str, str]:
    """Of Python, this library and those its numbers depend on."""
    found = {name: importlib.metadata.version(name) for name in LIBRARIES}
    return {"kernelmdp": __version__, "python": platform.python_version(), **found}


def git_state() -> dict[str, Any] | None:
    """Commit of the working directory and whether files differ from it; None without git."""

    def git(*words: str) -> str:
        found = subprocess.run(["git", *words], capture_output=True, text=True, check=True)
        return found.stdout.strip()

    try:
        return {
            "commit": git("rev-parse", "HEAD"),
            "changed": bool(git("status", "--porcelain", "--untracked-files=no")),
        }
    except (OSError, subprocess.CalledProcessError):
        return None  # no git here, or not a repository of it
