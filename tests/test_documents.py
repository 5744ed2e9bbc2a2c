"""The Python blocks of README and docs run as they stand, and the demo makes its figure."""

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.S))
]


@pytest.mark.parametrize("block", BLOCKS)
def test_block_runs(block):
    exec(compile(block, "block", "exec"), {})


EXAMPLES = [
    ("learn_a_function.py", ()),
    ("swing_up.py", ("--episodes", "1", "--smooth", "--agents", "psrl")),
]


@pytest.mark.parametrize(("program", "options"), EXAMPLES)
def test_example_writes_its_figure(program, options, tmp_path, monkeypatch, capsys):
    """In this process: another would import, trace and compile what is here already."""
    out = tmp_path / "figure.png"
    monkeypatch.setattr(sys, "argv", [program, "--out", str(out), *options])
    runpy.run_path(str(ROOT / "examples" / program), run_name="__main__")
    assert out.read_bytes().startswith(b"\x89PNG")
    said = capsys.readouterr().out
    assert "certified" in said or "optimum of 276" in said
