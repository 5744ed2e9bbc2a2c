"""An episode counted is on disk: kills, full disks, torn files, two processes in one folder."""

import errno
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest

import kernelmdp as km
import kmdp as cli
from kernelmdp import archive
from kernelmdp.errors import ArgumentError, CheckpointError, RecoveryWarning, StorageError
from kernelmdp.experiments import RunConfig, run
from kernelmdp.experiments.recovery import decode_array, encode_array
from kernelmdp.experiments.run_folder import lock
from tests.agents import tiny

CONFIG = RunConfig("riverswim", "random", 1, {"horizon": 5})
EPISODES = 12
FOLDER = sys.modules["kernelmdp.experiments.run_folder"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run that was never stopped."""
    place = tmp_path_factory.mktemp("runs") / "whole"
    run(CONFIG, place, episodes=EPISODES)
    return place


def content(place):
    """What must be equal byte for byte: rows without their times, and the agent."""
    lines = (place / "episodes.csv").read_bytes().splitlines()
    kept = [i for i, n in enumerate(lines[0].split(b",")) if not n.endswith(b"seconds")]
    rows = [[line.split(b",")[i] for i in kept] for line in lines]
    return rows, (place / "checkpoint").read_bytes()


def stopped(place, episodes, copy="killed"):
    """A folder as a kill leaves it after so many episodes: copied while the run is under way."""

    def track(rows, total, agent):
        for row in rows:
            yield row
            if row["episode"] == episodes:
                for path in place.iterdir():
                    target = place.parent / copy / path.name
                    target.parent.mkdir(exist_ok=True)
                    target.write_bytes(path.read_bytes())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FOLDER, "SYNC_SECONDS", 0.0)
        patch.setattr(FOLDER, "WAIT_RATIO", 0.0)  # no episode begins before the last one is on disk
        run(CONFIG, place, episodes=EPISODES, track=track)
    return place.parent / copy


def test_killed_in_earnest(whole, tmp_path):
    """kill -9 once; ``benchmarks/durability/kill.py`` does it twenty times to each agent."""
    program = (
        "import jax, time; from kernelmdp.experiments import RunConfig, run;"
        "jax.config.update('jax_disable_most_optimizations', True);"
        "slow = lambda rows, total, agent: (time.sleep(0.05) or row for row in rows);"
        f"run(RunConfig('riverswim', 'random', 1, {{'horizon': 5}}), {str(tmp_path / 'run')!r},"
        f"episodes={EPISODES}, track=slow)"
    )
    rows = tmp_path / "run" / "episodes.csv"
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    while not rows.exists() or rows.read_bytes().count(b"\n") <= 5:
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (tmp_path / "run" / "journal").stat().st_size > 0
    with pytest.warns(RecoveryWarning, match="was interrupted; the run continues after episode"):
        run(CONFIG, tmp_path / "run", episodes=EPISODES)
    assert content(tmp_path / "run") == content(whole)
    assert not (tmp_path / "run" / "journal").exists()


@pytest.mark.parametrize(
    ("name", "cut", "message"),
    [
        (
            "journal",
            1,
            "journal was cut short; episodes.csv had 7 complete rows; .* after episode 6",
        ),
        ("journal", 40, "journal was cut short"),
        ("episodes.csv", 5, "episodes.csv had 6 complete rows; the run continues after episode 7"),
        (
            "episodes.csv",
            10**6,
            "episodes.csv had 0 complete rows; the run continues after episode 7",
        ),
        ("config.toml.part", 0, "the last process was interrupted"),
    ],
)
def test_a_file_cut_short(whole, tmp_path, name, cut, message):
    place = stopped(tmp_path / "run", 7)
    path = place / name
    data = path.read_bytes() if path.exists() else b"[run"
    path.write_bytes(data[: max(0, len(data) - cut)])
    with pytest.warns(RecoveryWarning, match=message) as said:
        run(CONFIG, place, episodes=EPISODES)
    # Other libraries may warn at any time, as when an object is collected.
    own = [str(one.message) for one in said if issubclass(one.category, RecoveryWarning)]
    assert len(own) == 1
    assert "\n" not in own[0]
    assert content(place) == content(whole)


def test_killed_again_after_a_line_cut_short(whole, tmp_path):
    """What comes after such a line can be read."""
    place = stopped(tmp_path / "run", 7)
    journal = (place / "journal").read_bytes()
    (place / "journal").write_bytes(journal[:-10])
    with pytest.warns(RecoveryWarning, match="after episode 6"):
        again = stopped(place, 9, copy="again")
    with pytest.warns(RecoveryWarning, match="was interrupted; .* after episode 9"):
        run(CONFIG, again, episodes=EPISODES)
    assert content(again) == content(whole)


def test_a_journal_that_repeats_the_checkpoint(whole, tmp_path):
    """Killed between the checkpoint and the end of the journal that it makes superfluous."""
    place = stopped(tmp_path / "run", 7)
    run(CONFIG, tmp_path / "six", episodes=6)
    (place / "checkpoint").write_bytes((tmp_path / "six" / "checkpoint").read_bytes())
    with pytest.warns(RecoveryWarning, match="after episode 7"):
        run(CONFIG, place, episodes=EPISODES)
    assert content(place) == content(whole)


@pytest.mark.parametrize("group", [0.0, 1e9])
def test_rows_are_on_disk_when_they_are_seen(tmp_path, monkeypatch, group):
    synced, real = [], os.fsync

    def sync(file):
        real(file)
        synced.append(os.fstat(file).st_size)
        time.sleep(0.001)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(FOLDER, "SYNC_SECONDS", group)
    monkeypatch.setattr(
        FOLDER, "WAIT_RATIO", 1e9
    )  # every episode is played before the last is on disk
    seen = []

    def track(rows, total, agent):
        for row in rows:
            journal = (tmp_path / "run" / "journal").read_bytes().splitlines(keepends=True)
            lines = [json.loads(line)["episode"] for line in journal]
            place = lines.index(row["episode"])
            assert sum(map(len, journal[: place + 1])) <= max(synced)
            seen.append(row["episode"])
            yield row

    run(CONFIG, tmp_path / "run", episodes=4, track=track)
    assert seen == [1, 2, 3, 4]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_takes_no_more(unchecked, whole, tmp_path, monkeypatch, code):
    """Half a line is written and then none; nothing that was counted is lost."""
    real, left = FOLDER._append, [9]

    def full(file, data):
        left[0] -= 1
        if left[0] < 0:

            class Full:
                fileno = staticmethod(file.fileno)
                truncate = staticmethod(file.truncate)
                written = False

                def write(self, text):
                    if self.written:
                        raise OSError(code, os.strerror(code))
                    self.written = True
                    return file.write(text[: len(text) // 2])

            real(Full(), data)
        real(file, data)

    place = tmp_path / "run"
    monkeypatch.setattr(FOLDER, "_append", full)
    with pytest.raises(StorageError, match=f"{os.strerror(code)}.*the same command continues"):
        run(CONFIG, place, episodes=EPISODES)
    assert (place / "episodes.csv").read_bytes().endswith(b"\r\n")
    monkeypatch.setattr(FOLDER, "_append", real)
    with pytest.warns(RecoveryWarning, match="after episode 5"):
        run(CONFIG, place, episodes=EPISODES)
    assert content(place) == content(whole)


def test_a_checkpoint_that_does_not_fit_leaves_the_old_one(tmp_path, monkeypatch):
    (tmp_path / "checkpoint").write_bytes(b"old")

    def full(file):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        archive.write_atomically(tmp_path / "checkpoint", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]
    assert (tmp_path / "checkpoint").read_bytes() == b"old"


def test_a_half_written_checkpoint_is_refused(whole, tmp_path):
    place = stopped(tmp_path / "run", 7)
    data = (whole / "checkpoint").read_bytes()
    (place / "checkpoint").write_bytes(data[: len(data) // 2])
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    with pytest.raises(CheckpointError, match="not a saved agent of kernelmdp"):
        run(CONFIG, place, episodes=EPISODES)
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


def test_two_processes_in_one_folder(whole):
    before = {path.name: path.read_bytes() for path in whole.iterdir()}
    with lock(whole), pytest.raises(ArgumentError, match="that no other process is writing to"):
        run(CONFIG, whole, episodes=EPISODES + 1)
    assert {path.name: path.read_bytes() for path in whole.iterdir()} == before


def test_a_folder_that_cannot_be_made(tmp_path, monkeypatch, capsys):
    """One sentence and code 2 from the command; root may write anywhere, so nobody is asked."""

    def refuse(self, *words, **more):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(pathlib.Path, "mkdir", refuse)
    words = ["run", "riverswim", "--agent", "random", "--seed", "1"]
    words += ["--set", "env.horizon=5"]
    monkeypatch.setattr(sys, "argv", ["kmdp", *words, "--out", str(tmp_path / "run")])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"kmdp: {tmp_path / 'run'} cannot be written to (Permission denied)")
    assert said.count("\n") == 1


def test_the_same_agent_is_saved_as_the_same_bytes(tmp_path):
    """And an episode that was cut off, neither whole nor ended by the system, stays one."""
    agent = km.Random(tiny.problem(horizon=3))
    rng = np.random.default_rng(0)
    for length, ending in ((3, {}), (1, {"truncated": True}), (2, {"terminated": True})):
        states = rng.uniform(-1, 1, size=(length + 1, 2))
        actions, rewards = rng.uniform(-1, 1, size=(length, 1)), rng.normal(size=length)
        agent.tell(states, actions, rewards, states[1:], **ending)
    agent.save(tmp_path / "one")
    with zipfile.ZipFile(tmp_path / "one") as file:
        assert {part.date_time for part in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    other = km.load(tmp_path / "one", task=tiny.problem(horizon=3))
    other.save(tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    assert [len(told.rewards) for told in other.history] == [3, 1, 2]
    assert [told.terminated for told in other.history] == [False, False, True]


def test_arrays_as_text():
    array = np.array([[0.1, -0.0, 1e-310], [np.inf, np.nan, 3.0]])
    found = decode_array(json.loads(encode_array(array)))
    assert found.tobytes() == array.tobytes()
    assert found.shape == array.shape
