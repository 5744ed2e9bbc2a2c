"""The command ``kmdp export``: the controller of a run as a file that needs no library."""

import pathlib
from typing import Annotated, Any

import typer

from kmdp.command import app, examples, parse_value


@app.command(
    "export",
    rich_help_panel="Use it on a machine",
    epilog=examples(
        "export runs/river",
        "export runs/pendulum --out controller.onnx",
        "export runs/pendulum --model --out model.py",
    ),
)
def export_command(
    folder: Annotated[pathlib.Path, typer.Argument(help="The folder of a run.")],
    out: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="The file to write. Its ending is the format: .c, .onnx, .npz or .stablehlo, and "
            ".py for a model. By default controller.c in the folder."
        ),
    ] = None,
    model: Annotated[
        bool,
        typer.Option("--model", help="Write the learned model of the system, not the controller."),
    ] = False,
    state_points: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="For plans on a grid: nodes along each axis. By default as many as the plan has.",
            rich_help_panel="Details of the controller",
        ),
    ] = None,
    interpolation: Annotated[
        str | None,
        typer.Option(
            help="For plans on a grid: linear or nearest, between nodes.",
            rich_help_panel="Details of the controller",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="For plans of MPC: a setting of the network that imitates them, such as "
            "rounds=6. Repeat it for more.",
            rich_help_panel="Details of the controller",
        ),
    ] = None,
) -> None:
    """Write the learned controller as C, ONNX, NumPy or StableHLO, to run without this library."""
    from kernelmdp.experiments.run import load_agent_of_run
    from kernelmdp.experiments.run_files import read_config

    given = {"state_points": state_points, "interpolation": interpolation}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
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
