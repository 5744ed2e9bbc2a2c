"""The commands ``kmdp envs`` and ``kmdp agents``."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from kmdp.command import app, examples
from kmdp.names import AGENTS, completion


@app.command(
    "envs",
    rich_help_panel="Find out what there is",
    epilog=examples("envs"),
)
def envs_command() -> None:
    """List the environments that come with the library, with their optimal values."""
    from kernelmdp.envs import make, names

    table = Table("environment", "states", "actions", "horizon", "optimal value", box=None)
    for name in names():
        env = make(name)
        value = "by start" if callable(env.start) else str(env.optimal_value())
        table.add_row(name, str(env.mdp.states), str(env.mdp.actions), str(env.mdp.horizon), value)
    Console().print(table)


@app.command(
    "agents",
    rich_help_panel="Find out what there is",
    epilog=examples("agents", "agents frugal"),
)
def agents_command(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Name of an agent, to list its settings.", autocompletion=completion(AGENTS)
        ),
    ] = None,
) -> None:
    """List the agents (learning algorithms), or every setting of one agent."""
    from kernelmdp.agents import AGENTS as REGISTERED

    if name is not None:
        settings = Table("setting", "default", "meaning", box=None)
        config = REGISTERED.find(name).Config
        for field, meaning in config.meanings().items():
            settings.add_row(field, str(getattr(config, field)), meaning)
        Console().print(settings)
        return
    table = Table("agent", "what it does", box=None)
    for agent_name, agent_class in REGISTERED.items():
        table.add_row(agent_name, (agent_class.__doc__ or "").strip().splitlines()[0])
    Console().print(table)
