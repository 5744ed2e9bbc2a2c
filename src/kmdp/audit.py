"""The command ``kmdp audit``: does a stored run agree with the theory?"""

import math
import pathlib
import sys
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
    folder: Annotated[
        pathlib.Path,
        typer.Argument(help="The folder of a run, of a study, or a folder that contains runs."),
    ],
) -> None:
    """Check stored runs against their own data and the theory: lemmas, coverage, certificates."""
    from kernelmdp.experiments.audit import audit
    from kernelmdp.experiments.run_files import CONFIG_FILE

    console = Console()
    if (folder / CONFIG_FILE).exists() or not folder.is_dir():
        result = audit(folder)
        _print(result, console)
        failed = bool(result.failed)
    else:
        failed = _audit_all(folder, console)
    if failed:
        raise typer.Exit(FAILED)


def _audit_all(folder: pathlib.Path, console: Console) -> bool:
    """Audit every run in a folder, one line for each. Return whether a check failed."""
    from kernelmdp.errors import KernelMDPError
    from kernelmdp.experiments.audit import audit
    from kernelmdp.report.reading import find_runs

    runs, studies = find_runs([folder])
    audited, failed = 0, 0
    for number, run in enumerate(runs, start=1):
        print(f"auditing {number} of {len(runs)}: {run}", file=sys.stderr)
        try:
            result = audit(run)
        except KernelMDPError as error:
            console.print(f"{run.name}: not audited, {error}", highlight=False, soft_wrap=True)
            continue
        audited, failed = audited + 1, failed + bool(result.failed)
        console.print(f"{run.name}: {_counts(result)}", highlight=False, soft_wrap=True)
        for check in result.failed:
            text = f"  FAIL {check.name}: {check.note}"
            console.print(text, highlight=False, soft_wrap=True)
    waiting = sum(len(study.not_begun(runs)) for study in studies)
    parts = [f"{audited} of {len(runs) + waiting} trials are audited", f"{failed} fail"]
    parts += [f"{waiting} have not begun"] if waiting else []
    console.print(", ".join(parts), highlight=False)
    return failed > 0


def _counts(result: "Audit") -> str:
    failed, unknown = len(result.failed), len(result.not_checked)
    passed = len(result.checks) - failed - unknown
    return f"{passed} pass, {failed} fail, {unknown} could not be checked"


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
    if result.controller is not None:
        console.print(f"controller: {result.controller}", highlight=False, soft_wrap=True)
    console.print(_counts(result))
    for check in result.failed:
        console.print(f"FAIL {check.name}: {check.note}", highlight=False)


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.5g}"
