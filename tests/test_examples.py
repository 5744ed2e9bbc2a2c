"""Every program in examples/ runs with a tiny budget, and makes its figure."""

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Each with a tiny budget: options, and a word of what it says.
EXAMPLES = {
    "ask_tell.py": (("--episodes", "1"), "batch 1: return"),
    "bandit.py": (("--episodes", "2"), "for the best"),
    "data_logger.py": (("--episodes", "1"), "the controller ends at 1.0"),
    "learn_a_function.py": ((), "certified"),
    "lqr.py": (("--episodes", "1", "--env", "lqr-1d"), "certainty-equivalence  regret"),
    "pendulum_v1.py": (
        ("--episodes", "2", "--horizon", "30", "--grid", "24", "17", "--torques", "5"),
        "what was fitted: independent",
    ),
    "pricing.py": (("--episodes", "1", "--agents", "psrl"), "optimum 6.33"),
    "safe_oven.py": (("--episodes", "2"), "violations 0"),
    "reference_tracking.py": (("--episodes", "2"), "never seen in training: return -"),
    "regret.py": (("--episodes", "1"), "covered by the confidence sets of Theorem 1"),
    "swing_up.py": (("--episodes", "1", "--smooth", "--agents", "psrl"), "optimum of 276"),
    "table.py": (("--episodes", "1"), "dirichlet-psrl regret"),
}


def test_every_example_is_run():
    programs = {path.name for path in (ROOT / "examples").glob("*.py")}
    # The plant is started by ask_tell.py, and the client by tests/serving/test_client.py.
    assert programs - {"plant.py", "serve_client.py"} == set(EXAMPLES)


@pytest.mark.parametrize("program", EXAMPLES)
def test_example_writes_its_figure(program, tmp_path, monkeypatch, capsys):
    """In this process: another would import, trace and compile what is here already."""
    options, said = EXAMPLES[program]
    out = tmp_path / "figure.png"
    monkeypatch.setattr(sys, "argv", [program, "--out", str(out), *options])
    runpy.run_path(str(ROOT / "examples" / program), run_name="__main__")
    assert out.read_bytes().startswith(b"\x89PNG")
    assert said in capsys.readouterr().out
