"""Tables as text, CSV, Markdown and LaTeX, numbers with their intervals."""

import math
from typing import Any

from kernelmdp.errors import ArgumentError
from kernelmdp.report.reading import Frame

#: Columns that have an interval, in columns of their own named "… low" and "… high".
ESTIMATES = ("mean", "median", "iqm", "slope", "difference")
SHARES = ("coverage", "first better")
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


def cells(frame: Frame) -> tuple[list[str], list[list[str]]]:
    """A frame of ``summaries`` for people: header and rows, an estimate with its interval."""
    ends = {f"{name} {end}" for name in ESTIMATES for end in ("low", "high")}
    names = [name for name in frame.columns if name not in ends]
    rows = [[_cell(name, row) for name in names] for row in frame.to_dict("records")]
    return [_title(name) for name in names], rows


def text_table(frame: Frame, form: str = "text") -> str:
    """The table as "text", "csv" (all digits), "markdown" or "latex".

    >>> import pandas as pd
    >>> frame = pd.DataFrame([{"agent": "a_1", "mean": 2.0, "mean low": 1.5, "mean high": 2.25}])
    >>> print(text_table(frame, "markdown"))
    | agent | mean |
    |---|---|
    | a_1 | 2.00 [1.50, 2.25] |
    >>> print(text_table(frame, "latex").splitlines()[3])
    a\\_1 & 2.00 [1.50, 2.25] \\\\
    """
    if form == "csv":
        return frame.to_csv(index=False)
    header, rows = cells(frame)
    if form == "text":
        return _aligned(header, rows)
    if form == "markdown":
        return _markdown(header, rows)
    if form == "latex":
        return _latex(header, rows)
    raise ArgumentError("form", "text, csv, markdown or latex", repr(form))


def number(value: Any, digits: int = 3) -> str:
    """A number as people read it: so many digits that count, no exponent where none is needed."""
    value = float(value)
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    size = abs(value)
    if size and not 1e-3 <= size < 1e6:
        return f"{value:.{digits - 1}e}".replace("-", "−", 1 if value < 0 else 0)
    places = max(0, digits - 1 - (math.floor(math.log10(size)) if size else 0))
    return f"{value:,.{places}f}".replace("-", "−")


def estimate(value: float, low: float, high: float) -> str:
    """A number with its interval; one seed has none."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return number(value)
    return f"{number(value)} [{number(low)}, {number(high)}]"


def _title(name: str) -> str:
    titles = {"iqm": "interquartile mean", "milliseconds": "ms an episode"}
    return titles.get(name, name)


def _cell(name: str, row: dict[str, Any]) -> str:
    value = row[name]
    if name in ESTIMATES:
        return estimate(value, row[f"{name} low"], row[f"{name} high"])
    if name in SHARES:
        return "–" if math.isnan(value) else f"{value:.0%}"
    if isinstance(value, float):
        return number(value)
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
        # What would end a cell, or be markup.
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
