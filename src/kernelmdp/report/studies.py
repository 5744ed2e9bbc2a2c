"""Read the ``manifest.json`` of a study: its planned trials, and how it was made."""

import dataclasses
import json
import pathlib
from typing import Any

from kernelmdp.errors import ArgumentError

#: The file of the manifest in the folder of a study.
MANIFEST_FILE = "manifest.json"
#: Marks a file as a manifest.
FORMAT = "kernelmdp study"
#: The folder of the runs, inside the folder of the study.
TRIALS_FOLDER = "trials"


@dataclasses.dataclass(frozen=True)
class StoredStudy:
    """A study as its manifest describes it.

    Attributes:
        folder: The folder of the study.
        name: Its name.
        episodes: The planned number of episodes of each trial.
        trials: The names of the trials, which are those of their folders.
        made: Command, time, versions and git state, as pairs of a name and a text.
    """

    folder: pathlib.Path
    name: str
    episodes: int
    trials: tuple[str, ...]
    made: tuple[tuple[str, str], ...]

    def not_begun(self, runs: list[pathlib.Path]) -> list[str]:
        """List the trials that have no folder yet.

        Args:
            runs: The folders of the runs that exist.

        Returns:
            The names of the other trials.
        """
        begun = {path.resolve() for path in runs}
        folder = self.folder / TRIALS_FOLDER
        return [name for name in self.trials if (folder / name).resolve() not in begun]


def read_study(path: pathlib.Path) -> StoredStudy | None:
    """Read a manifest.

    Args:
        path: The file.

    Returns:
        The study, or None if another program wrote a file of this name.

    Raises:
        ArgumentError: If the manifest cannot be read.
    """
    try:
        manifest = json.loads(path.read_text())
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            return None
        trials = tuple(str(trial["name"]) for trial in manifest["trials"])
        made: dict[str, Any] = manifest.get("made") or {}
        return StoredStudy(
            path.parent, str(manifest["name"]), int(manifest["episodes"]), trials, _as_texts(made)
        )
    except (OSError, KeyError, TypeError, ValueError) as error:
        expected = f"a {MANIFEST_FILE} that can be read ({error})"
        raise ArgumentError("folder", expected, path) from None


def _as_texts(made: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    versions, git = made.get("versions") or {}, made.get("git")
    texts = {"command": str(made.get("command", "")), "time": str(made.get("time", ""))}
    texts["versions"] = ", ".join(f"{name} {version}" for name, version in versions.items())
    if git:
        changed = ", with changes" if git.get("changed") else ""
        texts["git"] = f"{git.get('commit')}{changed}"
    return tuple((name, text) for name, text in texts.items() if text)
