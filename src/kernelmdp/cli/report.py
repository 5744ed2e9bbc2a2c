"""``kmdp report``: stored runs as one page, with figures and tables."""

import pathlib
import shlex
import sys
from typing import Annotated

import typer

from kernelmdp.cli.command import app, enable_compilation_cache
from kernelmdp.errors import KernelMDPError
from kernelmdp.experiments.state_maps import write_maps
from kernelmdp.report import Runs, read, text_table
from kernelmdp.report.page import require_page, write_report

#: Runs that maps are made of: each is lived again, which takes seconds.
MAPPED = 4


@app.command("report")
def report_command(
    folders: Annotated[
        list[pathlib.Path], typer.Argument(help="runs, or folders with runs below them")
    ],
    out: Annotated[
        pathlib.Path | None,
        typer.Option(help="the page  [default: report.html in the folder, if there is one]"),
    ] = None,
    title: Annotated[str | None, typer.Option(help="of the page")] = None,
    episodes: Annotated[
        int | None,
        typer.Option(min=1, help="statistics after so many  [default: as many as all trials have]"),
    ] = None,
    maps: Annotated[
        bool,
        typer.Option(help=f"maps over the states, of the first seeds of at most {MAPPED} agents"),
    ] = True,
) -> None:
    """Make one page of runs: regret, statistics, figures, maps."""
    place = out or (folders[0] if len(folders) == 1 else pathlib.Path()) / "report.html"
    runs = read(*folders)
    require_page(place)
    print(f"{len(runs.trials):,} trials with {len(runs.episodes):,} episodes", file=sys.stderr)
    notes = _map(runs) if maps else []
    written = write_report(
        runs,
        place,
        title=title or f"Report: {', '.join(sorted({*runs.trials['env_name']}))}",
        command=shlex.join(["kmdp", *sys.argv[1:]]),
        episodes=episodes,
        notes=tuple(notes),
    )
    print(text_table(written.statistics))
    for note in [*runs.notes, *notes]:
        print(f"note: {note}", file=sys.stderr)
    print(f"{written.page}, with {written.figures} figures in figures/ and tables/ beside it")


def _map(runs: Runs) -> list[str]:
    """Maps of the first seeds; what could not be mapped is said, and does not stop a report."""
    firsts = runs.trials[runs.trials["episodes"] > 0].sort_values("seed", kind="stable")
    firsts = firsts.groupby(["env", "agent", "setting"]).head(1)
    notes, made = [], 0
    for trial in firsts.itertuples():
        if made == MAPPED:
            notes.append(f"maps are made of {MAPPED} of {len(firsts)} agents")
            break
        if not (pathlib.Path(trial.folder) / "checkpoint").is_file():
            continue
        enable_compilation_cache()
        print(f"maps of {trial.run}", file=sys.stderr)
        try:
            why = write_maps(trial.folder)
        except KernelMDPError as error:
            why = str(error)
        if why is None:
            made += 1
        else:
            notes.append(f"no maps of {trial.run}: {why}")
    return notes
