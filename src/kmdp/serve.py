"""The command ``kmdp serve``: ask, act and tell over HTTP."""

import pathlib
import signal
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kmdp.command import app, examples, parse_value
from kmdp.names import AGENTS, completion

if TYPE_CHECKING:
    from kernelmdp.agents import Agent
    from kernelmdp.serving import HTTPServer

#: Heading of the options that take the place of a file.
PLANT = "Describe the plant here, without a file"


@app.command(
    "serve",
    rich_help_panel="Use it on a machine",
    epilog=examples(
        "serve oven.toml --out runs/oven",
        "serve --states 'temperature=0:160' --actions 'power=0:1' --horizon 25",
        "serve runs/river/checkpoint --predict",
    ),
)
def serve_command(
    source: Annotated[
        pathlib.Path | None,
        typer.Argument(
            help="What to serve: a TOML file that describes your plant, a saved agent, or the "
            "folder of a run."
        ),
    ] = None,
    out: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="Where the journal and the agent are kept. Repeat the command to continue. By "
            "default runs/NAME-serve."
        ),
    ] = None,
    predict: Annotated[
        bool, typer.Option("--predict", help="Act as well as it can, and learn nothing.")
    ] = False,
    time_limit: Annotated[
        float | None,
        typer.Option(help="Milliseconds that a decision may take. By default no limit."),
    ] = None,
    states: Annotated[
        str | None,
        typer.Option(
            help="Names and limits of what you measure: 'temperature=0:100,level=0:2'.",
            rich_help_panel=PLANT,
        ),
    ] = None,
    actions: Annotated[
        str | None,
        typer.Option(
            help="Names and limits of what you set: 'power=0:1'.",
            rich_help_panel=PLANT,
        ),
    ] = None,
    horizon: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Periods of an episode.",
            rich_help_panel=PLANT,
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            help="The learning algorithm. By default frugal.",
            autocompletion=completion(AGENTS),
            rich_help_panel=PLANT,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Decides all that is random. By default 0.",
            rich_help_panel=PLANT,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting of the agent. Repeat it for more.",
            rich_help_panel=PLANT,
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            help="The address to listen on. Others than this machine need --token.",
            rich_help_panel="Network and disk",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65535,
            help="The port to listen on. 0 takes a free one.",
            rich_help_panel="Network and disk",
        ),
    ] = 8470,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="KMDP_TOKEN",
            help="Clients must send it as Authorization: Bearer TOKEN.",
            rich_help_panel="Network and disk",
        ),
    ] = None,
    sync: Annotated[
        str,
        typer.Option(
            help="step: an action waits until it is on disk. behind: the disk follows.",
            rich_help_panel="Network and disk",
        ),
    ] = "step",
) -> None:
    """Serve an agent over HTTP, to a control loop in any language."""
    from kernelmdp.serving import Service, open_agent, require_token, serve

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


def _described(given: dict[str, Any]) -> "Agent":
    """The agent of a plant that options describe."""
    from kernelmdp.serving import Plant

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


def _started(server: "HTTPServer") -> None:
    """Say where the server is, and end it in order when the system asks for it."""
    signal.signal(signal.SIGTERM, lambda *_: server.stop())
    service = server.service
    what = f"{service.agent.name} for {service.agent.problem.name}, in {service.folder}"
    print(f"kmdp serve: {what}\nlistening on {server.url}", flush=True)
