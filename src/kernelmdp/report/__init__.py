"""Figures, from stored results alone."""

from kernelmdp.report.regret import draw_regret, read_columns, slope

__all__ = ["draw_regret", "read_columns", "slope"]
