"""The command ``kmdp serve``: ask, act and tell over HTTP."""

import pathlib
import signal
from typing import Annotated, Any

import typer

from kernelmdp.agents import Agent
from kernelmdp.cli.command import app, parse_value
from kernelmdp.serving import HTTPServer, Plant, Service, open_agent, require_token, serve


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
    horizon: Annotated[
        int | None, typer.Option(min=1, help="without a file: periods of an episode")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="without a file  (default: psrl)")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="without a file  (default: 0)")] = None,
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
    require_token(host, token)
    described: dict[str, Any] = {
        "states": states,
        "actions": actions,
        "horizon": horizon,
        "agent": agent,
    }
    described |= {"seed": seed, "set": settings or None}
    given = {name: value for name, value in described.items() if value is not None}
    if source is not None and given:
        names = ", ".join(f"--{name}" for name in given)
        raise typer.BadParameter(f"{names}: only without a file; write it into {source}")
    if source is None and not {"states", "actions", "horizon"} <= set(given):
        raise typer.BadParameter("expected a file or folder, or --states, --actions and --horizon")
    served = _described(given) if source is None else open_agent(source)
    name = "plant" if source is None else source.stem
    service = Service(
        served,
        out or pathlib.Path("runs") / f"{name}-serve",
        time_limit=None if time_limit is None else time_limit / 1e3,
        learns=not predict,
        waits_for_disk=sync == "step",
    )
    with service:
        serve(service, host, port, token=token, started=_started)


def _described(given: dict[str, Any]) -> Agent:
    """The agent of a plant that options describe."""
    limits = {option: _limits(option, given.pop(option)) for option in ("states", "actions")}
    pairs = [setting.partition("=") for setting in given.pop("set", [])]
    settings = {name: parse_value(text) for name, _, text in pairs}
    return Plant.of({"name": "plant", "settings": settings} | given | limits).make_agent()


def _limits(option: str, text: str) -> dict[str, list[float]]:
    """Limits by name, from ``name=low:high`` between commas."""
    limits = {}
    for part in text.split(","):
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
