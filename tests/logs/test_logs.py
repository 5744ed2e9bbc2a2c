"""Learning from tables of logged rows."""

import numpy as np
import pandas as pd
import pytest

import kernelmdp as km
from kernelmdp.errors import ArgumentError
from kernelmdp.logs import LogColumns, LogReport, logged_episodes

COLUMNS = {"states": "level", "actions": "pump", "reward": "profit"}
H = 20


def problem():
    return km.Problem.from_spaces(
        states=km.Box([-2.0], [2.0]), actions=km.Box([-1.0], [1.0]), horizon=H
    )


def agent(**settings):
    return km.Greedy(problem(), planner=km.GridPlanner(21, 5), seed=0, **settings)


def log(rows=60, delay=0, noise=0.0, seed=0):
    """A leaking tank as a table."""
    rng = np.random.default_rng(seed)
    pump, level = rng.uniform(-1, 1, rows), [0.0]
    for t in range(rows - 1):
        level.append(0.8 * level[-1] + 0.3 * (pump[t - delay] if t >= delay else 0.0))
    seen = np.array(level) + noise * rng.standard_normal(rows)
    return pd.DataFrame({"level": seen, "pump": pump, "profit": -np.abs(seen)})


def test_a_log_is_what_told_episodes_are():
    frame, by_hand, by_log = log(), agent(), agent()
    report = by_log.tell_frame(frame, **COLUMNS)
    for start in range(0, 59, H):
        part = frame.iloc[start : start + H + 1]
        states, steps = part[["level"]].to_numpy(), part.iloc[:-1]
        data = (states, steps[["pump"]].to_numpy(), steps["profit"].to_numpy())
        by_hand.tell(*data, truncated=True)
    assert by_log.episode == by_hand.episode == report.episodes == 3
    z = np.random.default_rng(1).uniform(-0.5, 0.5, (5, 2))
    for name in ("predict_state", "predict_reward"):
        ours, theirs = (getattr(each.beliefs, name)(km_array(z)) for each in (by_log, by_hand))
        np.testing.assert_array_equal(ours[0], theirs[0])


def km_array(z):
    import jax.numpy as jnp

    return jnp.asarray(z)


def test_files_and_gaps(tmp_path):
    frame = log(30)
    frame.loc[10, "level"] = np.nan  # a sensor that was silent
    frame.loc[20, "pump"] = np.nan
    paths = [tmp_path / "monday.csv", tmp_path / "tuesday.csv"]
    frame.to_csv(paths[0], index=False)
    log(5, seed=1).to_csv(paths[1], index=False)
    learned = agent()
    report = learned.tell_csv(paths, **COLUMNS)
    assert [len(each) for each in learned.history] == [9, 9, 8, 4]
    assert (report.rows, report.episodes) == (30, 4)
    np.testing.assert_allclose(learned.history[1].states[0, 0], frame["level"][11])


def test_looking_does_not_learn(tmp_path):
    path = tmp_path / "log.csv"
    log().to_csv(path, index=False)
    looking = agent()
    report = looking.tell_csv(path, **COLUMNS, learn=False)
    assert looking.episode == 0
    assert "59 steps in 3 episodes" in str(report)


def test_episodes_and_ends_are_columns():
    frame = pd.concat([log(8, seed=2), log(6, seed=3)], ignore_index=True)
    frame["run"] = ["a"] * 8 + ["b"] * 6
    frame["broken"] = [False] * 7 + [True] + [False] * 6
    columns = LogColumns.of("level", "pump", "profit", "run", "broken")
    pieces = list(logged_episodes(frame, columns, horizon=H))
    assert [(len(p.actions), p.terminated) for p in pieces] == [(7, True), (5, False)]


def test_known_rewards_need_no_column():
    def reward(z):
        return -(z[:, 0] ** 2)

    learned = agent(reward=reward)
    learned.tell_frame(log()[["level", "pump"]], states="level", actions="pump")
    episode = learned.history[0]
    np.testing.assert_allclose(episode.rewards, -(np.asarray(episode.states)[:-1, 0] ** 2))


def test_logs_with_a_memory():
    learned = agent(delay=2)
    learned.tell_frame(log(delay=2), **COLUMNS)
    state = km_array(np.array([[0.5, 0.1, -1.0, 0.9]]))
    mean = np.asarray(learned.beliefs.predict_state(state)[0])
    np.testing.assert_allclose(mean[0], [0.8 * 0.5 - 0.3, 0.9, 0.1], atol=2e-2)


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_delays_are_found(delay):
    report = agent().tell_frame(log(200, delay=delay), **COLUMNS, learn=False)
    assert report.delays == ({"level": delay} if delay else {})
    assert (f"try delay={delay}" in str(report)) == bool(delay)


def test_noise_bounds_and_constants_are_found():
    frame = log(2000, noise=0.2)
    frame["pump"] = 0.5
    frame.loc[3, "level"] = 5.0
    report = agent().tell_frame(frame, **COLUMNS, learn=False)
    assert report.constant == ("pump",)
    assert report.outside == (1, 0)
    assert 0.15 < report.noise[0] < 0.3
    assert isinstance(report, LogReport)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"states": "height"}, "names among level, pump, profit"),
        ({"states": ["level", "pump"]}, "1 columns"),
        ({"reward": None}, "does not know the reward"),
        ({"reward": "note"}, "numbers"),
    ],
)
def test_bad_columns_are_refused(changes, message):
    frame = log()
    frame["note"] = "fine"
    if "height" in str(changes):
        frame = frame.drop(columns="note")
    with pytest.raises(ArgumentError, match=message):
        agent().tell_frame(frame, **COLUMNS | changes)


def test_nothing_is_learned_from_a_bad_log(tmp_path):
    learned, frame = agent(), log()
    frame.loc[45, "level"] = 9.0  # beyond the state space, in the third piece
    with pytest.raises(ArgumentError, match="the table, piece 3"):
        learned.tell_frame(frame, **COLUMNS)
    assert learned.episode == 0
    with pytest.raises(ArgumentError, match="two rows in a row"):
        learned.tell_frame(log(1), **COLUMNS)
    with pytest.raises(ArgumentError, match="comma-separated"):
        learned.tell_csv(tmp_path / "missing.csv", **COLUMNS)
