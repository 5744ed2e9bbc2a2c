"""Render figures to files: one style, three formats. The same results give the same bytes."""

import io
from collections.abc import Callable, Sequence
from typing import Any

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
#: The formats of figures: for papers, for the page, and for everything else.
FORMATS = ("pdf", "svg", "png")


def render(
    draw: Callable[[Any], Any], formats: Sequence[str] = FORMATS, width: float = 4.8
) -> dict[str, bytes]:
    """Render a figure.

    The legend is below the axes, where it hides nothing. All positions are computed here, in
    inches. A layout engine that searches for them would take most of the time.

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
        columns = 2 if width / 2 > 0.065 * max(map(len, labels), default=0) + 0.5 else 1
        below = 0.5 + 0.165 * -(-len(labels) // columns) + 0.1 * bool(labels)
        height = 0.55 * width + below
        figure.set_size_inches(width, height)
        axes.set_position(
            (0.7 / width, below / height, 1 - 0.8 / width, 1 - (below + 0.3) / height)
        )
        if labels:
            position = {"loc": "lower left", "bbox_to_anchor": (0.1 / width, 0.02)}
            figure.legend(handles, labels, ncols=columns, borderpad=0, **position)
        return _save(figure, formats)


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
        figure: Any = Figure(figsize=(3.2 * columns, 2.6 * rows), layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for panel, draw in zip(panels, draws, strict=False):
            draw(panel)
        for panel in panels[len(draws) :]:
            panel.set_axis_off()
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
