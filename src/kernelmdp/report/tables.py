"""Format tables as text, CSV, Markdown and LaTeX, with intervals."""

import math
from typing import Any

from kernelmdp.errors import ArgumentError
from kernelmdp.report.reading import Frame

#: Columns with an interval. Its ends are in columns named "… low" and "… high".
ESTIMATES = ("mean", "median", "iqm", "slope", "difference")
#: Columns that are shown in per cent.
SHARES = ("coverage", "first better")
#: LaTeX for characters that are special there, or that a number may contain.
LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "−": r"$-$",
    "–": "--",
    "∞": r"$\infty$",
}


def table_cells(frame: Frame) -> tuple[list[str], list[list[str]]]:
    """Format a table of ``summaries`` as texts. An estimate is joined with its interval.

    Args:
        frame: The table.

    Returns:
        The header, and the rows of cells.
    """
    ends = {f"{name} {end}" for name in ESTIMATES for end in ("low", "high")}
    names = [name for name in frame.columns if name not in ends]
    rows = [[_cell(name, row) for name in names] for row in frame.to_dict("records")]
    return [_title(name) for name in names], rows


def text_table(frame: Frame, form: str = "text") -> str:
    r"""Format a table.

    Args:
        frame: A table of ``summary`` or ``comparisons``.
        form: "text", "csv" (with all digits), "markdown" or "latex".

    Returns:
        The text.

    Raises:
        ArgumentError: If there is no such format.

    >>> import pandas as pd
    >>> frame = pd.DataFrame([{"agent": "a_1", "mean": 2.0, "mean low": 1.5, "mean high": 2.25}])
    >>> print(text_table(frame, "markdown"))
    | agent | mean |
    |---|---|
    | a_1 | 2.00 [1.50, 2.25] |
    >>> print(text_table(frame, "latex").splitlines()[3])
    a\_1 & 2.00 [1.50, 2.25] \\
    """
    if form == "csv":
        return frame.to_csv(index=False)
    header, rows = table_cells(frame)
    if form == "text":
        return _aligned(header, rows)
    if form == "markdown":
        return _markdown(header, rows)
    if form == "latex":
        return _latex(header, rows)
    raise ArgumentError("form", "text, csv, markdown or latex", repr(form))


def format_number(value: Any, digits: int = 3) -> str:
    """Format a number with some significant digits, without an exponent from 0.001 to a million.

    Args:
        value: The number.
        digits: The number of significant digits.

    Returns:
        The text; "–" for NaN.
    """
    value = float(value)
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    size = abs(value)
    if size and not 1e-3 <= size < 1e6:
        return f"{value:.{digits - 1}e}".replace("-", "−", 1 if value < 0 else 0)
    places = max(0, digits - 1 - (math.floor(math.log10(size)) if size else 0))
    return f"{value:,.{places}f}".replace("-", "−")


def format_estimate(value: float, low: float, high: float) -> str:
    """Format a number with its interval.

    Args:
        value: The number.
        low: The lower end of the interval; NaN if there is none, as for one seed.
        high: The upper end.

    Returns:
        The text.
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return format_number(value)
    return f"{format_number(value)} [{format_number(low)}, {format_number(high)}]"


def _title(name: str) -> str:
    titles = {"iqm": "interquartile mean", "milliseconds": "ms an episode"}
    return titles.get(name, name)


def _cell(name: str, row: dict[str, Any]) -> str:
    value = row[name]
    if name in ESTIMATES:
        return format_estimate(value, row[f"{name} low"], row[f"{name} high"])
    if name in SHARES:
        return "–" if math.isnan(value) else f"{value:.0%}"
    if isinstance(value, float):
        return format_number(value)
    return str(value)


def _aligned(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _markdown(header: list[str], rows: list[list[str]]) -> str:
    def line(texts: list[str]) -> str:
        # Escape what would end a cell or be markup.
        safe = (
            text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;") for text in texts
        )
        return "| " + " | ".join(" ".join(text.split()) for text in safe) + " |"

    return "\n".join([line(header), "|" + "---|" * len(header), *map(line, rows)])


def _latex(header: list[str], rows: list[list[str]]) -> str:
    def line(texts: list[str]) -> str:
        return " & ".join("".join(LATEX.get(c, c) for c in text) for text in texts) + r" \\"

    return "\n".join(
        [
            r"\begin{tabular}{" + "l" * len(header) + "}",
            line(header),
            r"\hline",
            *map(line, rows),
            r"\end{tabular}",
        ]
    )
