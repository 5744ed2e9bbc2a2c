"""``kmdp study``: agents x environments x settings x seeds."""

import pathlib
from typing import Annotated

import typer
from rich.console import Console

from kernelmdp.cli.command import app, enable_compilation_cache
from kernelmdp.experiments.studies import study


@app.command("study")
def study_command(
    file: Annotated[pathlib.Path, typer.Argument(help="the study, in TOML")],
    jobs: Annotated[int, typer.Option(min=1, help="processes, a core each")] = 1,
    out: Annotated[
        pathlib.Path | None, typer.Option(help="the study's folder  [default: studies/NAME]")
    ] = None,
    backend: Annotated[str, typer.Option(help="local, or ray for a cluster")] = "local",
    address: Annotated[
        str | None, typer.Option(help="of the Ray cluster  [default: one of --jobs workers here]")
    ] = None,
    tensorboard: Annotated[bool, typer.Option(help="write event files of every run")] = False,
) -> None:
    """Run a study; the same command goes on where it stopped."""
    if address is not None and backend != "ray":
        raise typer.BadParameter("--address is of a Ray cluster: --backend ray")
    enable_compilation_cache()
    found = study(
        file, out=out, jobs=jobs, backend=backend, address=address, tensorboard=tensorboard
    )
    done = len(found.trials) - len(found.failed)
    Console().print(f"{done} of {len(found.trials)} trials are finished, in {found.folder}")
    if found.failed:
        first = next(iter(found.failed.values()))
        typer.echo(f"kmdp: {len(found.failed)} failed; {first.name}: {first.error}", err=True)
        # Bad input is 2; what nobody foresaw is 1.
        raise typer.Exit(1 if any(own.details for own in found.failed.values()) else 2)
