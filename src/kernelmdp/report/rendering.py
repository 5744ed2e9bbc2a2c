"""Figures as files: one style, three formats, the same bytes for the same results."""

import io
from collections.abc import Callable, Sequence
from typing import Any

from kernelmdp.report.fonts import family

STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "lines.linewidth": 1.5,
    "legend.frameon": False,
    "axes.unicode_minus": False,
    "savefig.dpi": 160,
    # Text stays text: smaller, sharp, and found by a search.
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    # The same results give the same file.
    "svg.hashsalt": "kernelmdp",
}
FORMATS = ("pdf", "svg", "png")


def rendered(
    draw: Callable[[Any], Any], formats: Sequence[str] = FORMATS, width: float = 4.8
) -> dict[str, bytes]:
    """The bytes of a figure in each format; ``draw`` gets the axes.

    The legend goes below, where it hides nothing. All places are given, in inches: to search for
    them would take most of the time.
    """
    import matplotlib
    from matplotlib.figure import Figure

    style: Any = STYLE | {"font.family": family()}
    with matplotlib.rc_context(style):
        figure: Any = Figure()
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        draw(axes)
        handles, labels = axes.get_legend_handles_labels()
        columns = 2 if width / 2 > 0.065 * max(map(len, labels), default=0) + 0.5 else 1
        below = 0.5 + 0.165 * -(-len(labels) // columns) + 0.1 * bool(labels)
        height = 0.55 * width + below
        figure.set_size_inches(width, height)
        axes.set_position(
            (0.7 / width, below / height, 1 - 0.8 / width, 1 - (below + 0.3) / height)
        )
        if labels:
            place = {"loc": "lower left", "bbox_to_anchor": (0.1 / width, 0.02)}
            figure.legend(handles, labels, ncols=columns, borderpad=0, **place)
        return _saved(figure, formats)


def rendered_panels(
    draws: Sequence[Callable[[Any], Any]], formats: Sequence[str] = FORMATS
) -> dict[str, bytes]:
    """The bytes of a figure of several panels, up to three in a row."""
    import matplotlib
    from matplotlib.figure import Figure

    columns = min(3, len(draws))
    rows = -(-len(draws) // columns)
    style: Any = STYLE | {"font.family": family()}
    with matplotlib.rc_context(style):
        figure: Any = Figure(figsize=(3.2 * columns, 2.6 * rows), layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for panel, draw in zip(panels, draws, strict=False):
            draw(panel)
        for panel in panels[len(draws) :]:
            panel.set_axis_off()
        return _saved(figure, formats)


def _saved(figure: Any, formats: Sequence[str]) -> dict[str, bytes]:
    found = {}
    for form in formats:
        buffer = io.BytesIO()
        # Dates would make every file another one.
        dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
        packed: Any = {"pil_kwargs": {"compress_level": 1}} if form == "png" else {}
        figure.savefig(buffer, format=form, metadata=dated, **packed)
        found[form] = buffer.getvalue()
        figure.set_layout_engine("none")  # places that were found hold for every format
    return found
