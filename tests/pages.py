"""The blocks of code of README and docs."""

import re
from pathlib import Path

import pytest

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
