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
    return km.Greedy(problem(), **{"planner": km.GridPlanner(21, 5), "seed": 0} | settings)


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


@pytest.mark.parametrize("delay", [0, 2])
def test_a_velocity_that_is_not_measured_is_no_delay(delay):
    """Also where the same action is held for several steps."""
    rng = np.random.default_rng(3)
    pump, level, speed = np.repeat(rng.uniform(-1, 1, 40), 5), [0.0], 0.0
    for t in range(len(pump) - 1):
        speed += 0.1 * (2 * (pump[t - delay] if t >= delay else 0.0) - speed)
        level.append(level[-1] + 0.1 * speed)
    frame = pd.DataFrame({"level": level, "pump": pump, "profit": 0.0})
    report = agent().tell_frame(frame, **COLUMNS, learn=False)
    assert report.delays == ({"level": delay} if delay else {})


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
        ({"states": ["level", "pump"]}, "one column"),
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


def test_each_row_of_a_cut_log_has_its_own_past():
    """Where the horizon cuts a log, past actions are those of the log and not zeros."""
    frame, learned = log(60, delay=2), agent(delay=2)
    learned.tell_frame(frame, **COLUMNS)
    starts = [0, H, 2 * H]
    for start, episode in zip(starts, learned.history, strict=True):
        first = max(start, 2)  # nothing is known of what was done before the log
        stop = min(start + H, 59)
        assert len(episode) == stop - first
        rows = np.arange(first, stop)
        pump = frame["pump"].to_numpy()
        expected = np.stack([frame["level"].to_numpy()[rows], pump[rows - 1], pump[rows - 2]], 1)
        np.testing.assert_array_equal(episode.states[:-1], expected)


def test_logs_of_agents_with_a_clock_begin_at_0():
    problem = km.Problem.from_spaces(
        states=km.Box([-2.0, -2.0], [2.0, 2.0]),
        actions=km.Box([-1.0], [1.0]),
        horizon=H,
        coordinates=("level", "wanted"),
    )
    learned = km.Greedy(problem, known={"wanted": np.zeros(H + 1)}, delay=1, seed=0)
    frame = log(45).assign(wanted=0.5)
    learned.tell_frame(frame, states=["level", "wanted"], actions="pump", reward="profit")
    for episode in learned.history:
        np.testing.assert_array_equal(episode.states[:, -1], np.arange(len(episode) + 1))


def test_pieces_shorter_than_the_memory_are_left_out():
    learned, frame = agent(history=4, planner="mpc"), log(30)
    frame.loc[3, "level"] = np.nan
    learned.tell_frame(frame, **COLUMNS)
    assert [len(each) for each in learned.history] == [17, 5]
    with pytest.raises(ArgumentError, match="at least 5 consecutive rows"):
        learned.tell_frame(frame[:3], **COLUMNS)


def test_text_that_is_a_number_is_read():
    as_text, as_numbers = agent(), agent()
    as_text.tell_frame(log().astype({"level": str}), **COLUMNS)
    as_numbers.tell_frame(log(), **COLUMNS)
    np.testing.assert_allclose(as_text.history[1].states, as_numbers.history[1].states)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("level,pump,profit\n0.1,0,0\nsilent,0,0\n", "numbers .* 'silent' in row 2"),
        ("level;pump;profit\n0,1;0;0\n", "names among level;pump;profit"),
        ("level,pump,profit\n", "at least 2 consecutive rows"),
        ("level,pump,profit\n,,\n,,\n", "at least 2 consecutive rows"),
        ("", "comma-separated"),
        ("level,pump,profit,over\n0,0,0,no\n0,0,0,no\n", "true or false .* 'no' in row 1"),
        ("level,pump,profit,run\n0,0,0,a\n0,0,0,\n", "a value in rows with a state .* row 2"),
    ],
)
def test_bad_files_are_refused(text, message, tmp_path):
    path, learned = tmp_path / "log.csv", agent()
    path.write_text(text)
    labels = {"terminated": "over"} if "over" in text else {}
    labels |= {"episode": "run"} if "run" in text else {}
    with pytest.raises(ArgumentError, match=message):
        learned.tell_csv(path, **COLUMNS, **labels)
    assert learned.episode == 0


def test_what_is_no_table_is_refused():
    twice = pd.concat([log(), log()[["level"]]], axis=1)
    for frame, message in (([[1.0]], "a data frame"), (twice, "'level' twice")):
        with pytest.raises(ArgumentError, match=message):
            agent().tell_frame(frame, **COLUMNS)
    for paths in ([], None, 3):
        with pytest.raises(ArgumentError, match="paths"):
            agent().tell_csv(paths, **COLUMNS)


def test_nothing_is_learned_from_a_bad_log(tmp_path):
    learned, frame = agent(), log()
    frame.loc[45, "level"] = 9.0  # beyond the state space, in the third piece
    with pytest.raises(ArgumentError, match="the table, piece 3"):
        learned.tell_frame(frame, **COLUMNS)
    assert learned.episode == 0
    with pytest.raises(ArgumentError, match="2 consecutive rows"):
        learned.tell_frame(log(1), **COLUMNS)
    with pytest.raises(ArgumentError, match="comma-separated"):
        learned.tell_csv(tmp_path / "missing.csv", **COLUMNS)
