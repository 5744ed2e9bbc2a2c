"""The command ``kmdp bound``: evaluate the regret bound of a theorem."""

import inspect
import math
import pathlib
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from kernelmdp.cli.command import app
from kernelmdp.domains import Box, Domain, FiniteSet, join
from kernelmdp.envs import Environment, make
from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import choice
from kernelmdp.theory import BOUNDS, Bound
from kernelmdp.theory.width_sums import VERSIONS

#: Options that are not passed to the theorem unchanged.
NOT_PASSED = ("theorem", "env", "kernel", "domain", "version", "plot")
#: A part of the text of a domain, such as "state=[-1,1]".
DOMAIN_PART = re.compile(r"\s*(state|action)\s*=\s*(.+?)\s*")
#: An interval with an optional power, such as "[-1,1]^2".
INTERVAL = re.compile(r"\[\s*([^,\]]+)\s*,\s*([^,\]]+)\s*\](?:\s*\^\s*(\d+))?")


@app.command("bound")
def bound_command(
    theorem: Annotated[str, typer.Argument(help=", ".join(BOUNDS))],
    env: Annotated[
        str | None, typer.Option(help="kernels, domain and constants of an environment")
    ] = None,
    kernel: Annotated[
        str | None, typer.Option(help='the kernel of both functions, such as "se(0.5)"')
    ] = None,
    reward_kernel: Annotated[str | None, typer.Option()] = None,
    transition_kernel: Annotated[str | None, typer.Option()] = None,
    domain: Annotated[
        str | None, typer.Option(help='such as "state=[-1,1]; action=[-1,1]^2"')
    ] = None,
    gain_reward: Annotated[float | None, typer.Option(help="instead of a kernel")] = None,
    gain_transition: Annotated[float | None, typer.Option(help="instead of a kernel")] = None,
    horizon: Annotated[int | None, typer.Option(min=1)] = None,
    episodes: Annotated[int, typer.Option(min=1)] = 1000,
    norm_reward: Annotated[float | None, typer.Option(help="B_R")] = None,
    norm_transition: Annotated[float | None, typer.Option(help="B_P")] = None,
    reward_noise: Annotated[float | None, typer.Option(help="σ_R")] = None,
    transition_noise: Annotated[float | None, typer.Option(help="σ_P")] = None,
    lipschitz: Annotated[float | None, typer.Option(help="L")] = None,
    diameter: Annotated[float | None, typer.Option(help="D; by default that of the domain")] = None,
    state_dimension: Annotated[int | None, typer.Option(min=1)] = None,
    action_dimension: Annotated[int | None, typer.Option(min=0)] = None,
    state_radius: Annotated[
        float | None, typer.Option(help="for corollaries: a bound of |s|")
    ] = None,
    action_radius: Annotated[
        float | None, typer.Option(help="for corollaries: a bound of |a|")
    ] = None,
    states: Annotated[int | None, typer.Option(min=1, help="for tabular")] = None,
    actions: Annotated[int | None, typer.Option(min=1, help="for tabular")] = None,
    delta: Annotated[float | None, typer.Option(help="(default: 0.1)")] = None,
    version: Annotated[
        str | None, typer.Option(help=", ".join(VERSIONS) + "  (default: all that apply)")
    ] = None,
    anytime: Annotated[bool | None, typer.Option(help="a bound for all T at once")] = None,
    planner: Annotated[str | None, typer.Option(help="exact, or approximate: adds 2√T")] = None,
    tight: Annotated[
        bool | None, typer.Option(help="compute gains by optimal designs, which is slow")
    ] = None,
    plot: Annotated[
        pathlib.Path | None, typer.Option(help="draw the bound against T into this file")
    ] = None,
) -> None:
    """Evaluate a regret bound: its parts, whether it is vacuous, and from which T it is useful."""
    # ``locals`` comes first: at this point it holds the options and nothing else.
    given_options = {
        name: value
        for name, value in locals().items()
        if value is not None and name not in NOT_PASSED
    }
    function: Any = BOUNDS[choice("theorem", theorem, tuple(BOUNDS))]
    arguments: dict[str, Any] = {} if env is None else environment_arguments(make(env))
    for role in ("reward", "transition"):
        if kernel is not None:
            arguments[f"{role}_kernel"] = kernel
        if f"gain_{role}" in given_options:
            arguments.pop(f"{role}_kernel", None)
    if domain is not None:
        arguments["domain"] = parse_domain(domain)
    if isinstance(arguments.get("domain"), Domain) and "diameter" not in arguments:
        arguments["diameter"] = _diameter(arguments["domain"])
    arguments |= given_options
    bounds = _bounds(function, arguments, VERSIONS if version is None else (version,))
    _print(bounds)
    if plot is not None:
        draw_growth(bounds, plot)
        Console().print(f"figure: {plot}")


def parse_domain(text: str) -> Domain:
    """Parse the text of a domain, such as "state=[-1,1]; action=[-1,1]^2".

    Args:
        text: The text. {n} stands for the numbers 0, …, n − 1.

    Returns:
        The domain of points z = (s, a).

    Raises:
        ArgumentError: If the text has another form.
    """
    parts: dict[str, Domain] = {}
    for piece in text.split(";"):
        match = DOMAIN_PART.fullmatch(piece)
        interval = match and INTERVAL.fullmatch(match[2])
        count = match and re.fullmatch(r"\{\s*(\d+)\s*\}", match[2])
        try:
            if match and interval:
                power = int(interval[3] or 1)
                parts[match[1]] = Box([float(interval[1])] * power, [float(interval[2])] * power)
                continue
        except ValueError:
            pass
        if not (match and count):
            raise ArgumentError("domain", '"state=[-1,1]; action=[-1,1]^2" or {5}', repr(piece))
        parts[match[1]] = FiniteSet.range(int(count[1]))
    if set(parts) != {"state", "action"}:
        raise ArgumentError("domain", "state=... and action=...", repr(text))
    return join(state=parts["state"], action=parts["action"])


def environment_arguments(env: Environment) -> dict[str, Any]:
    """Collect the arguments of theorems from an environment, in the units of learning.

    Args:
        env: The environment.

    Returns:
        Kernels, domain, norms, noise and L, by argument name. Unknown ones are left out.
    """
    mdp, outputs = env.agent_mdp, env.problem.transition_kernel.outputs
    scale = np.array(env.problem.scale)
    low, high = mdp.states.bounds
    arguments = {
        "reward_kernel": env.problem.reward_kernel,
        "transition_kernel": env.problem.transition_kernel,
        "domain": mdp.points,
        "horizon": mdp.horizon,
        "norm_reward": env.problem.norm_reward,
        "norm_transition": env.problem.norm_transition,
        "reward_noise": float(mdp.reward_noise.sub_gaussian_proxies(1).max()),
        "transition_noise": float(
            (mdp.transition_noise.sub_gaussian_proxies(outputs) / scale).max()
        ),
        "lipschitz": env.problem.lipschitz,
    }
    if len(scale) == len(low):
        arguments["diameter"] = float(np.linalg.norm((high - low) / scale))
    return {name: value for name, value in arguments.items() if value is not None}


def draw_growth(bounds: Sequence[Bound], path: pathlib.Path) -> None:
    """Draw bounds and the trivial bound against T, on logarithmic axes.

    Args:
        bounds: The versions of a bound.
        path: The file to write.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    useful = (2 * (bound.first_useful or 0) for bound in bounds)
    most = max(4 * bounds[0].episodes, *useful, 10_000)
    numbers = sorted({max(4, round(x)) for x in np.geomspace(4, most, 25)})
    steps = np.array(numbers) * bounds[0].horizon
    for bound in bounds:
        logs = np.array([bound.at(number).log_value for number in numbers]) / math.log(10)
        axes.plot(steps, logs, label=bound.version)
    trivial = [math.log10(bounds[-1].at(number).trivial) for number in numbers]
    axes.plot(steps, trivial, "k--", label="trivial")
    axes.set_xscale("log")
    axes.set_xlabel("steps T")
    axes.set_ylabel("log10 of the regret bound")
    axes.set_title(bounds[0].theorem)
    axes.legend()
    axes.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _bounds(
    function: Callable[..., Bound], arguments: dict[str, Any], versions: Sequence[str]
) -> list[Bound]:
    """Evaluate every version that applies. It is an error if none does."""
    known = inspect.signature(function).parameters
    for name, parameter in known.items():
        needed = parameter.default is parameter.empty and parameter.kind == parameter.KEYWORD_ONLY
        if needed and name not in arguments:
            raise typer.BadParameter(f"--{name.replace('_', '-')} is needed for this bound")
    bounds, refused = [], []
    for version in versions:
        try:
            bounds.append(function(**_used_arguments(function, arguments), version=version))
        except ArgumentError as error:
            refused.append((version, error))
    if not bounds:
        raise refused[-1][1]
    for version, error in refused:
        typer.echo(f"kmdp: no version '{version}': {error}", err=True)
    return bounds


def _used_arguments(function: Callable[..., Bound], arguments: dict[str, Any]) -> dict[str, Any]:
    """Leave out the arguments that this theorem does not have."""
    unused = {
        "theorem2": ("diameter", "delta", "anytime"),
        "theorem3": ("norm_reward", "norm_transition"),
        "theorem4": ("norm_reward", "norm_transition", "diameter", "delta", "anytime"),
    }.get(function.__name__, ())
    return {name: value for name, value in arguments.items() if name not in unused}


def _diameter(domain: Domain) -> float:
    low, high = domain.project(domain.names["state"]).bounds
    return float(np.linalg.norm(high - low))


def _print(bounds: Sequence[Bound]) -> None:
    first = bounds[0]
    title = f"{first.theorem}: {first.episodes} episodes of {first.horizon}, T = {first.steps}"
    table = Table("", *(bound.version for bound in bounds), title=title, box=None)
    columns = [dict(bound.rows()) for bound in bounds]
    for column, bound in zip(columns, bounds, strict=True):
        useful = bound.first_useful
        column["first useful T"] = (
            "none before 1e12" if useful is None else f"{useful * bound.horizon}"
        )
    parts = [name for bound in bounds for name in bound.log_parts]
    for name in dict.fromkeys([*parts, *(name for column in columns for name in column)]):
        table.add_row(name, *(column.get(name, "") for column in columns))
    Console().print(table)
    notes = (f"{bound.version}: {note}" for bound in bounds for note in bound.warnings)
    for note in dict.fromkeys(notes):
        Console().print(f"note, {note}")
