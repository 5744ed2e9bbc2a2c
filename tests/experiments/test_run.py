"""Runs on disk and the command line: they stop, go on, and say what is wrong."""

import csv
import subprocess
import sys
import tomllib
import types

import numpy as np
import pytest
from typer.testing import CliRunner

import kernelmdp as km
import kmdp as cli
from kernelmdp.errors import ArgumentError, CheckpointError, RecoveryWarning
from kernelmdp.experiments import RunConfig, progress, read_config, run
from kernelmdp.learners import FixedKernels
from kernelmdp.report import draw_regret, read_columns, slope

EPISODES = 5
CONFIG = RunConfig("rkhs", "greedy", 1, {"horizon": 3}, {"confidence.delta": 0.2})
DESIGN = (
    "episode,return,value,optimal_value,optimal_value_error,regret,cumulative_regret,"
    "gain_reward,gain_transition,covered_reward,covered_transition,"
    "width_reward,width_transition,planned_value,planning_error,plan_seconds,update_seconds"
)


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
def whole(tmp_path_factory):
    """The folder of a run that was never stopped."""
    place = tmp_path_factory.mktemp("runs") / "whole"
    run(CONFIG, place, episodes=EPISODES)
    return place


def stopping(after):
    """Watch a run and stop it as Ctrl-C does, when that many rows have been written."""

    def track(rows, total, agent):
        for number, row in enumerate(rows):
            if number == after:
                raise KeyboardInterrupt
            yield row

    return track


def assert_same(one, other):
    """All columns but the times, in all bits."""
    first, second = read_columns(one), read_columns(other)
    assert tuple(first) == tuple(second)
    for name in first:
        if not name.endswith("seconds"):
            np.testing.assert_array_equal(first[name], second[name], err_msg=name)


def test_a_folder(whole):
    assert sorted(path.name for path in whole.iterdir()) == [
        ".lock",
        "checkpoint",
        "config.toml",
        "episodes.csv",
    ]
    lines = (whole / "episodes.csv").read_text().splitlines()
    assert lines[0] == DESIGN
    assert len(lines) == 1 + EPISODES
    columns = read_columns(whole)
    np.testing.assert_array_equal(columns["episode"], 1 + np.arange(EPISODES))
    np.testing.assert_allclose(columns["cumulative_regret"], np.cumsum(columns["regret"]))
    assert "beta_reward" not in columns  # greedy has no sets
    config = tomllib.loads((whole / "config.toml").read_text())
    assert config["run"]["env"] == "rkhs"
    assert config["problem"]["horizon"] == 3
    assert config["theory"]["bound"] == "not covered: no theorem is about this agent"
    assert config["versions"]["kernelmdp"] == km.__version__
    assert read_config(whole) == CONFIG
    for path in (whole, whole / "checkpoint"):
        assert km.load(path, task=CONFIG.system()).episode == EPISODES


def test_running_again_goes_on(whole, tmp_path):
    run(CONFIG, tmp_path / "run", episodes=2)
    again = run(CONFIG, tmp_path / "run", episodes=EPISODES)
    assert len(again.episodes) == EPISODES
    assert_same(tmp_path / "run", whole)
    before = (tmp_path / "run" / "episodes.csv").read_bytes()
    assert len(run(CONFIG, tmp_path / "run", episodes=2).episodes) == EPISODES
    assert (tmp_path / "run" / "episodes.csv").read_bytes() == before


def test_episodes_of_the_checkpoint_are_not_learned_again(whole, tmp_path, monkeypatch):
    run(CONFIG, tmp_path / "run", episodes=EPISODES - 1)
    updates, real = [], FixedKernels.update

    def counting(self, state, episode, *, key):
        updates.append(episode)
        return real(self, state, episode, key=key)

    monkeypatch.setattr(FixedKernels, "update", counting)
    run(CONFIG, tmp_path / "run", episodes=EPISODES)
    assert len(updates) == 1
    assert_same(tmp_path / "run", whole)
    updates.clear()
    assert km.load(whole / "checkpoint", task=CONFIG.system()).episode == EPISODES
    assert not updates


@pytest.mark.parametrize("after", [0, 3])
def test_an_interrupted_run(whole, tmp_path, after):
    """Every row that was seen is on disk, with its data."""
    with pytest.raises(KeyboardInterrupt):
        run(CONFIG, tmp_path / "run", episodes=EPISODES, track=stopping(after))
    assert len(read_columns(tmp_path / "run")["episode"]) >= after + 1
    run(CONFIG, tmp_path / "run", episodes=EPISODES)
    assert_same(tmp_path / "run", whole)


@pytest.mark.parametrize("damage", ["cut", "old checkpoint", "no checkpoint"])
def test_a_crash(whole, tmp_path, damage):
    """What is on disk after a crash: half a row, or a checkpoint older than the rows."""
    place = tmp_path / "run"
    run(CONFIG, place, episodes=2)
    older = (place / "checkpoint").read_bytes()
    run(CONFIG, place, episodes=4)
    if damage == "cut":
        text = (place / "episodes.csv").read_text()
        last = text.splitlines()[-1]
        (place / "episodes.csv").write_text(text[: text.rindex(last) + len(last) // 2])
    elif damage == "old checkpoint":
        (place / "checkpoint").write_bytes(older)
    else:
        (place / "checkpoint").unlink()
    with pytest.warns(RecoveryWarning, match="the run continues after episode"):
        run(CONFIG, place, episodes=EPISODES)
    assert_same(place, whole)


def test_checkpoints_are_written_on_the_way(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["kernelmdp.experiments.run_folder"], "CHECKPOINT_SECONDS", 0.0)
    seen = []

    def track(rows, total, agent):
        for row in rows:
            yield row
            seen.append(km.load(tmp_path / "run" / "checkpoint", task=agent.task).episode)

    run(CONFIG, tmp_path / "run", episodes=2, track=track)
    assert seen == [1, 2]


def test_other_runs_and_other_folders_are_refused(whole, tmp_path):
    before = {path.name: path.read_bytes() for path in whole.iterdir()}
    for other in (
        RunConfig("rkhs", "greedy", 2, {"horizon": 3}, CONFIG.settings),
        RunConfig("rkhs", "random", 1, {"horizon": 3}, CONFIG.settings),
        RunConfig("rkhs", "greedy", 1, {"horizon": 3}),
    ):
        with pytest.raises(ArgumentError, match="out: expected a folder of the same run"):
            run(other, whole, episodes=EPISODES + 1)
    assert {path.name: path.read_bytes() for path in whole.iterdir()} == before
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "letter.txt").write_text("hello")
    for place in (tmp_path / "letters", tmp_path / "letters" / "letter.txt"):
        with pytest.raises(ArgumentError, match="out: expected an empty or new folder"):
            run(CONFIG, place, episodes=1)
    assert [path.name for path in (tmp_path / "letters").iterdir()] == ["letter.txt"]
    with pytest.raises(ArgumentError, match="folder of a run, with config"):
        read_config(tmp_path / "letters")


def test_a_checkpoint_of_another_run(whole, tmp_path):
    run(CONFIG, tmp_path / "run", episodes=1)
    tiny = RunConfig("rkhs", "random", 1, {"horizon": 3})
    run(tiny, tmp_path / "other", episodes=1)
    (tmp_path / "run" / "checkpoint").write_bytes((tmp_path / "other" / "checkpoint").read_bytes())
    with pytest.raises(CheckpointError, match="holds random with seed 1, not this run"):
        run(CONFIG, tmp_path / "run", episodes=2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"agent": "genius"}, "agent: expected one of 'greedy', 'random', 'frugal', 'gp-ucrl'"),
        ({"settings": {"colour": "red"}}, "set: expected settings of psrl: reward"),
        ({"settings": {"reward": lambda z: z[:, 0]}}, "set: expected text and numbers for reward"),
    ],
)
def test_configurations_that_are_none(words, message):
    with pytest.raises(ArgumentError, match=message):
        RunConfig(**({"env": "rkhs"} | words))


def test_a_run_knows_itself_again_from_its_file():
    assert RunConfig("rkhs", env_options={"a": (1, 2)}).env_options == {"a": [1, 2]}


def test_an_instance_of_its_own():
    """The instance has the seed of the run unless it is given another."""
    assert CONFIG.system().spec["seed"] == 1
    other = RunConfig("rkhs", seed=1, env_options={"seed": 0, "horizon": 3})
    assert other.system().spec["seed"] == 0


# Figures.


def test_slope_of_a_power_law():
    episodes = np.arange(1.0, 101.0)
    for power in (0.5, 1.0):
        assert slope(episodes, 3 * episodes**power) == pytest.approx(power)
    late = np.where(episodes <= 50, episodes, 50 * (episodes / 50) ** 0.25)
    assert slope(episodes, late) == pytest.approx(0.25)  # of the last half
    assert np.isnan(slope(episodes, 0 * episodes))


def test_figure(whole, tmp_path):
    draw_regret([whole], tmp_path / "new" / "regret.png")
    assert (tmp_path / "new" / "regret.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ArgumentError, match="folder of a run, with episodes"):
        draw_regret([tmp_path], tmp_path / "regret.png")


# The command line.


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


def test_agents_are_listed(kmdp):
    code, out, _ = kmdp("agents")
    assert code == 0
    assert all(name in out for name in km.agents.AGENTS)


def test_environments_are_listed(monkeypatch):
    """Solving all of them takes long; one is enough to see a row."""
    monkeypatch.setattr(km.envs, "names", lambda: ("rkhs",))
    monkeypatch.setattr(km.envs, "make", lambda name: CONFIG.system().environment)
    found = CliRunner().invoke(cli.app, ["envs"])
    assert found.exit_code == 0
    assert "rkhs" in found.output
    assert "optimal value" in found.output


def test_run(kmdp, whole, tmp_path):
    words = ("--agent", "greedy", "--seed", 1, "--set", "env.horizon=3")
    words += ("--set", "confidence.delta=0.2", "--out", tmp_path / "run")
    code, out, err = kmdp("run", "rkhs", "--episodes", EPISODES, *words)
    assert code == 0, err
    assert "greedy on rkhs" in out
    assert "cumulative regret" in out
    assert "episode 5: return" in err
    assert (tmp_path / "run" / "figures" / "regret.png").read_bytes().startswith(b"\x89PNG")
    assert_same(tmp_path / "run", whole)
    code, _, err = kmdp("run", "rkhs", "--episodes", EPISODES + 1, *words)
    assert code == 0, err
    with (tmp_path / "run" / "episodes.csv").open() as file:
        assert len(list(csv.DictReader(file))) == EPISODES + 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "rhks"), "did you mean 'rkhs'?"),
        (("run", "Nonsense-v0"), "expected an environment that Gymnasium can make"),
        (("run", "rkhs", "--agent", "genius"), "agent: expected one of 'greedy'"),
        (("run", "rkhs", "--set", "colour=red"), "set: expected settings of frugal: reward"),
        (("run", "rkhs", "--set", "reward"), "expected NAME=VALUE, got reward"),
        (("run", "rkhs", "--set", "env.colour=red"), "options: expected for rkhs"),
        (("run", "rkhs", "--set", "env.horizon=long"), "horizon: expected a whole number"),
        (("run", "rkhs", "--set", "confidence.colour=1"), "confidence: expected changes to"),
        (("run", "rkhs", "--seed", "x"), "--seed"),
        (("run", "rkhs", "--episodes", "0"), "--episodes"),
        (("run", "rkhs", "--colour", "red"), "--colour"),
        (("paint",), "paint"),
    ],
    ids=lambda given: " ".join(given[1:]) if isinstance(given, tuple) else "",
)
def test_bad_input_is_one_sentence_and_code_2(unchecked, kmdp, tmp_path, arguments, message):
    place = ("--out", tmp_path / "run") if arguments[0] == "run" else ()
    code, out, err = kmdp(*arguments, *place)
    assert code == 2
    assert err.startswith("kmdp: ")
    assert message in err
    assert "Traceback" not in out + err
    assert err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_stopping_says_how_to_go_on(kmdp, monkeypatch, tmp_path):
    monkeypatch.setattr(cli.run, "_track", stopping(1))
    words = ("--agent", "greedy", "--seed", 1, "--set", "env.horizon=3", "--out", tmp_path / "run")
    code, _, err = kmdp("run", "rkhs", *words)
    assert code == 130
    assert err == "kmdp: stopped; the same command continues from here\n"
    assert len(read_columns(tmp_path / "run")["episode"]) >= 2


def test_the_installed_command(tmp_path):
    command = [sys.executable, "-m", "kmdp", "run", "rhks", "--out", str(tmp_path / "run")]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    assert "did you mean 'rkhs'?" in found.stderr


# Progress.


def test_time_left_does_not_count_compilation(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    compiled = types.SimpleNamespace(seconds=0.0, tracing_seconds=0.0, current_seconds=0.0)
    monkeypatch.setattr(progress, "COMPILATIONS", compiled)
    pace = progress.EpisodePace(10)
    for seconds, compiling in ((30, 29), (20, 18), (2, 0), (22, 20)):
        clock[0] += seconds
        compiled.seconds += compiling
        pace.end_episode()
    assert pace.seconds_left == 6 * 2.0


def test_the_progress_line_says_what_happens(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    compiled = types.SimpleNamespace(seconds=0.0, tracing_seconds=0.0, current_seconds=0.0)
    monkeypatch.setattr(progress, "COMPILATIONS", compiled)
    column = progress.ActivityColumn(lambda: "planning", progress.EpisodePace(10))
    bar = progress.Progress(disable=True)
    bar.add_task("", total=10, completed=3, numbers="return 2")
    (task,) = bar.tasks
    assert column.render(task).plain == "return 2"
    clock[0] = 5.0
    assert column.render(task).plain == "episode 4: planning 5 s"
    compiled.current_seconds = 4.0
    assert column.render(task).plain == "episode 4: compiling 4 s"
