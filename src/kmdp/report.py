"""The command ``kmdp report``: one page of stored runs, with figures and tables."""

import pathlib
import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from kmdp.command import app, examples

if TYPE_CHECKING:
    from kernelmdp.experiments.run_tables import Frame
    from kernelmdp.report import Runs

#: Most runs of which maps are made. Each of them is replayed, which takes seconds.
MAX_MAPPED = 4


@app.command(
    "report",
    rich_help_panel="Look at results",
    epilog=examples(
        "report runs/river",
        "report studies/penalty --title 'With and without a penalty'",
        "report old/penalty new/penalty --label before --label after --out both.html",
        "report runs/river --width one-column --scale log-log --no-maps",
    ),
)
def report_command(
    folders: Annotated[
        list[pathlib.Path],
        typer.Argument(help="Folders of runs or studies, or folders that contain them."),
    ],
    out: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="The page to write. By default report.html in the folder, if there is only one."
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            help="A name for each folder, in their order. Compares folders with the same trials, "
            "such as a study before and after a change."
        ),
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Compute statistics after this many episodes. By default as many as all have.",
        ),
    ] = None,
    maps: Annotated[
        bool,
        typer.Option(
            help=f"Draw maps over the states, for at most {MAX_MAPPED} agents. It takes seconds."
        ),
    ] = True,
    scale: Annotated[
        str,
        typer.Option(
            help="Axes: linear, log or log-log. auto chooses for each figure.",
            rich_help_panel="Figures",
        ),
    ] = "auto",
    width: Annotated[
        str,
        typer.Option(
            help="Width: one-column or two-column of a paper, or inches.",
            rich_help_panel="Figures",
        ),
    ] = "4.8",
    vacuous: Annotated[
        bool,
        typer.Option(
            "--vacuous",
            help="Also draw regret bounds above all that can be lost. The legend tells of them "
            "in any case.",
            rich_help_panel="Figures",
        ),
    ] = False,
) -> None:
    """Make one page of results: regret, statistics over seeds, figures, maps."""
    from kernelmdp.report import read, text_table
    from kernelmdp.report.axis_scales import checked_scale
    from kernelmdp.report.page import counted, require_page, write_report
    from kernelmdp.report.rendering import figure_width

    page = out or (folders[0] if len(folders) == 1 else pathlib.Path()) / "report.html"
    checked_scale(scale)
    inches = figure_width(width)
    runs = read(*folders, labels=label or None)
    require_page(page)
    counts = counted(len(runs.trials), "trial"), counted(len(runs.episodes), "episode")
    print(" with ".join(counts), file=sys.stderr)
    notes = _make_maps(runs) if maps else []
    notes += _record_safety(runs, replan=maps)
    written = write_report(
        runs,
        page,
        title=title or f"Report: {', '.join(sorted({*runs.trials['env_name']}))}",
        command=shlex.join(["kmdp", *sys.argv[1:]]),
        episodes=episodes,
        notes=tuple(notes),
        scale=scale,
        vacuous=vacuous,
        width=inches,
    )
    print(text_table(written.statistics))
    for note in [*runs.notes, *notes]:
        print(f"note: {note}", file=sys.stderr)
    print(f"{written.page}, with {written.figures} figures in figures/ and tables/ beside it")


def _make_maps(runs: "Runs") -> list[str]:
    """Make maps of the first seeds, and return notes on runs without maps."""
    from kernelmdp.errors import KernelMDPError
    from kernelmdp.experiments.state_maps import write_maps

    first_seeds = _first_seeds(runs)
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
        except Exception as error:  # of an agent or environment of the user's own
            reason = f"{type(error).__name__}: {error}"
        if reason is None:
            count += 1
        else:
            notes.append(f"no maps of {trial.run}: {reason}")
    return notes


def _record_safety(runs: "Runs", *, replan: bool) -> list[str]:
    """Record how close the first seeds came to their limits, and return notes on failures."""
    from kernelmdp.errors import KernelMDPError
    from kernelmdp.experiments.safety_record import write_safety
    from kernelmdp.report.safety_figures import has_constraints

    if not has_constraints(runs):
        return []
    judged = runs.episodes[runs.episodes["violations"].notna()]["run"].unique()
    first_seeds = _first_seeds(runs)
    first_seeds = first_seeds[first_seeds["run"].isin(judged)]
    notes = []
    if len(first_seeds) > MAX_MAPPED:
        notes.append(f"limits are drawn of {MAX_MAPPED} of {len(first_seeds)} agents")
    for trial in first_seeds.head(MAX_MAPPED).itertuples():
        try:
            reason = write_safety(trial.folder, replan=replan)
        except KernelMDPError as error:
            reason = str(error)
        except Exception as error:  # of an agent or environment of the user's own
            reason = f"{type(error).__name__}: {error}"
        if reason is not None:
            notes.append(f"no figure of the limits of {trial.run}: {reason}")
    return notes


def _first_seeds(runs: "Runs") -> "Frame":
    """Return the trials of the first seed of each agent, among those with episodes."""
    trials = runs.trials[runs.trials["episodes"] > 0].sort_values("seed", kind="stable")
    return trials.groupby(["env", "label", "agent", "setting"]).head(1)
