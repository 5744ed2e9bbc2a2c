"""The report of runs with constraints: limits, the fallback, risk and the sets believed safe."""

import dataclasses
import re
import sys

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import kernelmdp as km
import kmdp as cli
from kernelmdp.agents.safety import SPENT_RISK, allowed_risk
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments import RunConfig, interact, run, safe_sets
from kernelmdp.experiments.run_files import read_history
from kernelmdp.experiments.safe_sets import RISK_LAYER, SAFE_LAYER, restore_spent_risk
from kernelmdp.experiments.safety_record import write_safety
from kernelmdp.experiments.state_maps import write_maps
from kernelmdp.mdp import Constraint
from kernelmdp.mdp.fallback import as_fallback
from kernelmdp.report.maps import Maps, read_maps
from kernelmdp.report.safety_figures import (
    SAFE_COLOURS,
    draw_safe_interval,
    draw_safe_set,
    with_totals,
)
from kernelmdp.report.safety_records import SafetyRecord, draw_paths, draw_ranges, read_safety
from tests.report.stored import store

EPISODES = 3
LIMITS = ["-0.5 <= position <= 0.8 km", "action <= 0.9"]


def brake(state, period):
    return 0.0 * state


def braked(seed=0):
    """The environment ``rkhs`` with a named coordinate, a fallback and constraints of its own."""
    env = km.make("rkhs", seed=seed, horizon=3)
    problem, trusted = env.problem, km.Box([-0.45], [0.45])
    fallback = as_fallback(
        (brake, trusted), states=problem.states, actions=problem.actions, violation=None
    )
    effort = Constraint(lambda s, a: s[:, 0] * a[:, 0] - 0.01, "effort", "W")
    told = dataclasses.replace(
        problem, coordinates=("position",), constraints=(effort,), fallback=fallback
    )
    return dataclasses.replace(env, problem=told)


def kmdp(*words):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["kmdp", *map(str, words)])
        cli.main()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A careful agent, one that does not know the constraints, and their page."""
    place = tmp_path_factory.mktemp("safe")
    env = "tests.report.test_safety:braked"
    settings = {"constraints": LIMITS, "fallback": "known", "risk": 0.1, "confidence": "valid"}
    run(RunConfig(env, "gp-ucrl", settings=settings), place / "careful", episodes=EPISODES)
    run(RunConfig(env, "random"), place / "random", episodes=EPISODES)
    kmdp("report", place)
    return place


@pytest.fixture(scope="module")
def text(folder):
    return (folder / "report.html").read_text()


def history(place):
    return read_history(place, km.experiments.run_files.read_config(place))[0]


def test_ranges_and_limits_are_those_of_the_stored_episodes(folder):
    record, episodes = read_safety(folder / "careful"), history(folder / "careful")
    assert record.quantities == ("position (km)", "action")
    assert record.limit_names == ("position >= -0.5 km", "position <= 0.8 km", "action <= 0.9")
    assert record.limits.tolist() == [-0.5, 0.8, 0.9]
    for number, episode in enumerate(episodes):
        for quantity, values in enumerate((episode.states, episode.actions)):
            assert record.lows[number, quantity] == np.min(values)
            assert record.highs[number, quantity] == np.max(values)
    first = list(record.path_episodes).index(1)
    np.testing.assert_array_equal(record.paths[first, :, 0], episodes[0].states[:, 0])


def test_functions_are_compared_with_0(folder):
    """The agent does not keep the constraint of the task, and is judged by it all the same."""
    record, episodes = read_safety(folder / "random"), history(folder / "random")
    assert record.quantities == ("effort (W)",)
    values = [np.max(e.states[:-1, 0] * e.actions[:, 0]) - 0.01 for e in episodes]
    np.testing.assert_allclose(record.highs[:, 0], values)
    columns = km.report.read_columns(folder / "random")
    assert record.broken(0).tolist() == (columns["violations"] > 0).tolist()
    assert record.broken(0).any()


def test_marks_are_where_the_fallback_acted(folder):
    """Share by share with the column, and never where the action is another one."""
    record, episodes = read_safety(folder / "careful"), history(folder / "careful")
    shares = km.report.read_columns(folder / "careful")["fallback_share"]
    assert shares.max() > 0
    for number, acts in zip(record.path_episodes, record.fallback_acts, strict=True):
        assert np.mean(acts) == pytest.approx(shares[number - 1])
        assert np.all(episodes[number - 1].actions[acts == 1] == 0.0)


def test_marks_that_disagree_with_the_run_are_left_out(folder, tmp_path):
    place = tmp_path / "run"
    place.mkdir()
    for name in ("config.toml", "checkpoint"):
        (place / name).write_bytes((folder / "careful" / name).read_bytes())
    lines = (folder / "careful" / "episodes.csv").read_text().splitlines()
    column = lines[0].split(",").index("fallback_share")
    cells = lines[1].split(",")
    cells[column] = "0.123"
    (place / "episodes.csv").write_text("\n".join([lines[0], ",".join(cells), *lines[2:], ""]))
    assert write_safety(place) is None
    acts = read_safety(place).fallback_acts
    assert np.isnan(acts[0]).all()
    assert np.isfinite(acts[1:]).all()


def test_without_plans_there_are_ranges_and_no_marks(folder, tmp_path):
    for name in ("config.toml", "checkpoint", "episodes.csv"):
        (tmp_path / name).write_bytes((folder / "careful" / name).read_bytes())
    assert write_safety(tmp_path, replan=False) is None
    record = read_safety(tmp_path)
    assert np.isnan(record.fallback_acts).all()
    np.testing.assert_array_equal(record.lows, read_safety(folder / "careful").lows)
    assert write_safety(tmp_path) is None  # now they are asked for
    assert np.isfinite(read_safety(tmp_path).fallback_acts).any()
    (tmp_path / "safety.npz").write_bytes(b"broken")
    with pytest.raises(ArgumentError, match="a record that can be read"):
        read_safety(tmp_path)
    assert write_safety(tmp_path) is None
    assert read_safety(tmp_path) is not None


def test_maps_show_the_risk_of_the_plans(folder):
    """The map of a coming episode has the planned risk that the run stored, at its start."""
    maps, place = read_maps(folder / "careful"), folder / "careful"
    columns, episodes = km.report.read_columns(place), history(place)
    config = km.experiments.run_files.read_config(place)
    risks, safe = (maps.names.index(name) for name in (RISK_LAYER, SAFE_LAYER))
    for learned in range(EPISODES):
        agent = config.make_agent()
        for episode in episodes[:learned]:
            agent.replay(episode)
        restore_spent_risk(agent, columns["planned_risk"])
        start = episodes[learned].states[0]
        agent.ask(start)
        assert agent.planned.risk(start) == pytest.approx(columns["planned_risk"][learned])
        found = agent.planned.risks(maps.states)
        frame = list(maps.episodes).index(learned)
        allowed = (maps.states[:, 0] <= 0.8) & (maps.states[:, 0] >= -0.5)
        np.testing.assert_allclose(maps.layers[frame, risks][allowed], found[allowed])
        limit = float(agent.planned.policy.risks.limits[0])
        np.testing.assert_array_equal(maps.layers[frame, safe] == 1, allowed & (found <= limit))
    assert not maps.layers[:, safe, ~allowed].any()
    assert maps.layers[0, safe].any()  # the trusted set
    assert maps.value_range(safe) == (0.0, 1.0)


def test_maps_know_the_risk_that_was_spent(tmp_path, monkeypatch):
    """Nothing is known to be safe, so every plan spends all that it may."""
    config = RunConfig("rkhs", env_options={"horizon": 2}, settings={"constraints": "state <= 0.8"})
    agent, shown = config.make_agent(), []
    allowed = [allowed_risk(agent)]
    for _ in interact(agent, 12):
        allowed.append(allowed_risk(agent))  # of the next episode
    assert agent.totals[SPENT_RISK] > 0
    run(config, tmp_path, episodes=12)
    monkeypatch.setattr(
        safe_sets, "allowed_risk", lambda agent: shown.append(allowed_risk(agent)) or shown[-1]
    )
    assert write_maps(tmp_path) is None
    numbers = read_maps(tmp_path).episodes
    assert len(numbers) < 12  # some episodes are not planned again
    assert shown == pytest.approx([allowed[number] for number in numbers])


def test_what_the_page_says(folder, text):
    columns = km.report.read_columns(folder / "careful")
    assert text.count("<h3>Constraints</h3>") == 1
    assert text.count("<h3>Limits: ") == 2
    for words in ("position (km), by episode", "position (km), by period", "action, by episode"):
        assert f"<strong>{words}.</strong>" in text
    assert "Limits: position &gt;= -0.5 km, position &lt;= 0.8 km. Episodes beyond a limit" in text
    assert "<strong>The set believed safe.</strong>" in text
    rows = re.findall(r'<tr><th scope="row">(\S+).*?</th>((?:<td class="n">[^<]*</td>){6})', text)
    cells = {name: re.findall(">([^<]+)<", cells) for name, cells in rows}
    broken = int((columns["violations"] > 0).sum())
    share = f"{100 * columns['fallback_share'].mean():.0f} %"
    assert cells["gp-ucrl"][:3] == ["1", str(EPISODES), str(broken)]
    assert cells["gp-ucrl"][-1] == share
    assert float(cells["gp-ucrl"][4]) == pytest.approx(columns["planned_risk"].sum(), rel=0.01)
    violations = km.report.read_columns(folder / "random")["violations"]
    assert cells["random"][2:5] == [str((violations > 0).sum()), f"{violations.sum():.0f}", "–"]


def test_files_of_figures(folder):
    names = {path.stem for path in (folder / "figures").glob("*.png")}
    ours = {name.removeprefix("tests.report.test-safety-braked-") for name in names}
    assert {"risk", "fallback", "limits-1-1-range", "limits-1-2-path", "limits-1-safe"} <= ours


def test_a_report_without_constraints_has_none_of_it(tmp_path):
    store(tmp_path / "run")
    kmdp("report", tmp_path)
    text = (tmp_path / "report.html").read_text()
    assert "Constraints" not in text
    assert "Limits" not in text
    assert len(list((tmp_path / "figures").glob("*.svg"))) == 7
    assert not (tmp_path / "run" / "safety.npz").exists()


def test_totals_by_run(folder):
    runs = km.read(folder)
    (env,) = runs.envs
    runs = with_totals(runs.select(env))
    columns = {name: km.report.read_columns(folder / name) for name in ("careful", "random")}
    careful, random = (runs.episodes[runs.episodes["run"] == name] for name in columns)
    assert careful["total_risk"].tolist() == pytest.approx(
        np.cumsum(columns["careful"]["planned_risk"])
    )
    assert random["total_risk"].isna().all()
    broken = columns["random"]["violations"] > 0
    assert random["total_violations"].tolist() == np.cumsum(broken).tolist()


def record_of(episodes, **fields):
    """A made-up record of one coordinate, whose episode 2 breaks the upper limit."""
    highs = np.full((episodes, 1), 0.5)
    highs[1] = 1.5
    given = {
        "quantities": ("heat ($\\$)",),
        "state_coordinates": np.array([1]),
        "lows": -highs,
        "highs": highs,
        "limit_quantities": np.array([0, 0]),
        "limit_names": ("heat >= -2", "heat <= 1"),
        "limits": np.array([-2.0, 1.0]),
        "limit_signs": np.array([-1.0, 1.0]),
        "path_episodes": np.array([1, 2]),
        "paths": np.array([[[0.0], [0.5], [-0.5]], [[0.0], [1.5], [np.nan]]]),
        "fallback_acts": np.array([[0.0, 1.0], [np.nan, np.nan]]),
    }
    return SafetyRecord(**given | fields)


@pytest.mark.parametrize("episodes", [3, 100])
def test_a_range_is_drawn_with_its_limits(episodes):
    axes, record = Figure().gca(), record_of(episodes)
    draw_ranges(axes, record, 0)
    lines = [line for line in axes.lines if line.get_linestyle() in ("--", ":")]
    assert [line.get_ydata()[0] for line in lines] == [-2.0, 1.0]
    assert record.broken(0).tolist() == [False, True] + [False] * (episodes - 2)
    assert "Episodes beyond a limit: 1." in record.describe(0)
    labels = axes.get_legend_handles_labels()[1]
    assert sum("limit broken" in label for label in labels) == 1


def test_paths_are_drawn_with_marks():
    axes = Figure().gca()
    draw_paths(axes, record_of(3), 0)
    marks = [line.get_xydata().tolist() for line in axes.lines if line.get_marker() == "o"]
    assert marks == [[[2.0, 0.5]], [], []]  # the last one is for the legend
    assert "the fallback acts" in axes.get_legend_handles_labels()[1]


def test_safe_sets_of_one_coordinate_are_drawn_as_rows():
    states = np.array([[0.0], [1.0], [2.0], [3.0]])
    layers = np.array([[[0.0, 1.0, 1.0, 0.0]], [[1.0, 1.0, 0.0, 1.0]]])
    maps = Maps(np.array([0, 2]), states, (SAFE_LAYER,), layers, states[:1], np.array([1]))
    axes, record = Figure().gca(), record_of(3, state_coordinates=np.array([0]))
    draw_safe_interval(axes, maps, record)
    ends = [
        [path.get_extents().intervalx.tolist() for path in bars.get_paths()]
        for bars in axes.collections
    ]
    # Rows of what is not believed safe, then rows of what is.
    assert ends == [[[0, 0.5], [2.5, 3]], [[1.5, 2.5]], [[0.5, 2.5]], [[0, 1.5], [2.5, 3]]]
    assert [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"] == [-2, 1]
    handles = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    assert tuple(handles["believed safe"].get_facecolor()[0]) == to_rgba(SAFE_COLOURS[1])


def test_a_safe_set_of_two_coordinates_is_drawn_with_its_limits():
    grid = np.stack(np.meshgrid([0.0, 1.0], [0.0, 1.0], indexing="ij"), axis=-1).reshape(-1, 2)
    layers = np.array([[[0.0, 0.0, 1.0, 1.0]]])
    maps = Maps(np.array([2]), grid, (SAFE_LAYER,), layers, grid[:1], np.array([1]))
    axes = Figure().gca()
    draw_safe_set(axes, maps, record_of(3), frame=0)
    (mesh,) = axes.collections
    assert mesh.get_array().tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert [line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == "--"] == [
        -2.0,
        1.0,
    ]
