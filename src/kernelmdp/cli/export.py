"""The command ``kmdp export``: the controller of a run as a file that needs no library."""

import pathlib
from typing import Annotated

import typer

from kernelmdp.cli.command import app
from kernelmdp.experiments.run import load_agent_of_run
from kernelmdp.experiments.run_files import read_config


@app.command("export")
def export_command(
    folder: Annotated[pathlib.Path, typer.Argument(help="the run's folder")],
    out: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="the file, which ends in .c, .onnx, .npz or .stablehlo  "
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
) -> None:
    """Write the controller that a saved agent has learned as C, ONNX, NumPy or StableHLO."""
    given = {"state_points": state_points, "interpolation": interpolation}
    options = {name: value for name, value in given.items() if value is not None}
    agent = load_agent_of_run(read_config(folder), folder)
    export = agent.export(out or folder / "controller.c", **options)
    print(f"{export.path}: {export}")
