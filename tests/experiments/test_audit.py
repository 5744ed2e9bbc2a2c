"""Stored runs checked against the theory: a valid one passes, each broken one is found."""

import contextlib
import math
import shutil
import sys
import tomllib

import numpy as np
import pytest
from typer.testing import CliRunner

import kernelmdp as km
import kmdp as cli
from kernelmdp import archive
from kernelmdp.errors import ArgumentError, CheckpointError
from kernelmdp.experiments import RunConfig, audit, run
from kernelmdp.numerics.modules import replace_fields
from kernelmdp.report import read_bound, read_columns
from tests.columns import COLUMNS

EPISODES = 5
CONFIG = RunConfig("rkhs", "gp-ucrl", 1, {"horizon": 3}, {"confidence": "valid"})


@pytest.fixture(scope="module", autouse=True)
def _made_once():
    """The truth is solved once, however often it is asked for."""
    known, real = {}, km.envs.make

    def make(name, **options):
        key = (name, *sorted(options.items()))
        if key not in known:
            known[key] = real(name, **options)
        return known[key]

    patch = pytest.MonkeyPatch()
    patch.setattr(sys.modules["kernelmdp.experiments.systems"], "make", make)
    yield
    patch.undo()


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs") / "valid"
    run(CONFIG, place, episodes=EPISODES)
    return place


@pytest.fixture
def copied(valid, tmp_path):
    """The valid run, to be spoilt."""
    return shutil.copytree(valid, tmp_path / "run")


def rewrite(folder, **columns):
    """Put other numbers into the stored table."""
    kept = read_columns(folder) | columns
    rows = [",".join(str(kept[name][i]) for name in COLUMNS) for i in range(EPISODES)]
    (folder / "episodes.csv").write_text("\n".join([",".join(COLUMNS), *rows]) + "\n")


def failures(folder):
    return [check.name for check in audit(folder).failed]


def mentions(found, word):
    return any(word in name for name in found)


@contextlib.contextmanager
def play_with(monkeypatch, factor, *, stored):
    """A run whose sets are ``factor`` times as wide as they should be, ``stored`` says β how."""
    real = km.GPUCRL.plausible

    def narrow(self):
        sets, _ = real(self)
        betas = {n: factor * getattr(sets, n) for n in ("beta_reward", "beta_transition")}
        sets = replace_fields(sets, plausible=replace_fields(sets.plausible, **betas))
        return sets, sets.family(self.problem.mdp(sets.plausible))

    def diagnostics(self):
        names = ("beta_reward", "beta_transition")
        return {n: stored / factor * float(getattr(self.sets, n)) for n in names}

    with monkeypatch.context() as patch:
        patch.setattr(km.GPUCRL, "plausible", narrow)
        patch.setattr(km.GPUCRL, "diagnostics", diagnostics)
        yield


def test_a_valid_run_passes(valid):
    found = audit(valid)
    assert found.failed == ()
    names = [check.name for check in found.checks if check.holds]
    for letter in "abcefghijlm":
        assert any(name.startswith(f"({letter})") for name in names), letter
    assert mentions([check.name for check in found.not_checked], "(k)")
    regret = read_columns(valid)["cumulative_regret"][-1]
    assert found.regret == pytest.approx(regret)
    first, second = found.certificates
    assert regret <= second.total <= first.total
    assert first.probability == pytest.approx(0.9)
    assert second.probability == pytest.approx(1 - 0.2 / 3)
    columns = read_columns(valid)
    slope = CONFIG.make_agent().problem.lipschitz
    widths = 2 * columns["width_reward"] + 2 * slope * columns["width_transition"]
    assert first.total == pytest.approx(widths.sum() + first.parts["martingale"])
    assert mentions(first.assumes, "L = ")


def test_the_theorem_beside_a_run(valid):
    """Its curve is in the folder, its name in the configuration, and the regret is below it."""
    name = "Theorem 16, for all T at once with probability 0.9"
    assert tomllib.loads((valid / "config.toml").read_text())["theory"]["bound"] == name
    numbers, values = read_bound(valid)
    assert numbers.tolist() == [1, 2, 3, 5]
    regret = read_columns(valid)["cumulative_regret"]
    assert (regret[numbers.astype(int) - 1] < values).all()
    (check,) = (own for own in audit(valid).checks if "theorem" in own.name)
    assert check.holds
    assert check.note.startswith(name)


def test_narrow_sets_that_are_labelled_valid(tmp_path, monkeypatch):
    """β is 0.05 of what it should be: it is not what the data gives, and misses the truth."""
    with play_with(monkeypatch, 0.05, stored=0.05):
        run(CONFIG, tmp_path / "run", episodes=EPISODES)
    found = audit(tmp_path / "run")
    names = [check.name for check in found.failed]
    assert mentions(names, "radius β of the reward's set")
    assert mentions(names, "(j) coverage: reward")
    wrong = next(check for check in found.failed if "radius β of the reward" in check.name)
    assert "0.05 times" in wrong.note


def test_a_label_that_the_settings_do_not_earn(copied):
    text = (copied / "config.toml").read_text()
    assert "Theorem 1 (bounded norms)" in text
    (copied / "config.toml").write_text(text.replace("Theorem 1 (bounded norms)", "Theorem 5"))
    assert failures(copied) == ["label: what theory says of the run"]


def test_half_of_every_deviation(tmp_path, monkeypatch):
    """Deviations enter sets only as βσ: sets half as wide, under the β that is right."""
    with play_with(monkeypatch, 0.5, stored=1.0):
        run(CONFIG, tmp_path / "run", episodes=EPISODES)
    found = audit(tmp_path / "run")
    names = [check.name for check in found.failed]
    assert not mentions(names, "radius β")
    assert mentions(names, "(e) stale deviations, replayed: reward")
    assert mentions(names, "(e) stale deviations, from a dense factor, transition")
    dense = next(check for check in found.failed if "dense factor, reward" in check.name)
    assert "stored is 0.5 times" in dense.note


@pytest.mark.parametrize("what", ["data", "rows"])
def test_another_order_of_episodes(copied, what):
    order = np.array([0, 3, 1, 4, 2])
    if what == "data":
        description, arrays, _ = archive.read(copied / "checkpoint")
        for name in ("format", "version"):
            description.pop(name)
        shuffled = {name: array[order] for name, array in arrays.items()}
        archive.write(copied / "checkpoint", description, shuffled)
    else:
        columns = read_columns(copied)
        kept = {name: columns[name][order] for name in COLUMNS if name != "episode"}
        rewrite(copied, **kept)
    found = failures(copied)
    assert mentions(found, "(a) chain rule of the information gain, reward")
    assert mentions(found, "(a) chain rule, replayed")
    if what == "data":
        assert mentions(found, "policy replay")
        assert mentions(found, "return is the sum of rewards")


def test_an_older_run_without_widths(valid, copied):
    """Columns that were not written cannot be checked; what follows from the data still is."""
    missing = np.full(EPISODES, math.nan)
    rewrite(copied, width_reward=missing, width_transition=missing)
    found = audit(copied)
    assert found.failed == ()
    reasons = {check.name: check.note for check in found.not_checked}
    assert reasons["(e) stale deviations, replayed: reward"] == "the run did not store it"
    assert found.certificates[0].total == pytest.approx(audit(valid).certificates[0].total)


def test_long_runs_are_sampled(valid, monkeypatch):
    module = sys.modules["kernelmdp.experiments.replay"]
    monkeypatch.setattr(module, "MAX_PLANNING_SECONDS", 0.0)
    monkeypatch.setattr(module, "SAMPLED_EPISODES", 2)
    monkeypatch.setattr(sys.modules["kernelmdp.experiments.data_lemmas"], "MAX_ROWS", 9)
    found = audit(valid)
    assert found.failed == ()
    notes = " ".join(check.note for check in found.checks)
    assert "2 of 5 episodes were planned again" in notes
    assert "first 3 episodes" in notes
    assert found.certificates[1].episode_bounds.shape == (2,)


def test_an_agent_without_sets(tmp_path):
    config = RunConfig("rkhs", "psrl", 1, {"horizon": 3})
    run(config, tmp_path / "run", episodes=3)
    found = audit(tmp_path / "run")
    assert found.failed == ()
    assert found.certificates == ()
    reasons = {check.name: check.note for check in found.not_checked}
    assert reasons["(j) coverage: reward"] == "the agent has no confidence sets"
    assert reasons["certificate (i) is above the regret"] == "the agent has no confidence sets"
    assert any(check.name.startswith("(e) block lemma") and check.holds for check in found.checks)


# The command.


@pytest.fixture
def kmdp(monkeypatch, capsys):
    """Run ``kmdp`` as the installed command does; code, output and errors."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["kmdp", *map(str, arguments)])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return call


def test_the_command(kmdp, copied):
    code, out, err = kmdp("audit", copied)
    assert code == 0, err
    assert "0 fail" in out
    assert "certificate (ii)" in out
    rewrite(copied, gain_reward=2 * read_columns(copied)["gain_reward"])
    code, out, _ = kmdp("audit", copied)
    assert code == 1
    assert "FAIL (a) chain rule" in out


def test_folders_without_data(kmdp, copied, tmp_path):
    other = RunConfig("rkhs", "random", 2, {"horizon": 3})
    for place, spoil, error, message in (
        (tmp_path / "nowhere", None, ArgumentError, "folder of a run, with config.toml"),
        (copied, "episodes.csv", ArgumentError, "a run with its data, in episodes.csv"),
        (copied, "checkpoint", ArgumentError, "a run with its data, in checkpoint"),
    ):
        if spoil is not None:
            (place / spoil).rename(tmp_path / spoil)
        with pytest.raises(error, match=message):
            audit(place)
        code, out, err = kmdp("audit", place)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err
        if spoil is not None:
            (tmp_path / spoil).rename(place / spoil)
    description, arrays, _ = archive.read(copied / "checkpoint")
    for name in ("format", "version"):
        description.pop(name)
    archive.write(copied / "checkpoint", description | {"agent": other.agent}, arrays)
    with pytest.raises(CheckpointError, match="holds random with seed 1, not this run"):
        audit(copied)


def test_all_runs_of_a_folder(kmdp, copied, tmp_path):
    """One line for each, and the code of a run that fails; what cannot be read stops nothing."""
    shutil.copytree(copied, tmp_path / "other")
    (tmp_path / "other" / "checkpoint").write_bytes(b"half of it")
    code, out, err = kmdp("audit", tmp_path)
    assert code == 0, err
    assert "run: " in out
    assert "other: not audited" in out
    assert "1 of 2 trials are audited, 0 fail" in out
    rewrite(copied, gain_reward=2 * read_columns(copied)["gain_reward"])
    code, out, _ = kmdp("audit", tmp_path)
    assert code == 1
    assert "  FAIL (a) chain rule" in out
    assert "1 of 2 trials are audited, 1 fail" in out


def test_a_folder_without_runs(kmdp, tmp_path):
    (tmp_path / "empty").mkdir()
    for folder in ("empty", "missing"):
        code, _, err = kmdp("audit", tmp_path / folder)
        assert code == 2
        assert err.startswith("kmdp: folder: expected")


def test_the_controller_of_a_stored_run(valid):
    """Best-policy identification after the fact: the sentence is that of the agent, or sharper."""
    controller = audit(valid).controller
    columns = read_columns(valid)
    assert controller.probability == pytest.approx(0.9)
    assert controller.value <= columns["optimal_value"][-1] <= controller.optimum
    assert controller.optimum <= columns["planned_value"].min() * (1 + 1e-9)
    assert f"value at least {controller.value:.4g}" in str(controller)
    printed = CliRunner().invoke(cli.app, ["audit", str(valid)], env={"COLUMNS": "400"}).output
    assert str(controller) in printed


def test_what_no_theorem_covers_is_an_estimate(tmp_path):
    run(RunConfig("rkhs", "psrl", 0, {"horizon": 3}, {}), tmp_path, episodes=2)
    controller = audit(tmp_path).controller
    assert controller.probability is None
    assert "an estimate" in str(controller)


def test_an_agent_without_beliefs_has_no_certificate(tmp_path):
    run(RunConfig("riverswim", "dirichlet-psrl", 0, {}, {}), tmp_path, episodes=2)
    assert audit(tmp_path).controller is None
