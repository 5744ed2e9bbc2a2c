"""The command ``kmdp report``: one page of stored runs, with figures and tables."""

import pathlib
import shlex
import sys
from typing import Annotated

import typer

from kernelmdp.cli.command import app
from kernelmdp.errors import KernelMDPError
from kernelmdp.experiments.state_maps import write_maps
from kernelmdp.report import Runs, read, text_table
from kernelmdp.report.page import require_page, write_report

#: Most runs of which maps are made. Each of them is replayed, which takes seconds.
MAX_MAPPED = 4


@app.command("report")
def report_command(
    folders: Annotated[
        list[pathlib.Path], typer.Argument(help="folders of runs, or folders that contain them")
    ],
    out: Annotated[
        pathlib.Path | None,
        typer.Option(help="the page  (default: report.html in the folder, if only one is given)"),
    ] = None,
    title: Annotated[str | None, typer.Option(help="the title of the page")] = None,
    episodes: Annotated[
        int | None,
        typer.Option(
            min=1, help="compute statistics after this many  (default: as many as all trials have)"
        ),
    ] = None,
    maps: Annotated[
        bool,
        typer.Option(help=f"draw maps over the states, for at most {MAX_MAPPED} agents"),
    ] = True,
) -> None:
    """Make one page of runs: regret, statistics, figures, maps."""
    page = out or (folders[0] if len(folders) == 1 else pathlib.Path()) / "report.html"
    runs = read(*folders)
    require_page(page)
    print(f"{len(runs.trials):,} trials with {len(runs.episodes):,} episodes", file=sys.stderr)
    notes = _make_maps(runs) if maps else []
    written = write_report(
        runs,
        page,
        title=title or f"Report: {', '.join(sorted({*runs.trials['env_name']}))}",
        command=shlex.join(["kmdp", *sys.argv[1:]]),
        episodes=episodes,
        notes=tuple(notes),
    )
    print(text_table(written.statistics))
    for note in [*runs.notes, *notes]:
        print(f"note: {note}", file=sys.stderr)
    print(f"{written.page}, with {written.figures} figures in figures/ and tables/ beside it")


def _make_maps(runs: Runs) -> list[str]:
    """Make maps of the first seeds, and return notes on runs without maps."""
    first_seeds = runs.trials[runs.trials["episodes"] > 0].sort_values("seed", kind="stable")
    first_seeds = first_seeds.groupby(["env", "agent", "setting"]).head(1)
    notes, count = [], 0
    for trial in first_seeds.itertuples():
        if count == MAX_MAPPED:
            notes.append(f"maps are made of {MAX_MAPPED} of {len(first_seeds)} agents")
            break
        if not (pathlib.Path(trial.folder) / "checkpoint").is_file():
            continue
        print(f"maps of {trial.run}", file=sys.stderr)
        try:
            reason = write_maps(trial.folder)
        except KernelMDPError as error:
            reason = str(error)
        if reason is None:
            count += 1
        else:
            notes.append(f"no maps of {trial.run}: {reason}")
    return notes
