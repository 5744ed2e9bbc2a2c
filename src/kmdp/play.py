"""The command ``kmdp play``: use what a stored run has learned."""

import pathlib
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from kmdp.command import app, examples


@app.command(
    "play",
    rich_help_panel="Learn",
    epilog=examples("play runs/river", "play runs/pendulum --episodes 1 --render learned.gif"),
)
def play_command(
    folder: Annotated[pathlib.Path, typer.Argument(help="The folder of a run.")],
    episodes: Annotated[int, typer.Option(min=1, help="How many episodes to play.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Decides the first states and the noise.")] = 0,
    render: Annotated[
        pathlib.Path | None,
        typer.Option(help="Also film the first episode into this GIF file."),
    ] = None,
) -> None:
    """Play the controller that a run has learned. Nothing is learned from it."""
    from kernelmdp.experiments.playback import draw_episode, play_saved

    agent, played = play_saved(folder, episodes=episodes, seed=seed)
    table = Table(title=f"{agent.name} on {agent.problem.name}", box=None)
    table.add_column("episode")
    table.add_column("steps")
    table.add_column("return")
    for number, episode in enumerate(played, start=1):
        table.add_row(str(number), str(len(episode.rewards)), f"{episode.total:.5g}")
    Console().print(table)
    if render is not None:
        draw_episode(agent, render, seed=seed)
        print(f"the first episode: {render}")
