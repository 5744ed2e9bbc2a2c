"""Stored runs as data frames: everything that is there, nothing that is not."""

import json

import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.errors import ArgumentError
from kernelmdp.report import read_columns
from tests.report.stored import store


def test_episodes_and_trials(tmp_path):
    first = store(tmp_path / "a" / "0", words={"confidence": "valid"}, bound=5.0)
    store(tmp_path / "a" / "1", seed=1, words={"confidence": "valid"}, episodes=3)
    store(tmp_path / "deep" / "er" / "b", env="table", options={"horizon": 3})
    runs = km.read(tmp_path)
    assert runs.envs == ["line", "table [horizon=3]"]
    assert len(runs.episodes) == 6 + 3 + 6
    trials = runs.trials.set_index("run")
    assert trials["episodes"].to_dict() == {"a/0": 6, "a/1": 3, "deep/er/b": 6}
    assert trials.loc["a/0", "setting"] == "confidence=valid"
    assert trials.loc["a/0", "regret"] == first["cumulative_regret"][-1]
    assert trials.loc["a/0", "slope"] == pytest.approx(0.5)
    assert trials.loc["a/0", "coverage"] == pytest.approx(5 / 6)
    assert trials.loc["a/0", "seconds"] == pytest.approx(0.003)
    assert trials.loc["a/0", "bound_value"] == 10
    assert np.isnan(trials.loc["a/1", "bound_value"])
    rows = runs.episodes[runs.episodes["run"] == "a/0"]
    for name in first:  # to the last bit
        np.testing.assert_array_equal(rows[name].to_numpy(float), first[name], err_msg=name)
    assert set(rows["agent"]) == {"psrl"}
    assert runs.notes == ()


def test_curves_keep_every_seed(tmp_path):
    for seed in range(3):
        store(tmp_path / str(seed), seed=seed, episodes=4 + seed)
    curves = km.read(tmp_path).curves("cumulative_regret")["psrl"]
    assert curves.shape == (3, 6)
    assert np.isfinite(curves).sum(axis=1).tolist() == [4, 5, 6]
    np.testing.assert_allclose(curves[2], 3 * np.sqrt(np.arange(1, 7)))


def test_a_torn_last_line_is_left_out_and_said(tmp_path):
    store(tmp_path / "run")
    path = tmp_path / "run" / "episodes.csv"
    path.write_bytes(path.read_bytes()[:-7])
    runs = km.read(tmp_path / "run")
    assert runs.trials["episodes"].tolist() == [5]
    assert "half-written" in runs.notes[0]
    assert str(path) in runs.notes[0]


def test_runs_without_an_episode_are_counted(tmp_path):
    store(tmp_path / "a")
    store(tmp_path / "b", seed=1, episodes=0)
    store(tmp_path / "c", seed=2)
    (tmp_path / "c" / "episodes.csv").unlink()
    runs = km.read(tmp_path)
    assert runs.trials["episodes"].tolist() == [6, 0, 0]
    assert runs.notes == ("no episode yet in b, c",)


def _not_a_folder(place):
    return place / "nowhere"


def _not_a_run(place):
    (place / "notes.txt").write_text("nothing here")
    return place


def _cut_config(place):
    store(place / "run")
    (place / "run" / "config.toml").write_text('[run]\nenv = "li')
    return place


def _no_seed(place):
    store(place / "run")
    (place / "run" / "config.toml").write_text('[run]\nenv = "line"\nagent = "psrl"\n')
    return place


def _torn_in_the_middle(place):
    store(place / "run")
    lines = (place / "run" / "episodes.csv").read_text().splitlines(keepends=True)
    lines[3] = lines[3][:20] + "\n"
    (place / "run" / "episodes.csv").write_text("".join(lines))
    return place


def _words_for_numbers(place):
    store(place / "other", seed=1)
    store(place / "run")
    text = (place / "run" / "episodes.csv").read_text().replace("10.0", "ten")
    (place / "run" / "episodes.csv").write_text(text)
    return place


def _two_writers(place):
    store(place / "run")
    lines = (place / "run" / "episodes.csv").read_text().splitlines(keepends=True)
    (place / "run" / "episodes.csv").write_text("".join([*lines, lines[-1]]))
    return place


def _twice(place):
    store(place / "run")
    store(place / "copy")
    return place


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_not_a_folder, "expected a folder of runs"),
        (_not_a_run, "the folder of a run, with episodes.csv"),
        (_cut_config, "config.toml that can be read"),
        (_no_seed, "seed"),
        (_torn_in_the_middle, "19 numbers in every line"),
        (_words_for_numbers, "run/episodes.csv"),
        (_two_writers, "episodes in their order, 7 next, got 6"),
        (_twice, "the same trial in copy, run"),
    ],
)
def test_bad_input(tmp_path, make, said):
    with pytest.raises(ArgumentError) as caught:
        km.read(make(tmp_path))
    assert said in str(caught.value)


def test_a_study_says_how_many_there_are_to_be(tmp_path):
    store(tmp_path / "study" / "trials" / "a")
    store(tmp_path / "alone", seed=1)
    made = {"command": "kmdp study s.toml", "versions": {"jax": "1"}, "git": {"commit": "f00"}}
    trials = [{"name": name} for name in ("a", "b")]
    content = {"format": "kernelmdp study", "name": "s", "episodes": 9, "trials": trials}
    path = tmp_path / "study" / "manifest.json"
    path.write_text(json.dumps(content | {"made": made}))
    runs = km.read(tmp_path)
    assert runs.trials.set_index("run")["planned"].to_dict() == {"alone": 6, "study/trials/a": 9}
    assert runs.notes == ("study s: 1 of 2 trials have not begun: b",)
    words = (("command", "kmdp study s.toml"), ("versions", "jax 1"), ("git", "f00"))
    assert runs.studies[0].made == words
    path.write_text(path.read_text()[:50])
    with pytest.raises(ArgumentError, match=r"manifest\.json that can be read"):
        km.read(tmp_path)
    path.write_text('{"name": "of some other program"}')
    assert km.read(tmp_path).studies == ()


def test_the_same_folder_twice_counts_once(tmp_path):
    store(tmp_path / "run")
    assert len(km.read(tmp_path, tmp_path / "run").trials) == 1


def test_columns_of_one_run(tmp_path):
    stored = store(tmp_path / "run")
    found = read_columns(tmp_path / "run")
    assert list(found) == list(stored)
    np.testing.assert_array_equal(found["return"], stored["return"])
    with pytest.raises(ArgumentError, match=r"episodes\.csv"):
        read_columns(tmp_path)


def test_two_studies_side_by_side(tmp_path):
    """With labels, the same trials are other contenders, and are compared seed by seed."""
    for place in ("old", "new"):
        for seed in range(2):
            store(tmp_path / place / str(seed), seed=seed, size=1.0 + (place == "old"))
    folders = tmp_path / "old", tmp_path / "new"
    with pytest.raises(ArgumentError, match="or a label for each folder"):
        km.read(*folders)
    runs = km.read(*folders, labels=["before", "after"])
    assert list(runs.contenders) == ["after: psrl", "before: psrl"]
    (pair,) = km.report.comparisons(runs).to_dict("records")
    assert (pair["common seeds"], pair["first better"]) == (2, 1.0)


@pytest.mark.parametrize("labels", [["one"], ["one", "one"], []])
def test_labels_that_do_not_fit(tmp_path, labels):
    for place in ("old", "new"):
        store(tmp_path / place)
    with pytest.raises(ArgumentError, match="labels: expected 2 different names"):
        km.read(tmp_path / "old", tmp_path / "new", labels=labels)
    with pytest.raises(ArgumentError, match="folders that have no run in common"):
        km.read(tmp_path, tmp_path / "new", labels=["all", "new"])
