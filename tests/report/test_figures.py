"""Figures: what they show, what they say instead, and what they refuse."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import kernelmdp as km
from kernelmdp.errors import ArgumentError
from kernelmdp.report import draw_regret, figures, rendering
from kernelmdp.report.axis_scales import set_scale
from kernelmdp.report.maps import draw_map, read_maps
from kernelmdp.report.rendering import figure_width, render
from tests.report.stored import store, store_maps


@pytest.fixture
def axes():
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def labels(axes):
    return axes.get_legend_handles_labels()[1]


def test_regret_with_band_and_bound(tmp_path, axes):
    for seed in range(3):
        store(tmp_path / str(seed), seed=seed, bound=5.0 + seed)
    store(tmp_path / "other", agent="random", seed=0)
    figures.regret(axes, km.read(tmp_path))
    line = axes.lines[0]
    np.testing.assert_allclose(line.get_ydata(), 2 * np.sqrt(np.arange(1, 7)))
    assert len(axes.collections) == 1  # one band: the other agent has one seed
    assert "Theorem 1, improved: bound of psrl" in labels(axes)
    assert "random: bound: not covered" in labels(axes)
    bound = next(line for line in axes.lines if line.get_linestyle() == "--")
    assert bound.get_ydata().tolist() == [7, 14]  # the largest over seeds


def test_no_regret_at_all_is_drawn_beside_a_far_bound(tmp_path, axes):
    store(tmp_path / "0", bound=5000.0)
    store(tmp_path / "1", agent="oracle", size=0.0)
    figures.regret(axes, km.read(tmp_path), vacuous=True)
    assert axes.get_yscale() == "symlog"


def test_unfinished_seeds_are_drawn_dotted(tmp_path, axes):
    store(tmp_path / "0")
    store(tmp_path / "1", seed=1, episodes=4)
    figures.regret(axes, km.read(tmp_path))
    whole, rest = axes.lines[:2]
    assert np.isfinite(whole.get_ydata()).sum() == 4
    assert rest.get_linestyle() == ":"
    assert rest.get_xdata().tolist() == [4, 5, 6]


@pytest.mark.parametrize("draw", [figure.draw for figure in figures.FIGURES.values()])
def test_environments_are_not_mixed(tmp_path, axes, draw):
    store(tmp_path / "0")
    store(tmp_path / "1", env="table")
    with pytest.raises(ArgumentError, match="one environment, got line, table"):
        draw(axes, km.read(tmp_path))


def test_draw_regret_refuses_to_mix(tmp_path):
    store(tmp_path / "0")
    store(tmp_path / "1", env="table")
    with pytest.raises(ArgumentError, match="one environment"):
        draw_regret([tmp_path / "0", tmp_path / "1"], tmp_path / "regret.png")
    assert not (tmp_path / "regret.png").exists()


def test_returns_gains_widths_coverage_and_times(tmp_path, axes):
    store(tmp_path / "0", bound=4.0)
    runs = km.read(tmp_path)
    figures.returns(axes, runs)
    assert "optimum" in labels(axes)
    axes.clear()
    figures.gains(axes, runs)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), 3 * np.log1p(np.arange(1, 7)))
    assert axes.lines[1].get_ydata().tolist() == [7, 70]
    axes.clear()
    figures.widths(axes, runs)
    assert axes.get_yscale() == "log"
    axes.clear()
    figures.coverage(axes, runs)
    assert axes.lines[0].get_ydata().tolist() == [0, 1, 1, 1, 1, 1]
    axes.clear()
    figures.times(axes, runs)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), 0.003)


def test_figures_say_what_is_not_known(tmp_path, axes):
    store(tmp_path / "0", known=False)
    runs = km.read(tmp_path)
    for draw, words in (
        (figures.regret, "the optimum is not known"),
        (figures.coverage, "no known truth"),
    ):
        axes.clear()
        draw(axes, runs)
        assert words in axes.texts[0].get_text()
    axes.clear()
    figures.returns(axes, runs)
    assert "optimum: not known" in labels(axes)
    axes.clear()
    figures.gains(axes, runs, "reward")
    assert "certified maximum: not computed" in labels(axes)


def test_a_vacuous_bound_is_told_and_not_drawn(tmp_path, axes):
    store(tmp_path / "0", bound=5000.0)
    runs = km.read(tmp_path)
    figures.regret(axes, runs)
    assert "Theorem 1, improved: bound of psrl is vacuous (10,000)" in labels(axes)
    assert all(line.get_linestyle() != "--" for line in axes.lines)
    assert axes.get_yscale() == "linear"
    axes.clear()
    figures.regret(axes, runs, vacuous=True)
    assert "Theorem 1, improved: bound of psrl" in labels(axes)
    assert any(line.get_linestyle() == "--" for line in axes.lines)


def test_returns_are_relative_where_instances_differ(tmp_path, axes):
    """Seeds with other truths have other optima: 10 and 20."""
    for seed in range(2):
        store(tmp_path / str(seed), seed=seed)
    path = tmp_path / "1" / "episodes.csv"
    table = pd.read_csv(path)
    table[["return", "optimal_value"]] += 10.0
    table.to_csv(path, index=False)
    figures.returns(axes, km.read(tmp_path))
    number = np.sqrt(np.arange(7))
    np.testing.assert_allclose(axes.lines[0].get_ydata(), -1.5 * np.diff(number))
    assert axes.lines[1].get_ydata() == [0, 0]
    assert "optimum of each instance" in labels(axes)
    assert axes.get_ylabel() == "return less the optimum"


@pytest.mark.parametrize(
    ("scale", "x", "y"),
    [
        ("auto", "linear", "linear"),
        ("linear", "linear", "linear"),
        ("log", "linear", "log"),
        ("log-log", "log", "log"),
    ],
)
def test_scales(tmp_path, axes, scale, x, y):
    store(tmp_path / "0")
    figures.regret(axes, km.read(tmp_path))
    set_scale(axes, scale)
    assert (axes.get_xscale(), axes.get_yscale()) == (x, y)
    axes.clear()
    figures.coverage(axes, km.read(tmp_path))
    set_scale(axes, scale)
    assert axes.get_yscale() == "linear"  # shares lie between 0 and 1


def test_a_scale_and_a_width_that_are_not(tmp_path, axes):
    store(tmp_path / "0")
    with pytest.raises(ArgumentError, match="did you mean 'log'"):
        draw_regret([tmp_path], tmp_path / "regret.png", scale="lg")
    for width in ("one-colum", 0.5, "wide", 900):
        with pytest.raises(ArgumentError, match="width: expected one-column, two-column, or"):
            figure_width(width)


@pytest.mark.parametrize("width", [2.5, "one-column", 4.8, "two-column"])
def test_nothing_is_clipped_and_the_legend_hides_nothing(tmp_path, monkeypatch, width):
    """All texts lie inside the picture, and those of the legend below the axes."""
    words = {"confidence.delta": 0.05, "planner.horizon": 20, "learner.inducing_points": 256}
    for seed in range(2):
        store(tmp_path / f"p{seed}", seed=seed, bound=9e6, size=2e5, words=words)
        store(tmp_path / f"g{seed}", agent="greedy", seed=seed, size=1e5)
    runs, seen = km.read(tmp_path), []

    def look(figure, formats):
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        (axes,), (legend,) = figure.axes, figure.legends or [None]
        renderer = canvas.get_renderer()
        boxes = [axis.get_tightbbox(renderer) for axis in (axes.xaxis, axes.yaxis)]
        boxes += [axes.title.get_window_extent(renderer)]
        boxes += [text.get_window_extent(renderer) for text in legend.get_texts()] if legend else []
        for box in boxes:
            ends = (box.x0, box.y0, figure.bbox.x1 - box.x1, figure.bbox.y1 - box.y1)
            assert min(ends) > -1, (figure.bbox, box, axes.get_ylabel())
        if legend:
            assert legend.get_window_extent().y1 < axes.xaxis.label.get_window_extent().y0 + 1
        seen.append(figure)
        return {}

    monkeypatch.setattr(rendering, "_save", look)
    for figure in figures.FIGURES.values():
        for scale in ("auto", "log-log"):

            def draw(axes, figure=figure, scale=scale):
                figure.draw(axes, runs)
                set_scale(axes, scale)
                axes.set_title("an environment of a long name [penalty=0.2, short=True]")

            render(draw, ["png"], width=figure_width(width))
    assert len(seen) == 14


def test_three_formats_the_same_bytes_again(tmp_path):
    store(tmp_path / "0", agent="<b>$x_")
    runs = km.read(tmp_path)
    once, again = (render(lambda axes: figures.regret(axes, runs)) for _ in range(2))
    assert once == again
    assert once["pdf"].startswith(b"%PDF")
    assert once["png"].startswith(b"\x89PNG")
    assert b"&lt;b&gt;$x_" in once["svg"]


@pytest.mark.parametrize("dimension", [1, 2])
def test_maps_as_figures(tmp_path, axes, dimension):
    store_maps(tmp_path, dimension)
    maps = read_maps(tmp_path)
    assert maps.shape == (5,) * dimension
    draw_map(axes, maps, "planned value", frame=1)
    seen = axes.lines[-1]
    assert len(seen.get_xdata()) == 2  # after two episodes
    with pytest.raises(ArgumentError, match="planned value, mean reward"):
        draw_map(axes, maps, "hopes")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short", None])
def test_maps_that_cannot_be_read(tmp_path, content):
    if content is None:
        np.savez(tmp_path / "maps.npz", episodes=[1])
    else:
        (tmp_path / "maps.npz").write_bytes(content)
    with pytest.raises(ArgumentError, match="maps that can be read"):
        read_maps(tmp_path)
