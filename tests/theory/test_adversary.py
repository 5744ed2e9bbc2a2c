"""A small fixed sample of the adversarial study: claims hold, and they are made."""

import importlib
import pathlib
import sys

import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "benchmarks" / "theory"


@pytest.fixture(scope="module")
def rows():
    sys.path.insert(0, str(FOLDER))
    adversary = importlib.import_module("adversary")
    sys.path.remove(str(FOLDER))
    numbers = (22, 2, 1)  # a covered regret, a broken assumption, covered sets in two dimensions
    played = [row for number in numbers for row in adversary.run_configuration(number, 3, 0)]
    return adversary, played


def test_no_claim_fails(rows):
    adversary, played = rows
    for name, _, misses, chance in adversary.verdicts(played):
        assert misses == 0 or chance > adversary.LEVEL, name


def test_claims_are_made(rows):
    results = [row["result"] for row in rows[1]]
    assert not any("refused" in result for result in results)
    assert [result["regret_covered"] for result in results] == [True] * 3 + [False] * 6
    assert [result["sets_covered"] for result in results] == [True] * 3 + [False] * 3 + [True] * 3


def test_the_chance_of_failures(rows):
    adversary = rows[0]
    assert adversary.tail([0.5, 0.5], 2) == pytest.approx(0.25)
    assert adversary.tail([0.1] * 10, 0) == pytest.approx(1.0)
