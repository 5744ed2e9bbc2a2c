"""The Python blocks of README and docs run as they stand, and the demo makes its figure."""

import re
import subprocess
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


EXAMPLES = [("learn_a_function.py", ()), ("swing_up.py", ("--episodes", "1", "--smooth"))]


@pytest.mark.parametrize(("program", "options"), EXAMPLES)
def test_example_writes_its_figure(program, options, tmp_path):
    out = tmp_path / "figure.png"
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / program, "--out", out, *options],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert out.read_bytes().startswith(b"\x89PNG")
    assert "certified" in done.stdout or "optimum of 276" in done.stdout
