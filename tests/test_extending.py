"""What docs/extending.md shows is one short file each, used by name like what is built in."""

import ast
import os
import pathlib
import re
import subprocess
import sys

import pytest

import kernelmdp as km
from kernelmdp.experiments import RunConfig
from kernelmdp.experiments.study_file import read_plan
from kmdp import main

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "extending.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
LONGEST = 40


def definitions(block):
    """Imports, classes and functions of a block, without what it runs."""
    kept = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef)
    nodes = [node for node in ast.parse(block).body if isinstance(node, kept)]
    lines, starts = block.splitlines(), []
    for node in nodes:
        decorators = getattr(node, "decorator_list", [])
        starts.append(min([node.lineno, *(each.lineno for each in decorators)]))
    pairs = zip(starts, nodes, strict=True)
    return "\n".join("\n".join(lines[start - 1 : node.end_lineno]) for start, node in pairs)


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """A folder with all of them in one module."""
    folder = tmp_path_factory.mktemp("mine")
    (folder / "mine.py").write_text("\n\n\n".join(map(definitions, BLOCKS)))
    return folder


def kmdp(folder, *words):
    """A command in a process of its own."""
    code = "from kmdp import main; main()"
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.fixture
def typed(mine, monkeypatch):
    """Types a command in the folder, in this process: another would import and compile anew."""
    monkeypatch.chdir(mine)
    monkeypatch.syspath_prepend(str(mine))

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["kmdp", *words])
        main()

    return run


@pytest.mark.parametrize(
    "block", BLOCKS, ids=lambda block: re.findall(r"^class (\w+)|^def (\w+)", block, re.M)[-1][0]
)
def test_each_is_short(block):
    assert len(definitions(block).splitlines()) <= LONGEST


def test_settings_of_an_agent_of_ones_own(typed, capsys, tmp_path):
    typed("agents", "mine:Curious")
    listed = capsys.readouterr().out
    assert "deviations" in listed
    assert "Deviations of the reward" in listed
    words = ("riverswim", "--agent", "mine:Curious", "--set", "deviations=0.5")
    typed("run", *words, "--episodes", "1", "--out", str(tmp_path / "run"))
    assert "deviations = 0.5" in (tmp_path / "run" / "config.toml").read_text()
    agents = [{"name": "mine:Curious", "grid": {"deviations": [0.5, 1.0]}}]
    plan = {"name": "own", "episodes": 1, "environments": [{"name": "riverswim"}], "agents": agents}
    assert [t.config.settings["deviations"] for t in read_plan(plan).trials] == [0.5, 1.0]


def assert_played_by_name(words, out):
    named = [word.rpartition("=")[2] for word in words if "mine:" in word]
    config = (out / "config.toml").read_text()
    assert all(name in config for name in named)
    assert len((out / "episodes.csv").read_text().splitlines()) == 2


def test_by_name_in_a_process_of_its_own(mine, tmp_path):
    """Nothing but the folder that the command is typed in says where the names are."""
    words, out = ("mine:slope", "--agent", "mine:Curious"), tmp_path / "run"
    done = kmdp(mine, "run", *words, "--episodes", "1", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert_played_by_name(words, out)


@pytest.mark.parametrize(
    "words",
    [
        (
            "rkhs",
            "--agent",
            "psrl",
            "--set",
            "learner=mine:Drift",
            "--set",
            "planner=mine:Shooting",
        ),
        ("rkhs", "--agent", "gp-ucrl", "--set", "confidence=mine:ConstantBeta"),
        ("rkhs", "--agent", "psrl", "--set", "prior=mine:Cautious"),
        ("rkhs", "--agent", "greedy", "--set", "reward_kernel=mine:Bump"),
    ],
    ids=["learner and planner", "confidence", "prior", "kernel"],
)
def test_by_name_from_the_command_line(typed, words, tmp_path):
    out = tmp_path / "run"
    typed("run", *words, "--episodes", "1", "--out", str(out))
    assert_played_by_name(words, out)


def test_diagnostics_of_an_agent_reach_the_file_and_the_data_frame(typed, tmp_path):
    out = tmp_path / "run"
    words = ("run", "riverswim", "--agent", "mine:Curious", "--out", str(out), "--episodes")
    for episodes in ("1", "2"):  # the second command goes on
        typed(*words, episodes)
    assert "reward_gain" in (out / "episodes.csv").read_text().splitlines()[0]
    assert km.read(out).episodes["reward_gain"].is_monotonic_increasing


def test_in_a_study_with_workers(mine, monkeypatch, tmp_path):
    monkeypatch.chdir(mine)
    table = {
        "name": "mine",
        "episodes": 1,
        "seeds": 1,
        "environments": [{"name": "mine:slope"}],
        "agents": [{"name": "mine:Curious"}, {"name": "psrl", "set": {"learner": "mine:Drift"}}],
    }
    done = km.study(table, out=tmp_path / "study", jobs=2, progress=False)
    assert not done.failed, next(iter(done.failed.values())).error
    assert len(done.trials) == 2


def test_classes_are_taken_for_names(mine, monkeypatch):
    monkeypatch.chdir(mine)
    monkeypatch.syspath_prepend(str(mine))
    import mine as module

    config = RunConfig(module.slope, module.Curious)
    assert (config.env, config.agent) == ("mine:slope", "mine:Curious")
    with pytest.raises(km.errors.ArgumentError, match="at its top level"):
        RunConfig("riverswim", type("Local", (km.Greedy,), {"__module__": "__main__"}))


def test_a_saved_agent_names_what_it_cannot_hold(mine, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(mine))
    import mine as module

    agent = module.Curious("riverswim", seed=1)
    agent.save(tmp_path / "curious")
    with pytest.raises(km.errors.ArgumentError, match=r"agent: expected the class .*mine:Curious"):
        km.load(tmp_path / "curious")
    assert km.load(tmp_path / "curious", agent=module.Curious).seed == 1
    assert module.Curious.load(tmp_path / "curious").seed == 1
    kernel = km.kernels.Function(lambda x, y: 1.0 + x @ y, name="mine")
    agent = km.Greedy("riverswim", reward_kernel=kernel, planner=module.Shooting(tries=8))
    agent.save(tmp_path / "agent")
    with pytest.raises(km.errors.ArgumentError, match="reward_kernel: expected the reward kernel"):
        km.load(tmp_path / "agent", planner=module.Shooting(tries=8))
    with pytest.raises(km.errors.ArgumentError, match=r"planner: expected the planner .*Shooting"):
        km.load(tmp_path / "agent", reward_kernel=kernel)
    loaded = km.load(tmp_path / "agent", reward_kernel=kernel, planner=module.Shooting(tries=8))
    assert loaded.planner.tries == 8


def test_an_entry_point_is_found(monkeypatch):
    import importlib.metadata

    point = importlib.metadata.EntryPoint("lazy", "kernelmdp.agents:Random", "kernelmdp.agents")
    real = importlib.metadata.entry_points

    def entry_points(**words):
        return [point] if words.get("group") == "kernelmdp.agents" else real(**words)

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    registry = type(km.agents.AGENTS)("agent")
    assert registry.find("lazy") is km.Random


def test_a_module_that_is_not_there(tmp_path):
    done = kmdp(tmp_path, "run", "nowhere:slope", "--out", "x")
    assert done.returncode == 2
    assert "module:Name of an environment that can be imported" in done.stderr
    assert os.listdir(tmp_path) == []
