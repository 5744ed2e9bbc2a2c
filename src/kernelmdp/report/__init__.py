"""Read stored runs, summarise them and draw them. Nothing is computed again.

>>> import kernelmdp as km
>>> import numpy as np
>>> round(km.report.slope(np.arange(1.0, 5.0), np.arange(1.0, 5.0)), 3)
1.0
"""

from kernelmdp.report.bound_figure import draw_bound
from kernelmdp.report.figures import draw_regret
from kernelmdp.report.reading import Runs, read, read_bound, read_columns
from kernelmdp.report.statistics import slope
from kernelmdp.report.summaries import comparisons, summary
from kernelmdp.report.tables import text_table

__all__ = [
    "Runs",
    "comparisons",
    "draw_bound",
    "draw_regret",
    "read",
    "read_bound",
    "read_columns",
    "slope",
    "summary",
    "text_table",
]
