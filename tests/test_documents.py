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


# Each with a tiny budget: options, and a word of what it says.
EXAMPLES = {
    "ask_tell.py": (("--episodes", "1"), "batch 1: return"),
    "bandit.py": (("--episodes", "2"), "for the best"),
    "learn_a_function.py": ((), "certified"),
    "lqr.py": (("--episodes", "1", "--env", "lqr-1d"), "certainty-equivalence  regret"),
    "pendulum_v1.py": (
        ("--episodes", "2", "--horizon", "30", "--grid", "24", "17", "--torques", "5"),
        "what was fitted: independent",
    ),
    "pricing.py": (("--episodes", "1", "--agents", "psrl"), "optimum 6.33"),
    "regret.py": (("--episodes", "1"), "covered by the confidence sets of Theorem 1"),
    "swing_up.py": (("--episodes", "1", "--smooth", "--agents", "psrl"), "optimum of 276"),
    "table.py": (("--episodes", "1"), "dirichlet-psrl regret"),
}


def test_every_example_is_run():
    programs = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert programs - {"plant.py"} == set(EXAMPLES)  # the plant is started by ask_tell.py


@pytest.mark.parametrize("program", EXAMPLES)
def test_example_writes_its_figure(program, tmp_path, monkeypatch, capsys):
    """In this process: another would import, trace and compile what is here already."""
    options, said = EXAMPLES[program]
    out = tmp_path / "figure.png"
    monkeypatch.setattr(sys, "argv", [program, "--out", str(out), *options])
    runpy.run_path(str(ROOT / "examples" / program), run_name="__main__")
    assert out.read_bytes().startswith(b"\x89PNG")
    assert said in capsys.readouterr().out
