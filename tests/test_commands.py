"""The commands of README and docs: of every one the program must be there and know its options;
those of ``kmdp`` are run in one folder, episodes cut down to one. A block that cannot run says so
in its first line: ``# not run by the tests: REASON``.
"""

import re
import shlex
import sys

import pytest
import typer.main

from kmdp import app, main
from tests.pages import NOT_RUN, ROOT, blocks


def commands(block):
    """Lines as lists of words; continued ones joined, comments left out."""
    lines = block.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


@pytest.mark.parametrize("block", blocks("sh"))
def test_commands_are_known(block):
    for words in commands(block):
        program, *rest = words
        if program == "kmdp":
            command = typer.main.get_command(app).commands[rest[0]]
            command.make_context(rest[0], rest[1:])  # raises where an option is not known
        elif program == "make":
            assert re.search(rf"^{rest[0]}:", (ROOT / "Makefile").read_text(), re.M)
        elif program == "python":
            text = (ROOT / rest[0]).read_text()
            given = {word for word in rest[1:] if word.startswith("--")}
            assert not {option for option in given if f'"{option}"' not in text}
        else:
            assert block.startswith(NOT_RUN), f"{program} is not run, and nothing says why"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """One folder for all pages, and which commands were typed in it already."""
    return tmp_path_factory.mktemp("pages"), set()


@pytest.mark.parametrize("block", [b for b in blocks("sh") if not b.values[0].startswith(NOT_RUN)])
def test_commands_run(block, place, monkeypatch):
    folder, typed = place
    monkeypatch.chdir(folder)
    for words in commands(block):
        if words[0] != "kmdp":
            continue
        if words[1] in ("run", "play") and "--episodes" in words:
            words[words.index("--episodes") + 1] = "1"
        if words[1] == "run" and re.search(r"-v\d+$", words[2]):
            words += ["--set", "env.horizon=10"]  # Gymnasium's episodes are long
        if tuple(words) not in typed:  # pages have some commands in common
            typed.add(tuple(words))
            monkeypatch.setattr(sys, "argv", words)
            main()
