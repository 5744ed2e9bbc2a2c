"""Runs read, summed up and drawn, from stored results alone.

>>> import kernelmdp as km
>>> round(km.report.slope([1, 2, 3, 4], [1.0, 2.0, 3.0, 4.0]), 3)
1.0
"""

from kernelmdp.report.figures import draw_regret
from kernelmdp.report.reading import Runs, read, read_bound, read_columns
from kernelmdp.report.statistics import slope
from kernelmdp.report.summaries import comparisons, summary
from kernelmdp.report.tables import text_table

__all__ = [
    "Runs",
    "comparisons",
    "draw_regret",
    "read",
    "read_bound",
    "read_columns",
    "slope",
    "summary",
    "text_table",
]
