"""The figure of ``kmdp bound``: a regret bound against the number of steps."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelmdp.report.axis_scales import checked_scale
from kernelmdp.report.figure_files import SINGLE_WIDTH, write_figure
from kernelmdp.report.figures import MARKERS, line_colour
from kernelmdp.theory import Bound

#: Numbers of episodes at which a bound is evaluated. Between them it is a straight line.
POINTS = 25


def draw_bound(
    bounds: Sequence[Bound], path: Any, *, scale: str = "auto", width: float = SINGLE_WIDTH
) -> None:
    """Draw the versions of a bound and the trivial bound against T.

    Args:
        bounds: The versions of a bound.
        path: The file to write. Its name ends in .pdf, .svg or .png.
        scale: "linear", "log" (the bound) or "log-log" axes, which "auto" takes.
        width: The width in inches.

    >>> import tempfile, os, kernelmdp as km
    >>> bound = km.theory.tabular(states=3, actions=2, horizon=4, episodes=100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     draw_bound([bound], os.path.join(folder, "bound.png"))
    """
    is_log = checked_scale(scale) != "linear"
    useful = (2 * (bound.first_useful or 0) for bound in bounds)
    most = max(4 * bounds[0].episodes, *useful, 10_000)
    spaced = np.geomspace if scale in ("auto", "log-log") else np.linspace
    numbers = sorted({max(4, round(x)) for x in spaced(4, most, POINTS)})
    steps = np.array(numbers) * bounds[0].horizon

    def draw(axes: Any) -> None:
        for number, bound in enumerate(bounds):
            # The logarithm is drawn, as a bound may be too large for a number.
            logs = np.array([bound.at(n).log_value for n in numbers]) / math.log(10)
            values = logs if is_log else np.array([bound.at(n).value for n in numbers])
            marker = {"marker": MARKERS[number], "markersize": 4, "markevery": (2 * number, 6)}
            axes.plot(steps, values, color=line_colour(number), label=bound.version, **marker)
        trivial = [bounds[-1].at(n).trivial for n in numbers]
        trivial = [math.log10(value) for value in trivial] if is_log else trivial
        axes.plot(steps, trivial, "k--", linewidth=1.2, label="trivial: all that can be lost")
        if spaced is np.geomspace:
            axes.set_xscale("log")
        axes.set_xlabel("steps T")
        axes.set_ylabel("regret bound")
        if is_log:
            axes.yaxis.set_major_formatter(lambda value, _: f"1e{value:g}")
            axes.yaxis.get_major_locator().set_params(integer=True, nbins=7)
        axes.set_title(bounds[0].theorem)

    write_figure(draw, path, width=width)
