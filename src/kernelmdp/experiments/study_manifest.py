"""The manifest of a study: its trials, seeds, versions, git state and command, in one file."""

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
from kernelmdp.experiments.run_folder import LOCK_FILE, storage_errors
from kernelmdp.experiments.study_file import StudyPlan
from kernelmdp.version import __version__

#: Marks a file as a manifest.
FORMAT = "kernelmdp study"
#: Libraries whose versions are recorded, because the numbers depend on them.
LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "gymnasium", "joblib")
#: The file of the manifest in the folder of a study.
MANIFEST_FILE = "manifest.json"


def require_same_study(folder: pathlib.Path, plan: StudyPlan) -> None:
    """Check that a folder is new, empty or of this study. Trials and episodes may be added.

    Args:
        folder: The folder.
        plan: The study.

    Raises:
        ArgumentError: If the folder holds something else, trials that the study no longer has, or
            more episodes than the study asks for.
    """
    path = folder / MANIFEST_FILE
    if not path.exists():
        if folder.exists() and (
            not folder.is_dir()
            or {child.name for child in folder.iterdir()} - {LOCK_FILE, MANIFEST_FILE + ".part"}
        ):
            raise ArgumentError("out", "an empty or new folder, or one of a study", str(folder))
        return
    manifest = read_manifest(folder)
    stored_names = {trial["name"] for trial in manifest["trials"]}
    missing = stored_names - {trial.name for trial in plan.trials}
    if missing:
        raise ArgumentError(
            "out",
            "a folder of this study, to which trials may be added but not taken away",
            f"{folder}, which holds {len(missing)} others, such as {min(missing)}",
        )
    if plan.episodes < manifest["episodes"]:
        raise ArgumentError(
            "episodes", f"at least the {manifest['episodes']} of {folder}", plan.episodes
        )


def read_manifest(folder: pathlib.Path) -> dict[str, Any]:
    """Read the manifest of a study.

    Args:
        folder: The folder of the study.

    Returns:
        The content of the manifest.

    Raises:
        ArgumentError: If the file is no manifest, or cannot be read.
    """
    path = folder / MANIFEST_FILE
    try:
        manifest = json.loads(path.read_text())
        if manifest["format"] == FORMAT and isinstance(manifest["trials"], list):
            return manifest
    except (KeyError, TypeError, ValueError) as error:
        expected = f"a {MANIFEST_FILE} that can be read ({error})"
        raise ArgumentError("folder", expected, path) from None
    raise ArgumentError("folder", f"the {MANIFEST_FILE} of a study", path)


def write_manifest(folder: pathlib.Path, plan: StudyPlan, **launch: Any) -> None:
    """Write the manifest of a study. Earlier launches stay listed in it.

    Args:
        folder: The folder of the study.
        plan: The study.
        **launch: How it is played, such as ``jobs`` and ``backend``.
    """
    earlier: list[Any] = []
    if (folder / MANIFEST_FILE).exists():
        previous = read_manifest(folder)
        earlier = previous.pop("earlier", [])
        earlier.append({name: previous.get(name) for name in ("made", "study", "episodes")})
    content = {
        "format": FORMAT,
        "name": plan.name,
        "episodes": plan.episodes,
        "seeds": plan.seeds,
        "made": {
            "command": shlex.join([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]]),
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            **launch,
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
    with storage_errors(folder):
        encoded = (json.dumps(content, indent=1) + "\n").encode()
        archive.write_atomically(folder / MANIFEST_FILE, encoded)


def versions() -> dict[str, str]:
    """Return the versions of Python, of this library, and of the libraries it computes with.

    Returns:
        Versions by name.
    """
    libraries = {name: importlib.metadata.version(name) for name in LIBRARIES}
    return {"kernelmdp": __version__, "python": platform.python_version(), **libraries}


def git_state() -> dict[str, Any] | None:
    """Return the git commit of the working directory.

    Returns:
        The commit, and whether tracked files differ from it. None outside a repository, or if git
        is not installed.
    """

    def git(*arguments: str) -> str:
        process = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
        return process.stdout.strip()

    try:
        return {
            "commit": git("rev-parse", "HEAD"),
            "changed": bool(git("status", "--porcelain", "--untracked-files=no")),
        }
    except (OSError, subprocess.CalledProcessError):
        return None
