"""README and docs: every block of code runs, every link leads somewhere.

- ``python`` blocks run as they stand.
- ``sh`` blocks: of every command the program must be there and know its options; those of ``kmdp``
  are run in one folder, episodes cut down to one. A block that cannot run says so in its first
  line: ``# not run by the tests: REASON``.
- ``toml`` blocks are studies. Others are ``text``, or whole examples that the site shows.
"""

import re
import shlex
import sys
import tomllib
import unicodedata
from pathlib import Path

import pytest
import typer.main

from kernelmdp.cli import app, main
from kernelmdp.experiments.study_file import read_plan

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOT_RUN = "# not run by the tests: "
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.S | re.M)
FOUND = [
    (f"{page.relative_to(ROOT)}-{number}", language, block)
    for page in PAGES
    for number, (language, block) in enumerate(FENCE.findall(page.read_text()))
]


def blocks(language):
    return [pytest.param(block, id=name) for name, own, block in FOUND if own == language]


def test_every_block_is_of_a_kind_that_is_tested():
    known = {"python", "sh", "toml", "text", "{ .python .shown }"}
    assert {name: kind for name, kind, _ in FOUND if kind not in known} == {}


@pytest.mark.parametrize("block", blocks("python"))
def test_block_runs(block):
    exec(compile(block, "block", "exec"), {})


@pytest.mark.parametrize("block", blocks("toml"))
def test_block_is_a_study(block):
    assert read_plan(tomllib.loads(block)).trials


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
        if tuple(words) not in typed:  # pages have some commands in common
            typed.add(tuple(words))
            monkeypatch.setattr(sys, "argv", words)
            main()


LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page):
    """What headings of a page are called in links."""
    text = FENCE.sub("", page.read_text())
    found = set()
    for title in re.findall(r"^#+ (.+)$", text, re.M):
        plain = unicodedata.normalize("NFKD", title.replace("`", "")).encode("ascii", "ignore")
        words = re.sub(r"[^\w\s-]", "", plain.decode()).strip().lower()
        found.add(re.sub(r"[-\s]+", "-", words))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    broken = []
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_figures_are_small():
    figures = list((ROOT / "docs" / "figures").glob("*.png"))
    assert figures
    assert {f.name: f.stat().st_size for f in figures if f.stat().st_size > 80_000} == {}
