"""``kmdp audit``: did a stored run behave as the theory says?"""

import math
import pathlib
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from kernelmdp.cli.command import app, enable_compilation_cache
from kernelmdp.experiments.audit import Audit, audit

#: The code of a run that did what the theory says cannot happen.
FAILED = 1
VERDICTS = {True: "pass", False: "FAIL", None: "not checked"}


@app.command("audit")
def audit_command(
    folder: Annotated[pathlib.Path, typer.Argument(help="a run's folder, as kmdp run leaves it")],
) -> None:
    """Check every lemma, the coverage and the certificates of a stored run."""
    enable_compilation_cache()
    found = audit(folder)
    _print(found, Console())
    if found.failed:
        raise typer.Exit(FAILED)


def _print(found: Audit, console: Console) -> None:
    title = f"{found.agent} on {found.env}, {found.episodes} episodes"
    table = Table("check", "left", "right", "slack", "verdict", "note", title=title, box=None)
    for check in found.checks:
        numbers = [_number(value) for value in (check.left, check.right, check.slack)]
        table.add_row(check.name, *numbers, VERDICTS[check.holds], check.note)
    console.print(table)
    bounds = Table("regret and its certificates", "", "", box=None)
    bounds.add_row("regret", _number(found.regret) or "not known", "")
    for made in found.certificates:
        words = f"probability {made.probability:.3g}; {'; '.join(made.assumes)}"
        bounds.add_row(made.name, _number(made.total), words)
    bounds.add_row("theory", str(found.coverage), "")
    console.print(bounds)
    failed = len(found.failed)
    passed = len(found.checks) - failed - len(found.not_checked)
    console.print(f"{passed} pass, {failed} fail, {len(found.not_checked)} could not be checked")
    for check in found.failed:
        console.print(f"FAIL {check.name}: {check.note}", highlight=False)


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.5g}"
