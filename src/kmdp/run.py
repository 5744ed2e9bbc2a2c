"""The command ``kmdp run``: let an agent learn in an environment."""

import contextlib
import pathlib
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from kmdp.command import app, examples, parse_value
from kmdp.names import AGENTS, ENVIRONMENTS, completion

if TYPE_CHECKING:
    from kernelmdp.agents import Agent
    from kernelmdp.experiments import Result, RunConfig
    from kernelmdp.experiments.tensorboard import TensorBoardWriter

#: Settings that belong to the environment, but are passed to the agent in Python. Here they need
#: no "env." before them.
OF_ENVIRONMENTS = ("horizon", "action_repeat", "angles")


@app.command(
    "run",
    rich_help_panel="Learn",
    epilog=examples(
        "run riverswim --episodes 100",
        "run Pendulum-v1 --episodes 10 --render learned.gif",
        "run rkhs --agent gp-ucrl --set confidence=valid --set env.horizon=5",
        "run plants:Tank --set horizon=40 --episodes 8 --constraint 'level <= 1.5' --risk 0.05",
    ),
)
def run_command(
    env: Annotated[
        str,
        typer.Argument(
            help="The system to control: a name that `kmdp envs` lists, the id of a Gymnasium "
            "environment such as Pendulum-v1, or module:Name of your own.",
            autocompletion=completion(ENVIRONMENTS),
        ),
    ],
    agent: Annotated[
        str,
        typer.Option(
            help="The learning algorithm. `kmdp agents` says what each one does.",
            autocompletion=completion(AGENTS),
        ),
    ] = "frugal",
    episodes: Annotated[
        int,
        typer.Option(
            min=1, help="How many episodes to play in total, with those that are in the folder."
        ),
    ] = 20,
    seed: Annotated[
        int, typer.Option(min=0, help="Decides all that is random. Same seed, same numbers.")
    ] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting of the agent, such as reward=known or planner=mpc, or env.NAME=VALUE "
            "of the environment. `kmdp agents frugal` lists settings. Repeat it for more.",
        ),
    ] = None,
    out: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="The folder of the run. Repeat the command to continue it. By default "
            "runs/ENV-AGENT-SEED.",
            rich_help_panel="Output",
        ),
    ] = None,
    render: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="Film one episode of the learned controller into this GIF file.",
            rich_help_panel="Output",
        ),
    ] = None,
    tensorboard: Annotated[
        bool,
        typer.Option(
            "--tensorboard",
            help="Also write event files for TensorBoard into the folder.",
            rich_help_panel="Output",
        ),
    ] = False,
    constraint: Annotated[
        list[str] | None,
        typer.Option(
            help="What must stay within limits, such as 'temperature <= 80'. Repeat it for more.",
            rich_help_panel="Safety",
        ),
    ] = None,
    risk: Annotated[
        float | None,
        typer.Option(
            help="The probability of breaking a constraint that you accept, over all episodes.",
            rich_help_panel="Safety",
        ),
    ] = None,
) -> None:
    """Learn to control a system, and keep all results in a folder."""
    from kernelmdp.experiments import run
    from kernelmdp.experiments.playback import draw_episode
    from kernelmdp.experiments.run import load_agent_of_run
    from kernelmdp.experiments.tensorboard import TensorBoardWriter, require_tensorboard
    from kernelmdp.report import draw_regret

    safety = {"constraints": constraint or None, "risk": risk}
    config = _config(env, agent, seed, settings or [], safety)
    if out is None:
        out = pathlib.Path("runs") / f"{file_name(env)}-{file_name(agent)}-{seed}"
    if tensorboard:
        require_tensorboard()
        with contextlib.closing(TensorBoardWriter(out)) as writer:
            result = run(config, out, episodes=episodes, track=_track_with_tensorboard(writer))
    else:
        result = run(config, out, episodes=episodes, track=_track)
    draw_regret([out], out / "figures" / "regret.png")
    _print_summary(result, out)
    if render is not None:
        draw_episode(load_agent_of_run(config, out), render, seed=seed)
        print(f"one episode of the learned policy: {render}")


def file_name(name: str) -> str:
    """Make a name fit for a folder.

    Args:
        name: Any name.

    Returns:
        The name, with other characters than letters, digits, ".", "+" and "-" replaced by "-".
    """
    return re.sub(r"[^\w.+-]+", "-", name)


def _config(
    env: str, agent: str, seed: int, settings: list[str], given: dict[str, Any]
) -> "RunConfig":
    from kernelmdp.experiments import RunConfig

    values: dict[str, dict[str, Any]] = {"env": {}, "agent": {}}
    values["agent"] |= {name: value for name, value in given.items() if value is not None}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise typer.BadParameter(f"--set: expected NAME=VALUE, got {setting}")
        if name.startswith("env.") or name in OF_ENVIRONMENTS:
            values["env"][name.removeprefix("env.")] = parse_value(text)
        else:
            values["agent"][name] = parse_value(text)
    return RunConfig(env, agent, seed, values["env"], values["agent"])


def _track(rows: Any, total: int, agent: "Agent") -> Iterator[dict[str, Any]]:
    """Show progress: a live line in a terminal, ten plain lines elsewhere."""
    from kernelmdp.experiments.progress import FIRST_EPISODES, track

    if total and agent.learns:
        planner = type(agent.planner).__name__
        print(f"{agent.name} plans with {planner}; {FIRST_EPISODES}", file=sys.stderr)
    activity = partial(getattr, agent, "activity")
    yield from track(rows, total=total, agent=agent.name, activity=activity, lines=10)


def _track_with_tensorboard(
    writer: "TensorBoardWriter",
) -> Callable[[Any, int, "Agent"], Iterator[dict[str, Any]]]:
    """Show progress, and write event files meanwhile."""

    def track_and_write(rows: Any, total: int, agent: "Agent") -> Iterator[dict[str, Any]]:
        for row in _track(rows, total, agent):
            writer.update()
            yield row

    return track_and_write


def _print_summary(result: "Result", out: pathlib.Path) -> None:
    import numpy as np

    from kernelmdp.experiments.safety_columns import safety_rows
    from kernelmdp.report import slope

    columns = result.episodes
    table = Table(title=f"{result.agent} on {result.name}", box=None, show_header=False)
    table.add_row("episodes", str(len(columns)))
    table.add_row("last return", f"{columns['return'][-1]:.5g}")
    regret = columns["cumulative_regret"]
    if np.isfinite(regret).all():
        error = columns["optimal_value_error"][-1]
        table.add_row("optimal value", f"{columns['optimal_value'][-1]:.5g} ± {error:.2g}")
        table.add_row("cumulative regret", f"{regret[-1]:.5g}")
        table.add_row("slope of the last half", f"{slope(columns['episode'], regret):.2f}")
    for name in ("reward", "transition"):
        inside = columns[f"covered_{name}"]
        if np.isfinite(inside).all():
            table.add_row(f"{name} set held the truth", f"{np.mean(inside):.0%} of episodes")
    for label, text in safety_rows(columns):
        table.add_row(label, text)
    seconds = (columns["plan_seconds"] + columns["update_seconds"])[2:]
    if len(seconds):
        table.add_row("plan and update", f"{1e3 * np.median(seconds):.1f} ms an episode")
    table.add_row("theory", str(result.coverage))
    last = "" if result.curve is None else f"{result.curve[1][-1]:.4g}: "
    if result.bound != str(result.coverage):
        table.add_row("regret bound", last + result.bound)
    table.add_row("folder", str(out))
    Console().print(table)
