"""Render figures to files: one style, three formats. The same results give the same bytes."""

import io
import math
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import with_suggestion
from kernelmdp.report.fonts import register_small_font

#: Settings of Matplotlib for all figures.
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
    # Text is stored as text. Files are then smaller, and text can be searched.
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    # A fixed salt, so that the same results give the same file.
    "svg.hashsalt": "kernelmdp",
}
#: Width in inches of a letter of a legend or a label, and of a digit at a tick, at most.
LETTER, DIGIT = 0.065, 0.08
#: Height in inches of a panel, with its labels.
PANEL_HEIGHT = 2.6
#: What a number at a tick has besides its digits if it is written as mathematics.
MATHS = re.compile(r"\\[a-z]+|[${}^]")
#: Widths in inches of figures in papers: a column of two, and the whole width of a page.
PAPER_WIDTHS = {"one-column": 3.25, "two-column": 6.75}
#: Limits of other widths. Smaller ones have no place for labels, and larger ones are mistakes.
LEAST_WIDTH, MOST_WIDTH = 2.5, 30.0
#: The formats of figures: for papers, for the page, and for everything else.
FORMATS = ("pdf", "svg", "png")


def figure_width(width: str | float) -> float:
    """Return the width of a figure in inches.

    Args:
        width: One of ``PAPER_WIDTHS``, or a number of inches, perhaps as text.

    Returns:
        The width.

    Raises:
        ArgumentError: If it is none of these, or too small for any figure.

    >>> figure_width("one-column"), figure_width("5")
    (3.25, 5.0)
    """
    if width in PAPER_WIDTHS:
        return PAPER_WIDTHS[str(width)]
    try:
        inches = float(width)
    except (TypeError, ValueError):
        inches = math.nan
    if not LEAST_WIDTH <= inches <= MOST_WIDTH:
        names = ", ".join(PAPER_WIDTHS)
        expected = f"{names}, or inches from {LEAST_WIDTH:g} to {MOST_WIDTH:g}"
        raise ArgumentError("width", expected, with_suggestion(width, PAPER_WIDTHS))
    return inches


def render(
    draw: Callable[[Any], Any], formats: Sequence[str] = FORMATS, width: float = 4.8
) -> dict[str, bytes]:
    """Render a figure.

    The legend is below the axes, where it hides nothing. All positions are computed here, in
    inches, from the numbers of letters. A layout engine that searches for them would take most of
    the time.

    Args:
        draw: A function that draws on axes.
        formats: The formats.
        width: The width in inches.

    Returns:
        The content of a file in each format.
    """
    import matplotlib
    from matplotlib.figure import Figure

    style: Any = STYLE | {"font.family": register_small_font()}
    with matplotlib.rc_context(style):
        figure: Any = Figure()
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        draw(axes)
        handles, labels = axes.get_legend_handles_labels()
        columns = 2 if width / 2 > LETTER * max(map(len, labels), default=0) + 0.5 else 1
        labels = [_wrapped(label, width / columns - 0.5) for label in labels]
        lines = sum(label.count("\n") + 1 for label in labels[::columns])
        below = 0.5 + 0.165 * lines + 0.1 * bool(labels)
        axes.set_title(_wrapped(axes.get_title(), 0.85 * (width - 1.1)))
        above = 0.3 + 0.16 * axes.get_title().count("\n")
        height = 0.55 * width + below
        figure.set_size_inches(width, height)
        axes.set_ylabel(_wrapped(axes.get_ylabel(), height - below - above))
        left, right = _margins(axes)
        axes.set_position(
            (left / width, below / height, 1 - (left + right) / width, 1 - (below + above) / height)
        )
        if labels:
            position = {"loc": "lower left", "bbox_to_anchor": (0.1 / width, 0.02)}
            figure.legend(handles, labels, ncols=columns, borderpad=0, **position)
        return _save(figure, formats)


def _wrapped(text: str, inches: float) -> str:
    """Break a text into lines that are not wider than so many inches."""
    return textwrap.fill(text, max(8, int(inches / LETTER)))


def _margins(axes: Any) -> tuple[float, float]:
    """Inches on the left and on the right that the numbers at the ticks and the label need."""
    lengths = []
    for axis in (axes.yaxis, axes.xaxis):
        low, high = sorted(axis.get_view_interval())
        ticks = [tick for tick in axis.get_majorticklocs() if low <= tick <= high]
        texts = axis.get_major_formatter().format_ticks(ticks)
        if axis.get_major_formatter().get_offset():  # such as 1e6, in a corner of its own
            axis.set_major_formatter(lambda value, _: f"{value:g}")
            texts = axis.get_major_formatter().format_ticks(ticks)
        lengths.append(max((len(MATHS.sub("", text)) for text in texts), default=0))
    lines = axes.get_ylabel().count("\n") + 1
    left = max(0.7, 0.22 + 0.16 * lines + DIGIT * lengths[0])
    return left, max(0.1, DIGIT / 2 * lengths[1])


def render_panels(
    draws: Sequence[Callable[[Any], Any]], formats: Sequence[str] = FORMATS
) -> dict[str, bytes]:
    """Render a figure of several panels, up to three in a row.

    Args:
        draws: A function for each panel, which draws on axes.
        formats: The formats.

    Returns:
        The content of a file in each format.
    """
    import matplotlib
    from matplotlib.figure import Figure

    columns = min(3, len(draws))
    rows = -(-len(draws) // columns)
    style: Any = STYLE | {"font.family": register_small_font()}
    with matplotlib.rc_context(style):
        figure: Any = Figure(figsize=(3.2 * columns, PANEL_HEIGHT * rows), layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for panel, draw in zip(panels, draws, strict=False):
            draw(panel)
        for panel in panels[len(draws) :]:
            panel.set_axis_off()
        for each in figure.axes:  # colour bars too
            each.set_ylabel(_wrapped(each.get_ylabel(), PANEL_HEIGHT - 0.6))
        return _save(figure, formats)


def _save(figure: Any, formats: Sequence[str]) -> dict[str, bytes]:
    files = {}
    for form in formats:
        buffer = io.BytesIO()
        # No dates, so that the same results give the same file.
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
        compression: Any = {"pil_kwargs": {"compress_level": 1}} if form == "png" else {}
        figure.savefig(buffer, format=form, metadata=metadata, **compression)
        files[form] = buffer.getvalue()
        figure.set_layout_engine("none")  # The layout of the first format serves all of them.
    return files
