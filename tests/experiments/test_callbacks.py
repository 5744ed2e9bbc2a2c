"""``learn(callback=...)``: the moments, the callbacks that are there, and bad ones."""

import csv

import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.callbacks import (
    Callback,
    Checkpoint,
    CSVLog,
    Evaluate,
    StopAtReturn,
    TensorBoardLog,
)


class Notes(Callback):
    """Writes down every moment."""

    def __init__(self, last=None):
        self.moments, self.last = [], last

    def on_start(self, agent):
        self.moments.append(("start", agent.episode))

    def on_episode_end(self, agent, row):
        self.moments.append(("end", row["episode"]))
        return row["episode"] != self.last

    def on_new_best(self, agent, evaluation):
        self.moments.append(("best", evaluation.episode))

    def on_stop(self, agent):
        self.moments.append(("stop", agent.episode))


def agent(kind=km.PSRL, **words):
    return kind("riverswim", seed=0, **words)


def test_the_moments():
    notes = Notes(last=3)
    result = agent().learn(5, callback=[notes, Evaluate(every=2, episodes=2)], progress=False)
    expected = [("start", 0), ("end", 1), ("end", 2), ("best", 2), ("end", 3), ("stop", 3)]
    assert notes.moments == expected
    assert len(result.episodes) == 3


def test_callbacks_change_no_number():
    watched, alone = agent(), agent()
    watched.learn(4, callback=Evaluate(episodes=2), progress=False)
    alone.learn(4, progress=False)
    for mine, other in zip(watched.history, alone.history, strict=True):
        np.testing.assert_array_equal(mine.states, other.states)


def test_a_function_stops():
    result = agent(km.Random).learn(
        9, callback=lambda agent, row: row["episode"] < 2, progress=False
    )
    assert len(result.episodes) == 2


def test_all_are_asked_though_one_stops():
    first, second = Notes(last=1), Notes()
    agent(km.Random).learn(9, callback=(first, second), progress=False)
    assert first.moments == second.moments


def test_stop_is_said_after_an_error():
    notes = Notes()

    def fails(agent, row):
        raise RuntimeError("the disk")

    with pytest.raises(RuntimeError, match="the disk"):
        agent(km.Random).learn(3, callback=[notes, fails], progress=False)
    assert notes.moments[-1] == ("stop", 1)


def test_stop_at_a_mean_return():
    returns = agent(km.Random).learn(6, progress=False).episodes["return"]
    means = (returns[1:] + returns[:-1]) / 2
    stop = StopAtReturn(means[2], episodes=2)
    first = 2 + int(np.argmax(means >= means[2]))
    assert len(agent(km.Random).learn(6, callback=stop, progress=False).episodes) == first


def test_checkpoints_go_on(tmp_path):
    trained = agent()
    trained.learn(5, callback=Checkpoint(tmp_path / "new", every=2), progress=False)
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert names == ["agent-0002.kmdp", "agent-0004.kmdp", "agent-0005.kmdp"]
    loaded = km.load(tmp_path / "new" / "agent-0004.kmdp")
    loaded.learn(1, progress=False)
    np.testing.assert_array_equal(loaded.history[-1].states, trained.history[-1].states)


def test_the_best_is_kept(tmp_path):
    evaluate = Evaluate(every=2, episodes=3, best_path=tmp_path / "best.kmdp")
    trained = agent()
    trained.learn(6, callback=evaluate, progress=False)
    means = [each.mean for each in evaluate.evaluations]
    assert trained.best.mean == max(means)
    assert trained.follows_best
    assert km.load(tmp_path / "best.kmdp").episode == trained.best.episode


def test_a_table_of_the_numbers(tmp_path):
    path = tmp_path / "new" / "episodes.csv"
    agent(km.Random).learn(1, callback=CSVLog(path), progress=False)  # an older file is replaced
    result = agent().learn(3, callback=CSVLog(path), progress=False)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["return"]) for row in rows] == result.episodes["return"].tolist()
    log = CSVLog(path)
    log.on_episode_end(None, {"episode": 1, "return": 2.0})
    log.on_episode_end(None, {"episode": 2, "return": 3.0, "gain": 1.0})
    assert path.read_text().split() == ["episode,return,gain", "1,2.0,nan", "2,3.0,1.0"]


def test_event_files(tmp_path):
    pytest.importorskip("tensorboardX")
    callback = [TensorBoardLog(tmp_path / "events"), Evaluate(episodes=2)]
    agent(km.Random).learn(2, callback=callback, progress=False)
    (path,) = (tmp_path / "events").iterdir()
    assert b"best_evaluation" in path.read_bytes()


@pytest.mark.parametrize(
    ("callback", "said"),
    [
        (3, "callback: expected a Callback, a function of"),
        (Checkpoint, "callback: expected a Callback"),
        ([print, "stop"], "got 'stop'"),
    ],
)
def test_what_is_no_callback(callback, said):
    trained = agent(km.Random)
    with pytest.raises(ArgumentError, match=said):
        trained.learn(2, callback=callback, progress=False)
    assert trained.episode == 0


@pytest.mark.parametrize("words", [{"every": 0}, {"episodes": 0}])
def test_bad_numbers(words):
    with pytest.raises(ArgumentError, match="expected a whole number of at least 1"):
        Evaluate(**words)
