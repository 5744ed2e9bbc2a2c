"""The commands ``kmdp run``, ``kmdp play``, ``kmdp envs`` and ``kmdp agents``."""

import contextlib
import pathlib
import re
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from kernelmdp.agents import AGENTS, Agent
from kernelmdp.cli.command import app, parse_value
from kernelmdp.envs import make, names
from kernelmdp.experiments import Result, RunConfig, run
from kernelmdp.experiments.playback import draw_episode, play_saved
from kernelmdp.experiments.progress import describe, track
from kernelmdp.experiments.run import load_agent_of_run
from kernelmdp.experiments.tensorboard import TensorBoardWriter, require_tensorboard
from kernelmdp.report import draw_regret, slope


@app.command("run")
def run_command(
    env: Annotated[str, typer.Argument(help="the environment; kmdp envs lists them")],
    out: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="the run's folder; repeat the command to continue  (default: runs/ENV-AGENT-SEED)"
        ),
    ] = None,
    agent: Annotated[str, typer.Option(help="the agent; kmdp agents lists them")] = "gp-ucrl",
    episodes: Annotated[int, typer.Option(min=1, help="in total, with those already played")] = 20,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="NAME=VALUE: a setting of the agent, such as reward=known, confidence=valid, "
            "confidence.delta=0.05, planner=bonus; env.NAME=VALUE for the environment",
        ),
    ] = None,
    constraint: Annotated[
        list[str] | None,
        typer.Option(help="what must stay within limits, such as 'temperature <= 80'"),
    ] = None,
    risk: Annotated[
        float | None, typer.Option(help="the probability of breaking a constraint, in all episodes")
    ] = None,
    render: Annotated[
        pathlib.Path | None, typer.Option(help="write a GIF of the learned policy")
    ] = None,
    tensorboard: Annotated[bool, typer.Option(help="write event files into the folder")] = False,
) -> None:
    """Let an agent learn in an environment."""
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


@app.command("play")
def play_command(
    folder: Annotated[pathlib.Path, typer.Argument(help="the run's folder")],
    episodes: Annotated[int, typer.Option(min=1)] = 3,
    seed: Annotated[int, typer.Option(min=0, help="the seed of starts and noise")] = 0,
    render: Annotated[
        pathlib.Path | None, typer.Option(help="write a GIF of the first episode")
    ] = None,
) -> None:
    """Play the policy that a saved agent has learned. The agent does not learn from it."""
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


@app.command("envs")
def envs_command() -> None:
    """List the environments."""
    table = Table("environment", "states", "actions", "horizon", "optimal value", box=None)
    for name in names():
        env = make(name)
        value = "by start" if callable(env.start) else str(env.optimal_value())
        table.add_row(name, str(env.mdp.states), str(env.mdp.actions), str(env.mdp.horizon), value)
    Console().print(table)


@app.command("agents")
def agents_command(
    name: Annotated[str | None, typer.Argument(help="an agent, to list its settings")] = None,
) -> None:
    """List the agents, or the settings of one agent."""
    if name is not None:
        settings = Table("setting", "default", "meaning", box=None)
        config = AGENTS.find(name).Config
        for field, meaning in config.meanings().items():
            settings.add_row(field, str(getattr(config, field)), meaning)
        Console().print(settings)
        return
    table = Table("agent", "what it does", box=None)
    for agent_name, agent_class in AGENTS.items():
        table.add_row(agent_name, (agent_class.__doc__ or "").strip().splitlines()[0])
    Console().print(table)


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
) -> RunConfig:
    values: dict[str, dict[str, Any]] = {"env": {}, "agent": {}}
    values["agent"] |= {name: value for name, value in given.items() if value is not None}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise typer.BadParameter(f"--set: expected NAME=VALUE, got {setting}")
        if name.startswith("env."):
            values["env"][name.removeprefix("env.")] = parse_value(text)
        else:
            values["agent"][name] = parse_value(text)
    return RunConfig(env, agent, seed, values["env"], values["agent"])


def _track(rows: Any, total: int, agent: Agent) -> Iterator[dict[str, Any]]:
    """Show progress: a live line in a terminal, ten plain lines elsewhere."""
    if total and agent.learns:
        print(f"{agent.name} plans with {type(agent.planner).__name__}", file=sys.stderr)
    every = max(1, total // 10)
    plain = not Console(file=sys.stderr).is_terminal
    for row in track(rows, total=total, agent=agent.name):
        if plain and row["episode"] % every == 0:
            print(f"episode {row['episode']}: {describe(row)}", file=sys.stderr, flush=True)
        yield row


def _track_with_tensorboard(
    writer: TensorBoardWriter,
) -> Callable[[Any, int, Agent], Iterator[dict[str, Any]]]:
    """Show progress, and write event files meanwhile."""

    def track_and_write(rows: Any, total: int, agent: Agent) -> Iterator[dict[str, Any]]:
        for row in _track(rows, total, agent):
            writer.update()
            yield row

    return track_and_write


def _print_summary(result: Result, out: pathlib.Path) -> None:
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
    if "violations" in columns:
        broken = int(np.sum(columns["violations"] > 0))
        table.add_row("episodes with a violation", f"{broken}")
        table.add_row("planned risk, in all", f"{np.nansum(columns['planned_risk']):.3g}")
        table.add_row("fallback acted", f"{np.nanmean(columns['fallback_share']):.0%} of steps")
    seconds = (columns["plan_seconds"] + columns["update_seconds"])[2:]
    if len(seconds):
        table.add_row("plan and update", f"{1e3 * np.median(seconds):.1f} ms an episode")
    table.add_row("theory", str(result.coverage))
    last = "" if result.curve is None else f"{result.curve[1][-1]:.4g}: "
    if result.bound != str(result.coverage):
        table.add_row("regret bound", last + result.bound)
    table.add_row("folder", str(out))
    Console().print(table)
