"""The command ``kmdp export``: the controller of a run as a file that needs no library."""

import pathlib
from typing import Annotated

import typer

from kernelmdp.cli.command import app, parse_value
from kernelmdp.experiments.run import load_agent_of_run
from kernelmdp.experiments.run_files import read_config


@app.command("export")
def export_command(
    folder: Annotated[pathlib.Path, typer.Argument(help="the run's folder")],
    out: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="the file, which ends in .c, .onnx, .npz, .stablehlo, or .py for a model  "
            "(default: controller.c in the folder)"
        ),
    ] = None,
    state_points: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="nodes along each axis for the table of a grid plan  (default: those of the plan)",
        ),
    ] = None,
    interpolation: Annotated[
        str | None, typer.Option(help="linear or nearest between nodes of a grid plan")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="a setting of a distilled controller, such as rounds=6; repeat it for more",
        ),
    ] = None,
    model: Annotated[
        bool, typer.Option("--model", help="write the learned model instead of the controller")
    ] = False,
) -> None:
    """Write the controller that a saved agent has learned, or its model, for other programs."""
    given = {"state_points": state_points, "interpolation": interpolation}
    options = {name: value for name, value in given.items() if value is not None}
    for text in settings or []:
        name, equals, value = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"--set: expected NAME=VALUE, got {text!r}")
        options[name] = parse_value(value)
    if model:
        options["of"] = "model"
    agent = load_agent_of_run(read_config(folder), folder)
    export = agent.export(out or folder / "controller.c", **options)
    print(f"{export.path}: {export}")
