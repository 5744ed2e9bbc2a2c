"""What a study's ``manifest.json`` says: how many runs there are to be, and what made them."""

import dataclasses
import json
import pathlib
from typing import Any

from kernelmdp.errors import ArgumentError

NAME, FORMAT, TRIALS = "manifest.json", "kernelmdp study", "trials"


@dataclasses.dataclass(frozen=True)
class StoredStudy:
    """One folder of trials."""

    folder: pathlib.Path
    name: str
    #: Of every trial, when it is finished.
    episodes: int
    #: Names of the trials, which are those of their folders.
    trials: tuple[str, ...]
    #: Command, versions and state of git, in words.
    made: tuple[tuple[str, str], ...]

    def waiting(self, runs: list[pathlib.Path]) -> list[str]:
        """Trials that have no folder yet."""
        begun = {path.resolve() for path in runs}
        place = self.folder / TRIALS
        return [name for name in self.trials if (place / name).resolve() not in begun]


def read_study(path: pathlib.Path) -> StoredStudy | None:
    """The study of a manifest; None for a file of that name that is something else's."""
    try:
        found = json.loads(path.read_text())
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            return None
        trials = tuple(str(trial["name"]) for trial in found["trials"])
        made: dict[str, Any] = found.get("made") or {}
        return StoredStudy(
            path.parent, str(found["name"]), int(found["episodes"]), trials, _made(made)
        )
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ArgumentError("folder", f"a {NAME} that can be read ({error})", path) from None


def _made(made: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    versions, git = made.get("versions") or {}, made.get("git")
    words = {"command": str(made.get("command", "")), "time": str(made.get("time", ""))}
    words["versions"] = ", ".join(f"{name} {version}" for name, version in versions.items())
    if git:
        changed = ", with changes" if git.get("changed") else ""
        words["git"] = f"{git.get('commit')}{changed}"
    return tuple((name, text) for name, text in words.items() if text)
