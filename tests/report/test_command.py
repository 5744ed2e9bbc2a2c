"""How ``kmdp report`` ends on bad input; ``test_page`` has a report that is made."""

import sys

import pytest

import kmdp as cli
from tests.report.stored import store


def kmdp(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["kmdp", *map(str, words)])
    cli.main()


def _nothing(place):
    return [place]


def _empty(place):
    store(place / "run", episodes=0)
    return [place]


def _corrupt(place):
    store(place / "run")
    (place / "run" / "config.toml").write_bytes(b"\x00\xff")
    return [place]


def _out_is_a_file_of_the_run(place):
    store(place / "run")
    return [place, "--out", place / "run" / "episodes.csv"]


def _no_place(place):
    store(place / "run")
    (place / "file").write_text("")
    return [place, "--out", place / "file" / "report.html"]


def _bad_scale(place):
    store(place / "run")
    return [place, "--scale", "lg"]


def _bad_width(place):
    store(place / "run")
    return [place, "--width", "wide"]


def _too_many_labels(place):
    store(place / "run")
    return [place, "--label", "before", "--label", "after"]


def _too_many(place):
    store(place / "run")
    return [place, "--episodes", "7"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_nothing, "expected the folder of a run"),
        (_empty, "a run of at least one episode"),
        (_corrupt, "config.toml that can be read"),
        (_out_is_a_file_of_the_run, "ends in .html"),
        (_no_place, "a place that can be written"),
        (_bad_scale, "did you mean 'log'?"),
        (_bad_width, "one-column, two-column, or inches"),
        (_too_many_labels, "1 different names, one for each folder"),
        (_too_many, "a number of episodes that was played"),
    ],
)
def test_bad_input_ends_with_one_sentence(tmp_path, monkeypatch, capsys, make, said):
    words = make(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(SystemExit) as ended:
        kmdp(monkeypatch, "report", *words)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    (line,) = [line for line in error.splitlines() if line.startswith("kmdp: ")]
    assert said in line
    assert "Traceback" not in error
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
