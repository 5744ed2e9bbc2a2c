"""``kmdp bound``: what a theorem promises."""

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

from kernelmdp.cli.command import app, enable_compilation_cache
from kernelmdp.domains import Box, Domain, FiniteSet, join
from kernelmdp.envs import Environment, make
from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import choice
from kernelmdp.theory import BOUNDS, Bound
from kernelmdp.theory.width_sums import VERSIONS

#: Options that are no words of the theorem as they come.
APART = ("theorem", "env", "kernel", "domain", "version", "plot")
PART = re.compile(r"\s*(state|action)\s*=\s*(.+?)\s*")
INTERVAL = re.compile(r"\[\s*([^,\]]+)\s*,\s*([^,\]]+)\s*\](?:\s*\^\s*(\d+))?")


@app.command("bound")
def bound_command(
    theorem: Annotated[str, typer.Argument(help=", ".join(BOUNDS))],
    env: Annotated[
        str | None, typer.Option(help="kernels, domain and constants of an environment")
    ] = None,
    kernel: Annotated[str | None, typer.Option(help='of both functions, such as "se(0.5)"')] = None,
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
    diameter: Annotated[float | None, typer.Option(help="D; from the domain when given")] = None,
    state_dimension: Annotated[int | None, typer.Option(min=1)] = None,
    action_dimension: Annotated[int | None, typer.Option(min=0)] = None,
    state_radius: Annotated[
        float | None, typer.Option(help="corollaries: |s| is at most it")
    ] = None,
    action_radius: Annotated[
        float | None, typer.Option(help="corollaries: |a| is at most it")
    ] = None,
    states: Annotated[int | None, typer.Option(min=1, help="tabular")] = None,
    actions: Annotated[int | None, typer.Option(min=1, help="tabular")] = None,
    delta: Annotated[float | None, typer.Option(help="[default: 0.1]")] = None,
    version: Annotated[
        str | None, typer.Option(help=", ".join(VERSIONS) + "  [default: all that apply]")
    ] = None,
    anytime: Annotated[bool | None, typer.Option(help="for all T at once")] = None,
    planner: Annotated[str | None, typer.Option(help="exact, or approximate: adds 2√T")] = None,
    tight: Annotated[bool | None, typer.Option(help="gains by optimal designs: slow")] = None,
    plot: Annotated[pathlib.Path | None, typer.Option(help="draw the growth with T")] = None,
) -> None:
    """What a regret bound promises: its parts, whether it is vacuous, and until when."""
    given = {
        name: value
        for name, value in locals().items()  # before any other local: the options as they came
        if value is not None and name not in APART
    }
    enable_compilation_cache()
    function: Any = BOUNDS[choice("theorem", theorem, tuple(BOUNDS))]
    words: dict[str, Any] = {} if env is None else theorem_arguments(make(env))
    for role in ("reward", "transition"):
        if kernel is not None:
            words[f"{role}_kernel"] = kernel
        if f"gain_{role}" in given:
            words.pop(f"{role}_kernel", None)
    if domain is not None:
        words["domain"] = parse_domain(domain)
    if isinstance(words.get("domain"), Domain) and "diameter" not in words:
        words["diameter"] = _diameter(words["domain"])
    words |= given
    bounds = _bounds(function, words, VERSIONS if version is None else (version,))
    _print(bounds)
    if plot is not None:
        draw_growth(bounds, plot)
        Console().print(f"figure: {plot}")


def parse_domain(text: str) -> Domain:
    """A domain from "state=[-1,1]; action=[-1,1]^2", where {n} stands for 0..n−1."""
    parts: dict[str, Domain] = {}
    for piece in text.split(";"):
        match = PART.fullmatch(piece)
        inside = match and INTERVAL.fullmatch(match[2])
        count = match and re.fullmatch(r"\{\s*(\d+)\s*\}", match[2])
        try:
            if match and inside:
                power = int(inside[3] or 1)
                parts[match[1]] = Box([float(inside[1])] * power, [float(inside[2])] * power)
                continue
        except ValueError:
            pass
        if not (match and count):
            raise ArgumentError("domain", '"state=[-1,1]; action=[-1,1]^2" or {5}', repr(piece))
        parts[match[1]] = FiniteSet.range(int(count[1]))
    if set(parts) != {"state", "action"}:
        raise ArgumentError("domain", "state=... and action=...", repr(text))
    return join(state=parts["state"], action=parts["action"])


def theorem_arguments(env: Environment) -> dict[str, Any]:
    """What a theorem wants to know of an environment, in the units in which it is learned."""
    mdp, outputs = env.agent_mdp, env.problem.transition_kernel.outputs
    scale = np.array(env.problem.scale)
    low, high = mdp.states.bounds
    words = {
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
        words["diameter"] = float(np.linalg.norm((high - low) / scale))
    return {name: value for name, value in words.items() if value is not None}


def draw_growth(bounds: Sequence[Bound], path: pathlib.Path) -> None:
    """ln-ln: bounds against T, with the trivial one."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    most = max(4 * bounds[0].episodes, *(2 * (own.first_useful or 0) for own in bounds), 10_000)
    taus = sorted({max(4, round(x)) for x in np.geomspace(4, most, 25)})
    steps = np.array(taus) * bounds[0].horizon
    for own in bounds:
        logs = np.array([own.at(tau).log_value for tau in taus]) / math.log(10)
        axes.plot(steps, logs, label=own.version)
    trivial = [math.log10(bounds[-1].at(tau).trivial) for tau in taus]
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
    function: Callable[..., Bound], words: dict[str, Any], versions: Sequence[str]
) -> list[Bound]:
    """Of every version that applies; an error where none does."""
    known = inspect.signature(function).parameters
    for name, parameter in known.items():
        needed = parameter.default is parameter.empty and parameter.kind == parameter.KEYWORD_ONLY
        if needed and name not in words:
            raise typer.BadParameter(f"--{name.replace('_', '-')} is needed for this bound")
    found, refused = [], []
    for version in versions:
        try:
            found.append(function(**_understood(function, words), version=version))
        except ArgumentError as error:
            refused.append((version, error))
    if not found:
        raise refused[-1][1]
    for version, error in refused:
        typer.echo(f"kmdp: no version '{version}': {error}", err=True)
    return found


def _understood(function: Callable[..., Bound], words: dict[str, Any]) -> dict[str, Any]:
    """The words without those that an environment has and this theorem has no use for."""
    unused = {
        "theorem2": ("diameter", "delta", "anytime"),
        "theorem3": ("norm_reward", "norm_transition"),
        "theorem4": ("norm_reward", "norm_transition", "diameter", "delta", "anytime"),
    }.get(function.__name__, ())
    return {name: value for name, value in words.items() if name not in unused}


def _diameter(domain: Domain) -> float:
    low, high = domain.project(domain.names["state"]).bounds
    return float(np.linalg.norm(high - low))


def _print(bounds: Sequence[Bound]) -> None:
    first = bounds[0]
    title = f"{first.theorem}: {first.episodes} episodes of {first.horizon}, T = {first.steps}"
    table = Table("", *(own.version for own in bounds), title=title, box=None)
    columns = [dict(own.rows()) for own in bounds]
    for column, own in zip(columns, bounds, strict=True):
        useful = own.first_useful
        column["first useful T"] = (
            "none before 1e12" if useful is None else f"{useful * own.horizon}"
        )
    parts = [name for own in bounds for name in own.log_parts]
    for name in dict.fromkeys([*parts, *(name for column in columns for name in column)]):
        table.add_row(name, *(column.get(name, "") for column in columns))
    Console().print(table)
    for text in dict.fromkeys(f"{own.version}: {note}" for own in bounds for note in own.warnings):
        Console().print(f"note, {text}")
