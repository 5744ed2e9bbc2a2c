"""The command ``kmdp audit``: does a stored run agree with the theory?"""

import math
import pathlib
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from kmdp.command import app, examples

if TYPE_CHECKING:
    from kernelmdp.experiments.audit import Audit

#: The exit code if a check fails: the theory excludes what the run did.
FAILED = 1
#: What is printed for ``Check.holds``.
VERDICTS = {True: "pass", False: "FAIL", None: "not checked"}


@app.command(
    "audit", rich_help_panel="Theory", epilog=examples("audit runs/river", "audit studies/penalty")
)
def audit_command(
    folder: Annotated[pathlib.Path, typer.Argument(help="The folder of a run.")],
) -> None:
    """Check every lemma, the coverage and the certificates of a stored run."""
    from kernelmdp.experiments.audit import audit

    result = audit(folder)
    _print(result, Console())
    if result.failed:
        raise typer.Exit(FAILED)


def _print(result: "Audit", console: Console) -> None:
    title = f"{result.agent} on {result.env}, {result.episodes} episodes"
    table = Table("check", "left", "right", "slack", "verdict", "note", title=title, box=None)
    for check in result.checks:
        numbers = [_number(value) for value in (check.left, check.right, check.slack)]
        table.add_row(check.name, *numbers, VERDICTS[check.holds], check.note)
    console.print(table)
    if result.assumptions:
        assumptions = Table("assumption of the theorem", "", "why it fails", box=None)
        for each in result.assumptions:
            assumptions.add_row(each.name, "✓" if each.holds else "✗", "; ".join(each.reasons))
        console.print(assumptions)
    bounds = Table("regret and its certificates", "", "", box=None)
    bounds.add_row("regret", _number(result.regret) or "not known", "")
    for certificate in result.certificates:
        note = f"probability {certificate.probability:.3g}; {'; '.join(certificate.assumes)}"
        bounds.add_row(certificate.name, _number(certificate.total), note)
    bounds.add_row("theory", str(result.coverage), "")
    console.print(bounds)
    failed = len(result.failed)
    passed = len(result.checks) - failed - len(result.not_checked)
    console.print(f"{passed} pass, {failed} fail, {len(result.not_checked)} could not be checked")
    for check in result.failed:
        console.print(f"FAIL {check.name}: {check.note}", highlight=False)


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.5g}"
