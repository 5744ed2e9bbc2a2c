"""``kmdp bound``."""

import sys

import pytest
from typer.testing import CliRunner

import kmdp as cli
from kernelmdp import Box, FiniteSet, make
from kernelmdp.errors import ArgumentError
from kmdp.bound_inputs import environment_arguments, parse_domain

PLAIN = "--horizon 5 --episodes 2000 --reward-noise 0.1 --transition-noise 0.1".split()
NORMS = "--norm-reward 1 --norm-transition 1 --lipschitz 3".split()
LINEAR = ["--kernel", "0.5 * linear", "--domain", "state=[-1,1]; action=[-1,1]"]


def kmdp(*arguments):
    found = CliRunner().invoke(cli.app, ["bound", *map(str, arguments)], env={"COLUMNS": "120"})
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found.output


def test_versions_side_by_side(tmp_path):
    figure = tmp_path / "new" / "bound.png"
    out = kmdp("theorem1", *LINEAR, *PLAIN, *NORMS, "--plot", figure)
    for word in ("paper", "repaired", "improved", "martingale", "ln(bound)", "first useful T"):
        assert word in out
    assert "T^0.5" in out
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_one_version_and_options():
    words = [*PLAIN, *NORMS, "--gain-reward", 9, "--gain-transition", 9, "--diameter", 2]
    out = kmdp("theorem1", *words, "--version", "paper", "--anytime", "--planner", "approximate")
    assert "repaired" not in out
    assert "planning" in out
    assert "failure" in kmdp("theorem2", *words)


def test_special_cases():
    out = kmdp("tabular", "--states", 3, "--actions", 2, "--horizon", 4, "--episodes", 100)
    assert "one-hot" in out
    sizes = ["--state-dimension", 2, "--action-dimension", 1]
    sizes += ["--state-radius", 1, "--action-radius", 1, "--diameter", 2]
    assert "Corollary 1" in kmdp("corollary1", *sizes, *PLAIN, *NORMS)


def test_under_a_gp_prior():
    out = kmdp("theorem3", *LINEAR, *PLAIN, "--lipschitz", 1, "--version", "improved")
    assert "net" in out


def test_theorems_of_gaussian_noise():
    for name in ("theorem16", "theorem17", "theorem18", "theorem19"):
        out = kmdp(name, *LINEAR, *PLAIN, *NORMS)
        assert f"Theorem {name[7:]}" in out
        assert "first useful T" in out


def test_words_of_an_environment():
    env = make("rkhs", horizon=3)
    words = environment_arguments(env)
    assert words["horizon"] == 3
    assert words["norm_reward"] == env.problem.norm_reward
    assert words["lipschitz"] == env.problem.lipschitz
    assert words["diameter"] == pytest.approx(2.0)
    gains = ("--gain-reward", 9, "--gain-transition", 9)
    assert "improved" in kmdp("theorem1", "--env", "rkhs", "--episodes", 1000, *gains)


def test_domains():
    found = parse_domain("state=[-1,1]; action=[0, 2.5]^2")
    assert found.factors == (("state", Box([-1.0], [1.0])), ("action", Box([0, 0], [2.5, 2.5])))
    found = parse_domain("state={4};action={2}")
    assert dict(found.factors)["action"] == FiniteSet.range(2)
    for text in ("state=[0,1]", "state=[0,one]; action=[0,1]", "[0,1]", "state={x}; action={2}"):
        with pytest.raises(ArgumentError, match="domain: expected"):
            parse_domain(text)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["theorem5", *PLAIN], "theorem: expected one of"),
        (["theorem1", *PLAIN, *NORMS], "gain_reward: expected a gain"),
        (["theorem1", *PLAIN, *LINEAR], "--norm-reward is needed"),
        (["theorem1", *PLAIN, *NORMS, *LINEAR, "--delta", "1"], "delta: expected a probability"),
        (["theorem1", *PLAIN, *NORMS, *LINEAR, "--version", "best"], "version: expected"),
        (["theorem1", "--env", "rhks"], "did you mean 'rkhs'"),
        (
            ["theorem3", *PLAIN, "--kernel", "matern(1.5)", "--domain", "state=[0,1];action=[0,1]"],
            "nu greater than 2",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(words, message, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["kmdp", "bound", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    err = capsys.readouterr().err
    assert end.value.code == 2
    assert message in err
    assert err.count("\n") == 1
