"""Linear and logarithmic axes, with plain numbers at their ticks."""

import math
from typing import Any

from kernelmdp.numerics.checks import choice

#: How axes may be chosen. "auto" takes logarithms where a linear axis would hide what matters, and
#: "log-log" is the one on which a power of the episodes is a straight line.
SCALES = ("auto", "linear", "log", "log-log")


def checked_scale(scale: str) -> str:
    """Check the name of a scale.

    Args:
        scale: The name.

    Returns:
        The name.

    >>> checked_scale("log")
    'log'
    """
    return choice("scale", scale, SCALES)


def set_scale(axes: Any, scale: str) -> None:
    """Make the axes of a figure linear or logarithmic.

    Args:
        axes: Axes of Matplotlib, with everything drawn. Limits that were set stay, as for shares.
        scale: One of ``SCALES``. "auto" changes nothing.
    """
    if checked_scale(scale) == "auto" or not axes.lines or not axes.get_autoscaley_on():
        return
    if scale == "linear":
        axes.set_yscale("linear")
        axes.yaxis.get_major_locator().set_params(nbins=6)
        return
    values = [value for line in axes.lines for value in line.get_ydata() if math.isfinite(value)]
    make_logarithmic(axes, positive=bool(values and min(values) > 0))
    if scale == "log-log":
        axes.set_xscale("log")
        axes.set_xlim(left=1)
        _set_plain_ticks(axes.xaxis)


def make_logarithmic(axes: Any, *, positive: bool = True) -> None:
    """Make the axis logarithmic, with plain numbers at its ticks, also within one decade.

    Args:
        axes: Axes of Matplotlib.
        positive: Whether all numbers are positive. If not, the axis is linear below 1, as for an
            oracle's regret.
    """
    if positive:
        axes.set_yscale("log")
        _set_plain_ticks(axes.yaxis)
        return
    axes.set_yscale("symlog", linthresh=1.0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _set_plain_ticks(axis: Any) -> None:
    """Put plain numbers at the ticks of a logarithmic axis: 1, 2, 5, 10 where there is place."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    low, high = sorted(axis.get_view_interval())
    decades = math.log10(high / low) if 0 < low < high else 0
    ticks = LogLocator(subs=(1,) if decades > 3 else (1, 2, 5))
    axis.set_major_locator(ticks if decades > 0.7 else MaxNLocator(5))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
