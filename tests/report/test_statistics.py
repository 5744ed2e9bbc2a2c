"""Numbers over seeds against SciPy, NumPy and closed forms; intervals that hold what they say."""

import numpy as np
import pytest
import scipy.stats

import kernelmdp as km
from kernelmdp.errors import ArgumentError
from kernelmdp.report import comparisons, summary, text_table
from kernelmdp.report.statistics import (
    bootstrap,
    confidence_band,
    interquartile_mean,
    paired,
    regret_slope,
)
from kernelmdp.report.summaries import unfinished_notes
from kernelmdp.report.tables import format_number
from tests.report.stored import store


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 20])
def test_interquartile_mean(rng, count):
    values = rng.normal(size=(count, 3))
    np.testing.assert_allclose(interquartile_mean(values), scipy.stats.trim_mean(values, 0.25))


@pytest.mark.parametrize("statistic", [np.mean, np.median, interquartile_mean])
def test_bootstrap_is_that_of_scipy(rng, statistic):
    values = rng.gamma(2.0, size=30)
    found = bootstrap(statistic, values, seed=0, resamples=20_000)
    other = scipy.stats.bootstrap(
        (values,), statistic, n_resamples=20_000, method="percentile", rng=1, vectorized=True
    ).confidence_interval
    spread = other.high - other.low
    assert found.value == statistic(values, axis=0)
    assert found.low == pytest.approx(other.low, abs=0.05 * spread)
    assert found.high == pytest.approx(other.high, abs=0.05 * spread)


def test_bootstrap_has_its_own_seed(rng):
    values = rng.normal(size=9)
    assert bootstrap(np.mean, values, seed=3) == bootstrap(np.mean, values, seed=3)
    assert bootstrap(np.mean, values, seed=3) != bootstrap(np.mean, values, seed=4)


def test_intervals_hold_the_truth_as_often_as_they_say(rng):
    held = [
        (found := bootstrap(np.mean, rng.normal(size=40), seed=0, resamples=400)).low < 0
        and found.high > 0
        for _ in range(300)
    ]
    assert 0.9 < np.mean(held) < 0.98  # percentile intervals are a little short at 40


def test_bands_are_bootstraps_at_every_episode(rng):
    curves = rng.normal(size=(12, 4))
    found = confidence_band(curves, seed=0, resamples=20_000)
    np.testing.assert_allclose(found.value, curves.mean(axis=0))
    for episode in range(4):
        alone = bootstrap(np.mean, curves[:, episode], seed=1, resamples=20_000)
        assert found.low[episode] == pytest.approx(alone.low, abs=0.05)
        assert found.high[episode] == pytest.approx(alone.high, abs=0.05)


def test_slope_of_the_mean_with_its_interval(rng):
    episodes = np.arange(1, 101)
    curves = rng.uniform(1, 2, size=(15, 1)) * episodes ** rng.uniform(0.3, 0.7, size=(15, 1))
    found = regret_slope(curves, seed=0)
    half = slice(50, None)
    line = np.polyfit(np.log(episodes[half]), np.log(curves.mean(axis=0)[half]), 1)
    assert found.value == pytest.approx(line[0])
    assert 0.3 < found.low < found.value < found.high < 0.7


def test_one_seed_has_no_interval():
    found = bootstrap(np.mean, np.array([2.0]), seed=0)
    assert found.value == 2
    assert np.isnan([found.low, found.high]).all()
    assert np.isnan(confidence_band(np.ones((1, 3)), seed=0).low).all()
    assert np.isnan(regret_slope(np.ones((1, 3)), seed=0).high)


def test_paired_comparison(rng):
    noise = rng.normal(scale=10, size=50)
    found = paired(noise, noise + 1 + rng.normal(scale=0.1, size=50), seed=0)
    assert found.seeds == 50
    assert found.difference.high < -0.9  # far smaller than the spread over seeds
    assert found.lower == 1


@pytest.mark.parametrize("values", [[], [1.0, np.nan], [[1.0]]])
def test_no_seed_is_dropped(values):
    with pytest.raises(ArgumentError, match="values"):
        bootstrap(np.mean, np.array(values), seed=0)


@pytest.fixture
def runs(tmp_path):
    for seed in range(4):
        store(tmp_path / "a" / str(seed), seed=seed)
        store(tmp_path / "b" / str(seed), agent="greedy", seed=seed, size=2.0)
    store(tmp_path / "b" / "4", agent="greedy", seed=4, size=2.0, episodes=3)
    return km.read(tmp_path)


def test_summary_after_episodes_that_all_have(runs):
    table = summary(runs).set_index("agent")
    assert table["episodes"].tolist() == [3, 3]
    assert table["seeds"].to_dict() == {"greedy": 5, "psrl": 4}
    assert table.loc["psrl", "mean"] == pytest.approx(2.5 * np.sqrt(3))
    assert table.loc["greedy", "median"] == pytest.approx(6 * np.sqrt(3))
    assert table.loc["psrl", "slope"] == pytest.approx(0.5)
    assert (
        table.loc["psrl", "mean low"] < table.loc["psrl", "mean"] < table.loc["psrl", "mean high"]
    )
    assert unfinished_notes(runs) == ["line: 1 of 9 trials are not finished: b/4 (3 of 6)"]


def test_summary_after_episodes_that_are_asked_for(runs):
    table = summary(runs, episodes=6).set_index("agent")
    assert table[["seeds", "unfinished"]].loc["greedy"].tolist() == [4, 1]
    with pytest.raises(ArgumentError, match="episodes"):
        summary(runs, episodes=7)


def test_comparisons_are_on_common_seeds(runs):
    (row,) = comparisons(runs).to_dict("records")
    assert (row["first"], row["second"], row["common seeds"]) == ("greedy", "psrl", 4)
    assert row["difference"] == pytest.approx(2.5 * np.sqrt(3))
    assert row["first better"] == 0


def test_without_an_optimum_returns_count_and_more_is_better(tmp_path):
    store(tmp_path / "a", known=False)
    store(tmp_path / "b", known=False, agent="greedy", size=3.0)
    runs = km.read(tmp_path)
    table = summary(runs)
    assert set(table["measure"]) == {"mean return"}
    assert table["slope"].isna().all()
    (row,) = comparisons(runs).to_dict("records")
    assert row["difference"] < 0
    assert row["first better"] == 0


def test_tables_in_four_forms(runs):
    frame = summary(runs)
    assert "4.33 [2.60, 6.06]" in text_table(frame)
    assert text_table(frame, "csv").splitlines()[0].startswith("environment,agent,seeds")
    assert text_table(frame, "markdown").splitlines()[1] == "|" + "---|" * 12
    latex = text_table(frame, "latex")
    assert latex.count(r"\\") == 3
    assert "100%" not in latex.replace(r"\%", "")
    with pytest.raises(ArgumentError, match="form"):
        text_table(frame, "word")


def test_names_are_escaped(tmp_path):
    store(tmp_path / "a", agent="a|b_c & <d> $x$ \\e", env="#1")
    frame = summary(km.read(tmp_path))
    row = text_table(frame, "latex").splitlines()[3]
    assert row.startswith(r"\#1 & a|b\_c \& \textless{}d\textgreater{} \$x\$ \textbackslash{}e &")
    assert r"| a\|b_c & &lt;d> $x$ \\e |" in text_table(frame, "markdown")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00"),
        (1234.5, "1,234"),
        (-0.01234, "−0.0123"),
        (1e-9, "1.00e-09"),
        (-2.5e8, "−2.50e+08"),
        (np.nan, "–"),
        (np.inf, "∞"),
    ],
)
def test_numbers_for_people(value, text):
    assert format_number(value) == text
