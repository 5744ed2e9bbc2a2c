"""What all commands of ``kmdp`` share: help, version, completion, and names."""

import subprocess
import sys

import pytest
import typer.main
from typer.testing import CliRunner

import kernelmdp as km
import kmdp
from kmdp import names

COMMANDS = typer.main.get_command(kmdp.app).commands


def said(*arguments):
    return CliRunner().invoke(kmdp.app, arguments, env={"COLUMNS": "160"})


def called(monkeypatch, capsys, *arguments):
    """Run ``kmdp`` as the installed command does; code, output and errors."""
    monkeypatch.setattr(sys, "argv", ["kmdp", *arguments])
    code = 0
    try:
        kmdp.main()
    except SystemExit as end:
        code = end.code
    return code, *capsys.readouterr()


def test_version(monkeypatch, capsys):
    code, out, _ = called(monkeypatch, capsys, "--version")
    assert (code or 0, out) == (0, f"kmdp {km.__version__}\n")


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_without_a_command_there_is_help(monkeypatch, capsys, arguments):
    code, out, err = called(monkeypatch, capsys, *arguments)
    assert (code, err) == (0, "")
    assert all(name in out for name in COMMANDS)
    assert "kmdp run riverswim" in out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_explains_every_option_and_has_an_example(name):
    found = said(name, "--help")
    assert found.exit_code == 0
    assert f"kmdp {name}" in found.output.split("Examples:")[1]
    assert not [each.name for each in COMMANDS[name].params if not each.help]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rnu",), "Did you mean 'run'?"),
        (("run", "riverswim", "--agnet", "psrl"), "--agent"),
        (("run",), "env"),
    ],
)
def test_what_is_misspelt_is_one_sentence(monkeypatch, capsys, arguments, message):
    code, _, err = called(monkeypatch, capsys, *arguments)
    assert code == 2
    assert err.startswith("kmdp: ")
    assert err.count("\n") == 1
    assert message in err


def test_names_are_those_of_the_library():
    assert names.ENVIRONMENTS == tuple(km.envs.ENVIRONMENTS)[: len(names.ENVIRONMENTS)]
    assert names.BOUNDS == tuple(km.theory.BOUNDS)
    assert names.VERSIONS == km.theory.width_sums.VERSIONS
    built_in = [
        n for n, part in km.agents.AGENTS.items() if part.__module__.startswith("kernelmdp")
    ]
    assert set(built_in) == set(names.AGENTS)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("kmdp ru", ["run"]),
        ("kmdp run pendulum-c", ["pendulum-coarse"]),
        ("kmdp run riverswim --agent gp", ["gp-ucrl"]),
        ("kmdp bound theorem1 --env river", ["riverswim"]),
    ],
)
def test_completion(line, expected):
    environment = {
        "_KMDP_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split()) - 1),
    }
    found = CliRunner().invoke(kmdp.app, env=environment, prog_name="kmdp")
    assert found.output.split() == expected


def test_help_does_not_import_the_library():
    """Importing it takes longer than a reader of the help waits."""
    code = (
        "import sys, kmdp\n"
        "sys.argv = ['kmdp', 'run', '--help']\n"
        "kmdp.main()\n"
        "assert not {'jax', 'numpy', 'kernelmdp'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


VESSEL = """
import gymnasium
import numpy as np


class Vessel(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0.0, 100.0, (1,))
    action_space = gymnasium.spaces.Box(0.0, 1.0, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.heat = np.array([20.0], np.float32)
        return self.heat, {}

    def step(self, action):
        self.heat = np.clip(0.9 * self.heat + 5.0 * action, 0.0, 100.0).astype(np.float32)
        return self.heat, -abs(float(self.heat[0]) - 40.0), False, False, {}


gymnasium.register("Vessel-v0", Vessel, max_episode_steps=4)
"""


@pytest.mark.parametrize(
    ("name", "options"),
    [("vessel:Vessel", ["--set", "env.horizon=4"]), ("vessel:Vessel-v0", [])],
)
def test_an_environment_of_ones_own_is_run(tmp_path, monkeypatch, capsys, name, options):
    (tmp_path / "vessel.py").write_text(VESSEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    command = ["run", name, "--agent", "random", "--episodes", "1", "--out", "vessel-run"]
    code, _, err = called(monkeypatch, capsys, *command, *options)
    assert (code or 0) == 0, err
    assert km.read("vessel-run").trials["episodes"].tolist() == [1]
    sys.modules.pop("vessel")


def test_a_class_without_options_says_so(tmp_path, monkeypatch, capsys):
    (tmp_path / "vessel.py").write_text(VESSEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    code, _, err = called(monkeypatch, capsys, "run", "vessel:Vessel", "--set", "env.size=4")
    assert code == 2
    assert "none of its own; horizon, angles, action_repeat" in err
    sys.modules.pop("vessel")


def test_the_horizon_is_a_setting_of_the_environment(tmp_path, monkeypatch, capsys):
    (tmp_path / "endless.py").write_text(
        "import gymnasium\n\n\nclass Endless(gymnasium.Env):\n"
        "    observation_space = gymnasium.spaces.Discrete(2)\n"
        "    action_space = gymnasium.spaces.Discrete(2)\n\n"
        "    def reset(self, *, seed=None, options=None):\n        return 0, {}\n\n"
        "    def step(self, action):\n        return int(action), 1.0, False, False, {}\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    run = ("run", "endless:Endless", "--agent", "greedy", "--episodes", "1", "--out", "r")
    code, _, err = called(monkeypatch, capsys, *run)
    assert code == 2
    assert "--set horizon=40" in err
    code, _, err = called(monkeypatch, capsys, *run, "--set", "horizon=4")
    assert not code, err
    assert "horizon = 4" in (tmp_path / "r" / "config.toml").read_text()
