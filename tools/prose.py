"""Run proselint over the docstrings and comments of files: ``python -m tools.prose src``.

proselint reads text, not Python, so the prose is extracted first, as for ``docstring_rules``. The
checks that suit technical prose are chosen in ``proselint.json``.
"""

import bisect
import functools
import itertools
import json
import pathlib
import re
import sys

from proselint.checks import __register__
from proselint.config import Config
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

from tools.docstring_rules import Breach, files_in, prose

#: The checks that are on. Typography is off: it dislikes ASCII quotes and three dots.
CONFIG = pathlib.Path(__file__).with_name("proselint.json")
#: Words with symbols in them are mathematics. ``root rootᵀ`` repeats no word.
MATHEMATICS = re.compile(r"\S*[^\sA-Za-z0-9.,;:!?()'\"/-]\S*")

#: What is between paragraphs, so that proselint sees no word repeated across them.
BREAK = "\n\n§\n\n"


@functools.cache
def _config() -> Config:
    CheckRegistry().register_many(__register__)
    return json.loads(CONFIG.read_text())


def lint(path: pathlib.Path, source: str) -> list[Breach]:
    """Check the prose of one module.

    Args:
        path: The file, as messages name it.
        source: Its text.

    Returns:
        The breaches, by line.
    """
    parts = [(line, MATHEMATICS.sub("§", text)) for line, text in prose(source)]
    content = BREAK.join(text for _, text in parts) + "\n"
    # Spans count from 1: proselint puts a line break before the content.
    starts = list(itertools.accumulate((len(text) + len(BREAK) for _, text in parts), initial=1))
    breaches = set()
    for result in LintFile(str(path), content).lint(_config()):
        start, end = result.check_result.span
        # proselint also reads "for ever" in "for every".
        if not content[end - 1].isalpha():
            line, _ = parts[bisect.bisect_right(starts, max(start, 1)) - 1]
            breaches.add(Breach(path, line, result.check_result.message))
    return sorted(breaches)


def main(arguments: list[str]) -> int:
    """Print the breaches in files and folders.

    Args:
        arguments: Their paths.

    Returns:
        The exit code: 1 where a check fails.
    """
    files = files_in(arguments)
    breaches = [breach for path in files for breach in lint(path, path.read_text())]
    for breach in breaches:
        print(breach)
    print(f"prose: {len(breaches)} breaches in {len(files)} files")
    return int(bool(breaches))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
