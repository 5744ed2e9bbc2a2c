"""The command ``kmdp study``: play agents × environments × settings × seeds."""

import pathlib
from typing import Annotated

import typer
from rich.console import Console

from kernelmdp.cli.command import app
from kernelmdp.experiments.studies import study


@app.command("study")
def study_command(
    file: Annotated[pathlib.Path, typer.Argument(help="the definition of the study, a TOML file")],
    jobs: Annotated[int, typer.Option(min=1, help="worker processes, one core each")] = 1,
    out: Annotated[
        pathlib.Path | None, typer.Option(help="the study's folder  (default: studies/NAME)")
    ] = None,
    backend: Annotated[str, typer.Option(help="local, or ray for a cluster")] = "local",
    address: Annotated[
        str | None, typer.Option(help="the Ray cluster  (default: start one with --jobs workers)")
    ] = None,
    tensorboard: Annotated[bool, typer.Option(help="write event files of every run")] = False,
    vectorised: Annotated[
        bool,
        typer.Option(help="play runs that differ in seeds and numbers only in one program"),
    ] = False,
) -> None:
    """Run a study. Repeat the command to continue it."""
    if address is not None and backend != "ray":
        raise typer.BadParameter("--address is of a Ray cluster: --backend ray")
    result = study(
        file,
        out=out,
        jobs=jobs,
        backend=backend,
        address=address,
        tensorboard=tensorboard,
        vectorise=vectorised,
    )
    finished = len(result.trials) - len(result.failed)
    Console().print(f"{finished} of {len(result.trials)} trials are finished, in {result.folder}")
    if result.failed:
        first = next(iter(result.failed.values()))
        typer.echo(f"kmdp: {len(result.failed)} failed; {first.name}: {first.error}", err=True)
        # The exit code is 2 for bad input and 1 for unexpected errors, which have a traceback.
        raise typer.Exit(1 if any(trial.details for trial in result.failed.values()) else 2)
