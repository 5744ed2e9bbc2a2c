"""The command ``kmdp study``: play agents × environments × settings × seeds."""

import pathlib
from typing import Annotated

import typer
from rich.console import Console

from kmdp.command import app, examples


@app.command(
    "study",
    rich_help_panel="Learn",
    epilog=examples(
        "study penalty.toml --jobs 4",
        "study hundred.toml --vectorised --jobs 2",
        "study penalty.toml --backend ray --address 10.0.0.1:6379",
    ),
)
def study_command(
    file: Annotated[
        pathlib.Path,
        typer.Argument(help="A TOML file with the agents, environments, settings and seeds."),
    ],
    out: Annotated[
        pathlib.Path | None,
        typer.Option(help="The folder of the study. By default studies/NAME."),
    ] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write event files for TensorBoard.")
    ] = False,
    jobs: Annotated[
        int,
        typer.Option(
            min=1,
            help="How many runs are played at the same time, one processor core each.",
            rich_help_panel="Speed",
        ),
    ] = 1,
    vectorised: Annotated[
        bool,
        typer.Option(
            "--vectorised",
            help="Play all seeds of an agent in one compiled program. Much faster for many seeds; "
            "works with fixed kernels on environments of the library.",
            rich_help_panel="Speed",
        ),
    ] = False,
    backend: Annotated[
        str,
        typer.Option(
            help="Where runs are played: local (this machine) or ray (a cluster).",
            rich_help_panel="Speed",
        ),
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            help="Address of the Ray cluster. By default one is started here.",
            rich_help_panel="Speed",
        ),
    ] = None,
) -> None:
    """Compare agents on environments over many seeds. Repeat the command to continue it."""
    from kernelmdp.experiments.studies import study

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
