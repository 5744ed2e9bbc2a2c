"""Studies: their files, their folders, the processes that play them."""

import contextlib
import io
import math
import os
import pathlib
import signal
import sys
import threading
import time
import tomllib

import numpy as np
import pytest
from rich.console import Console

import kernelmdp as km
import kmdp as cli
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments import RunConfig
from kernelmdp.experiments.csv_follower import CSVFollower
from kernelmdp.experiments.ray_backend import FILES, play_remotely, read_files, write_files
from kernelmdp.experiments.run import is_finished
from kernelmdp.experiments.study_file import read_plan
from kernelmdp.experiments.study_manifest import git_state, read_manifest
from kernelmdp.experiments.study_progress import StudyProgress, duration
from kernelmdp.experiments.tensorboard import TensorBoardWriter
from kernelmdp.experiments.trial_worker import TrialResult, play_trial, single_core_environment
from tests.columns import COLUMNS

FILE = """
name = "small"
episodes = 200
seeds = [0, 1]

[[environments]]
name = "riverswim"
options = { horizon = 5 }

[[agents]]
name = "random"
"""


@pytest.fixture
def file(tmp_path):
    """Write a study's file, with some of its text replaced."""

    def write(*replaced, name="study.toml"):
        text = FILE
        for old, new in replaced:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A study whose worker was killed in the middle."""
    home = tmp_path_factory.mktemp("studies")
    (home / "study.toml").write_text(FILE)
    killed = []

    def kill():
        while not killed:
            for journal in home.glob("small/trials/*/journal"):
                if journal.stat().st_size:
                    killed.extend(_workers())
                    os.kill(killed[0], signal.SIGKILL)
                    return
            time.sleep(0.001)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        found = km.study(home / "study.toml", out=home / "small")
    killer.join(1)
    assert len(killed) == 1
    assert "the run continues after episode" in said.getvalue()
    return found


def _workers():
    """Worker processes of this one."""
    found = []
    for path in pathlib.Path("/proc/self/task").glob("*/children"):
        for child in path.read_text().split():
            if b"popen_loky" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(int(child))
    return found


def content(place):
    """Rows without their times, and the agent."""
    lines = (place / "episodes.csv").read_text().splitlines()
    kept = [i for i, name in enumerate(lines[0].split(",")) if not name.endswith("seconds")]
    return [[line.split(",")[i] for i in kept] for line in lines], (
        place / "checkpoint"
    ).read_bytes()


# The file.


def test_every_combination_is_a_trial(file):
    grid = 'name = "rkhs"\ngrid = { horizon = [3, 5] }'
    agents = 'name = "psrl"\nset = { reward = "known", confidence.delta = 0.2 }\n'
    agents += 'grid = { planner = ["grid", "bonus"] }\n[[agents]]\nname = "random"'
    old = 'name = "riverswim"\noptions = { horizon = 5 }'
    plan = read_plan(file((old, grid), ('name = "random"', agents)))
    assert len(plan.trials) == len({trial.name for trial in plan.trials}) == 2 * 3 * 2
    words = {"reward": "known", "confidence.delta": 0.2, "planner": "bonus"}
    assert RunConfig("rkhs", "psrl", 1, {"horizon": 5}, words) in [t.config for t in plan.trials]
    assert plan.seeds == (0, 1)
    assert all(set(trial.name) <= set(map(chr, range(33, 127))) for trial in plan.trials)
    assert plan.trials[0].name.startswith("rkhs-psrl-seed0-horizon=3-reward=known")


def test_a_list_may_be_a_value():
    words = tomllib.loads(FILE) | {
        "agents": [{"name": "gp-ucrl", "set": {"reward_bounds": [0, 1]}}],
        "seeds": 1,
    }
    assert read_plan(words).trials[0].config.settings == {"reward_bounds": [0, 1]}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "episodes =",
            "episode =",
            "the keys .* 'episode'; did you mean 'episodes'",
        ),
        ("options =", "option =", "environments, riverswim: .* 'option'; did you mean 'options'"),
        ('"random"', '"randm"', "'randm'; did you mean 'random'"),
        ('"riverswim"', '"riverswin"', "'riverswin'; did you mean 'riverswim'"),
        ('"riverswim"', '"Nonsense-v0"', "task: expected an environment that Gymnasium can make"),
        ("horizon = 5", "horizn = 5", "options: expected for riverswim"),
        ('"random"', '"random"\nset = { plannr = "grid" }', "'plannr'; did you mean 'planner'"),
        ('"random"', '"random"\ngrid = { planner = "grid" }', "grid: expected a list of values"),
        ('"random"', '"random"\n[[agents]]\nname = "random"', "each trial once"),
        ("[0, 1]", "[0, 0]", "seeds: expected"),
        ("[0, 1]", "0", "seeds: expected a whole number of at least 1"),
        ("episodes = 200", "episodes = 0.5", "episodes: expected a whole number"),
        ("episodes = 200", "", "episodes to be given"),
        ('name = "small"', 'name = "../small"', "name: expected a word"),
        ("[[agents]]", "[agents]", "agents: expected tables under"),
        ("episodes = 200", "episodes == 3", "a TOML file"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_files_that_are_wrong(file, tmp_path, old, new, message):
    with pytest.raises(ArgumentError, match=message):
        km.study(file((old, new)), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_file(tmp_path):
    with pytest.raises(ArgumentError, match="study: expected a file to read"):
        read_plan(tmp_path / "none.toml")


# Folders and processes.


def test_a_study(played):
    assert not played.failed
    assert [place.parent.name for place in played.trials] == ["trials", "trials"]
    assert all(is_finished(place, 200) and not is_finished(place, 201) for place in played.trials)
    manifest = read_manifest(played.folder)
    assert manifest["study"] == FILE
    assert manifest["seeds"] == [0, 1]
    assert manifest["made"]["versions"]["kernelmdp"] == km.__version__
    assert manifest["made"]["git"] == git_state()
    assert [trial["name"] for trial in manifest["trials"]] == [p.name for p in played.trials]


def test_what_is_finished_is_not_played_again(played):
    before = {path: path.stat().st_mtime_ns for path in played.folder.rglob("*")}
    again = km.study(played.folder.parent / "study.toml", out=played.folder, progress=False)
    assert again == played
    assert {path: path.stat().st_mtime_ns for path in played.folder.rglob("*")} == before


def test_a_study_may_grow_but_not_shrink(played, tmp_path, file):
    for old, new, message in (
        ("[0, 1]", "[0, 2]", "trials may be added but not taken away"),
        ("horizon = 5", "horizon = 4", "trials may be added but not taken away"),
        ("episodes = 200", "episodes = 2", "episodes: expected at least the 200"),
    ):
        with pytest.raises(ArgumentError, match=message):
            km.study(file((old, new)), out=played.folder)
    with pytest.raises(ArgumentError, match="an empty or new folder, or one of a study"):
        km.study(file(), out=played.trials[0])
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "manifest.json").write_text('{"format": ')
    with pytest.raises(ArgumentError, match=r"a manifest.json that can be read"):
        km.study(file(), out=tmp_path / "broken")


def test_played_elsewhere_and_brought_here(played, tmp_path):
    """What a worker of a cluster does: from files to files, without a disk of the driver's.

    Here it plays with this process's threads, so only the course of things is compared.
    """
    config = RunConfig("riverswim", "random", 0, {"horizon": 5})
    *messages, outcome = play_remotely("trial", config, {}, 2, None)
    assert outcome == TrialResult("trial")
    for message in messages:
        write_files(tmp_path / "trial", message)
    assert is_finished(tmp_path / "trial", 2)
    *messages, outcome = play_remotely("trial", config, read_files(tmp_path / "trial"), 4, None)
    assert not outcome.error
    assert set(messages[-1]) <= set(FILES)
    for message in messages:
        write_files(tmp_path / "trial", message)
    rows, _ = content(tmp_path / "trial")
    expected, _ = content(played.trials[0])
    found = np.array([[float(cell) for cell in row] for row in rows[1:]])
    right = np.array([[float(cell) for cell in row] for row in expected[1:5]])
    np.testing.assert_allclose(found, right, rtol=1e-9)
    with pytest.raises(ArgumentError, match="files: expected those of a run"):
        write_files(tmp_path / "trial", {"../evil": b""})


def test_a_trial_that_fails_does_not_stop_the_others(tmp_path, monkeypatch):
    """What a worker answers: our own sentence, or also where it came from."""
    wrong = RunConfig("riverswim", "random", settings={"planner": "gird"})
    outcome = play_trial("trial", wrong, tmp_path / "wrong", 2)
    assert "planner" in outcome.error
    assert not outcome.details
    monkeypatch.setattr(RunConfig, "make_agent", lambda self: 1 / 0)
    outcome = play_trial("trial", RunConfig("riverswim", "random"), tmp_path / "wrong", 2)
    assert outcome.error == "ZeroDivisionError: division by zero"
    assert "Traceback" in outcome.details


def test_workers_have_one_core(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--mine")
    assert single_core_environment()["XLA_FLAGS"].split() == [
        "--mine",
        "--xla_cpu_multi_thread_eigen=false",
    ]
    assert (
        single_core_environment()["NPROC"]
        == single_core_environment()["OPENBLAS_NUM_THREADS"]
        == "1"
    )


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


def test_the_command(kmdp, played, file):
    code, out, _ = kmdp("study", played.folder.parent / "study.toml", "--out", played.folder)
    assert code == 0
    assert "2 of 2 trials are finished" in out.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--backend", "cloud"), "backend: expected one of 'local', 'ray'"),
        (("--address", "here:1"), "--address is of a Ray cluster"),
        (("--jobs", "0"), "--jobs"),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(kmdp, file, tmp_path, arguments, message):
    code, _, err = kmdp("study", file(), "--out", tmp_path / "out", *arguments)
    assert code == 2
    assert message in err
    assert err.startswith("kmdp: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_failures_are_said_and_are_the_code(kmdp, monkeypatch, tmp_path, file):
    for details, code in (("", 2), ("Traceback", 1)):
        failed = {"trial": TrialResult("trial", "it broke", details)}
        found = km.experiments.Study(tmp_path, (tmp_path / "trial",), failed)
        monkeypatch.setattr(
            km.experiments.studies, "study", lambda *words, found=found, **more: found
        )
        ended, out, err = kmdp("study", file())
        assert ended == code
        assert out.startswith("0 of 1 trials are finished")
        assert err == "kmdp: 1 failed; trial: it broke\n"


@pytest.mark.parametrize(
    ("library", "words", "message"),
    [
        ("ray", {"backend": "ray"}, r"pip install 'kernelmdp\[ray\]'"),
        ("tensorboardX", {"tensorboard": True}, r"pip install 'kernelmdp\[tensorboard\]'"),
    ],
)
def test_libraries_that_are_not_there(monkeypatch, tmp_path, file, library, words, message):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ArgumentError, match=message):
        km.study(file(), out=tmp_path / "out", progress=False, **words)


# Progress.


def test_a_follower(tmp_path):
    follower = CSVFollower(tmp_path)
    assert follower.read_new() == []
    row = ",".join(["1", *["2.5"] * (len(COLUMNS) - 1)]) + "\r\n"
    path = tmp_path / "episodes.csv"
    path.write_text(",".join(COLUMNS) + "\r\n" + row + row[:9])
    assert [found["regret"] for found in follower.read_new()] == [2.5]
    assert follower.read_new() == []
    with path.open("a") as more:
        more.write(row[9:])
    assert len(follower.read_new()) == 1
    assert follower.count == 2
    path.write_text(",".join(COLUMNS) + "\r\n" + row)
    assert len(follower.read_new()) == 1
    assert follower.count == 1


def test_the_live_table(played, file):
    """Trials under way with episode and regret, the whole below; names are not markup."""
    progress = StudyProgress(
        read_plan(file(("episodes = 200", "episodes = 400"))), played.folder / "trials", []
    )
    for trial in progress.trials.values():
        trial.timed_from = (progress.started_at - 10.0, 1)
    console = Console(width=120, file=open(os.devnull, "w"), record=True)
    console.print(progress.table())
    text = console.export_text()
    assert "200/400" in text
    assert "0 of 2 trials, 400 of 800 episodes" in text
    assert all(name in text for name in progress.trials)


def test_plain_lines(played, file, capsys):
    with StudyProgress(read_plan(file()), played.folder / "trials", []) as progress:
        first, second = progress.trials
        progress.end_trial(TrialResult(first, notes=("it had been killed",)))
        progress.end_trial(TrialResult(second, "it broke", "Traceback"))
        progress.refresh()
    begun, *said = capsys.readouterr().err.splitlines()
    assert begun == "0 of 2 trials are finished, and 2 of the others have begun"
    assert said[0] == "it had been killed"
    assert said[1].startswith(f"{first} finished, regret ")
    assert said[2:] == [f"{second} failed: it broke (2 of 2)", "Traceback"]


def test_an_interrupted_study_says_what_is_not_finished(played, file, capsys):
    plan = read_plan(file())
    with pytest.raises(KeyboardInterrupt), StudyProgress(plan, played.folder / "trials", []):
        raise KeyboardInterrupt
    with StudyProgress(plan, played.folder / "none", [plan.trials[0].name]):
        pass
    assert capsys.readouterr().err.splitlines() == [
        "0 of 2 trials are finished, and 2 of the others have begun",
        "2 of 2 trials are not finished",
        "1 of 2 trials are finished, and 0 of the others have begun",
    ]


def test_time_left_of_a_study(played, file):
    """It is that of the trials under way, which are played at the same time."""
    progress = StudyProgress(
        read_plan(file(("episodes = 200", "episodes = 400"))), played.folder / "trials", []
    )
    assert progress.summary() == "0 of 2 trials, 400 of 800 episodes"
    for trial in progress.trials.values():
        assert math.isnan(trial.seconds_left(400))  # nothing but compilation so far
        trial.timed_from = (time.monotonic() - 150.0, 50)  # a second for each episode
    assert progress.summary().endswith("about 3 min left")


def test_durations():
    assert [duration(x) for x in (5.2, 240, float("nan"))] == ["5 s", "4 min", ""]


def test_event_files(played):
    """What TensorBoard reads: every finite number of every episode, once."""
    loader = pytest.importorskip("tensorboardX.event_file_writer")
    assert loader
    for _ in range(2):  # written anew, not twice
        scalars = TensorBoardWriter(played.trials[0])
        scalars.update()
        scalars.close()
    (path,) = (played.trials[0] / "tensorboard").iterdir()
    assert _scalars(path, "episode") == []
    rows = CSVFollower(played.trials[0]).read_new()
    assert _scalars(path, "return") == [
        (step + 1, np.float32(row["return"])) for step, row in enumerate(rows)
    ]


def _scalars(path, tag):
    """Of a file of records: length (8 bytes), checksum (4), event, checksum (4)."""
    from tensorboardX.proto.event_pb2 import Event

    data, found = path.read_bytes(), []
    while data:
        length = int.from_bytes(data[:8], "little")
        event = Event.FromString(data[12 : 12 + length])
        found += [
            (event.step, np.float32(value.simple_value))
            for value in event.summary.value
            if value.tag == tag
        ]
        data = data[16 + length :]
    return found
