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
