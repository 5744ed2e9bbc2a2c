"""README and docs: every block of code runs, every link leads somewhere.

- ``python`` blocks run as they stand.
- ``sh`` blocks are commands: see test_commands.py.
- ``toml`` blocks are studies, or plants of ``kmdp serve``. Others are ``text``, or whole examples
  that the site shows.
"""

import re
import tomllib
import unicodedata

import pytest

from kernelmdp.experiments.study_file import read_plan
from kernelmdp.serving import Plant
from tests.pages import FENCE, FOUND, PAGES, ROOT, blocks


def test_every_block_is_of_a_kind_that_is_tested():
    known = {"python", "sh", "toml", "text", "{ .python .shown }"}
    assert {name: kind for name, kind, _ in FOUND if kind not in known} == {}


@pytest.mark.parametrize("block", blocks("python"))
def test_block_runs(block):
    exec(compile(block, "block", "exec"), {})


@pytest.mark.parametrize("block", blocks("toml"))
def test_block_is_a_study_or_a_plant(block):
    table = tomllib.loads(block)
    if "states" in table:
        assert Plant.of({"name": "plant"} | table).make_agent().problem.coordinates
    else:
        assert read_plan(table).trials


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


def test_cited_notes_exist():
    notes = set(
        re.findall(r"^### ([A-EP]\d+)|^## ([A-EP])\b", (ROOT / "docs/notes.md").read_text(), re.M)
    )
    known = {one or other for one, other in notes}
    cited = set()
    for path in [*(ROOT / "src").rglob("*.py"), *PAGES]:
        for labels in re.findall(r"\bnotes? ([A-EP]\d*(?:, [A-EP]\d+)*)\b", path.read_text()):
            cited |= set(labels.split(", "))
    assert cited
    assert cited <= known
