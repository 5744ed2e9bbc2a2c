"""The command ``kmdp serve``: ask, act and tell over HTTP."""

import pathlib
import signal
from typing import Annotated, Any

import typer

from kernelmdp.agents import Agent
from kernelmdp.cli.command import app, parse_value
from kernelmdp.serving import HTTPServer, Plant, Service, open_agent, serve


@app.command("serve")
def serve_command(
    source: Annotated[
        pathlib.Path | None,
        typer.Argument(help="a TOML file that describes a plant, a saved agent, or a run's folder"),
    ] = None,
    out: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="the folder of journal and agent; repeat the command to continue  "
            "(default: runs/NAME-serve)"
        ),
    ] = None,
    states: Annotated[
        str | None, typer.Option(help="without a file: 'temperature=0:100,level=0:2'")
    ] = None,
    actions: Annotated[str | None, typer.Option(help="without a file: 'power=0:1'")] = None,
    horizon: Annotated[int, typer.Option(min=1, help="without a file: periods an episode")] = 50,
    agent: Annotated[str, typer.Option(help="without a file: the agent")] = "psrl",
    seed: Annotated[int, typer.Option(min=0, help="without a file")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="without a file: NAME=VALUE, a setting of the agent"),
    ] = None,
    predict: Annotated[
        bool, typer.Option("--predict", help="act as predict does, and learn nothing")
    ] = False,
    time_limit: Annotated[
        float | None,
        typer.Option(help="milliseconds that a decision may take  (default: no limit)"),
    ] = None,
    host: Annotated[
        str, typer.Option(help="the address to listen on; others than loopback need --token")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one")] = 8470,
    token: Annotated[
        str | None,
        typer.Option(envvar="KMDP_TOKEN", help="what clients send as Authorization: Bearer TOKEN"),
    ] = None,
    sync: Annotated[
        str, typer.Option(help="step: an action waits for the disk; behind: the disk follows")
    ] = "step",
) -> None:
    """Serve an agent over HTTP: a plant in any language asks, acts and tells."""
    if sync not in ("step", "behind"):
        raise typer.BadParameter("--sync: expected step or behind")
    if (source is None) == (states is None):
        raise typer.BadParameter("expected a file or folder to serve, or --states and --actions")
    if source is not None:
        served, name = open_agent(source), source.stem
    else:
        served, name = _described(states, actions, horizon, agent, seed, settings or []), "plant"
    service = Service(
        served,
        out or pathlib.Path("runs") / f"{name}-serve",
        time_limit=None if time_limit is None else time_limit / 1e3,
        learns=not predict,
        waits_for_disk=sync == "step",
    )
    with service:
        serve(service, host, port, token=token, started=_started)


def _described(
    states: str | None,
    actions: str | None,
    horizon: int,
    agent: str,
    seed: int,
    settings: list[str],
) -> Agent:
    """The agent of a plant that options describe."""
    table: dict[str, Any] = {"name": "plant", "horizon": horizon, "agent": agent, "seed": seed}
    table |= {"states": _limits("states", states), "actions": _limits("actions", actions)}
    pairs = [setting.partition("=") for setting in settings]
    table["settings"] = {setting: parse_value(text) for setting, _, text in pairs}
    return Plant.of(table).make_agent()


def _limits(option: str, text: str | None) -> dict[str, list[float]]:
    """Limits by name, from ``name=low:high`` between commas."""
    limits = {}
    for part in (text or "").split(","):
        name, equals, pair = part.partition("=")
        try:
            low, high = (float(number) for number in pair.split(":"))
        except ValueError:
            equals = ""
        if not equals or not name.strip():
            raise typer.BadParameter(f"--{option}: expected name=low:high, got '{part}'")
        limits[name.strip()] = [low, high]
    return limits


def _started(server: HTTPServer) -> None:
    """Say where the server is, and end it in order when the system asks for it."""
    signal.signal(signal.SIGTERM, lambda *_: server.stop())
    service = server.service
    what = f"{service.agent.name} for {service.agent.problem.name}, in {service.folder}"
    print(f"kmdp serve: {what}\nlistening on {server.url}", flush=True)
