"""The command ``kmdp bound``: evaluate the regret bound of a theorem."""

import inspect
import pathlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from kmdp.command import app, examples
from kmdp.names import BOUNDS, ENVIRONMENTS, VERSIONS, completion

if TYPE_CHECKING:
    from kernelmdp.theory import Bound

#: Headings of the options in the help: system, kernels, norms, bound, special cases.
SYSTEM, KERNELS, NORMS, BOUND, SPECIAL = (
    "The system",
    "Kernels and information gain",
    "Norms, noise and smoothness",
    "The bound",
    "Special cases",
)
#: Options that are not passed to the theorem unchanged.
NOT_PASSED = ("theorem", "env", "kernel", "domain", "version", "plot", "scale", "width")


@app.command(
    "bound",
    rich_help_panel="Theory",
    epilog=examples(
        "bound theorem1 --env riverswim --episodes 1000",
        "bound theorem3 --kernel 'se(0.5)' --domain 'state=[-1,1]; action=[-1,1]' --horizon 5 "
        "--reward-noise 0.1 --transition-noise 0.1 --lipschitz 1",
        "bound tabular --states 3 --actions 2 --horizon 4 --plot bound.pdf",
    ),
)
def bound_command(
    theorem: Annotated[
        str,
        typer.Argument(help="One of " + ", ".join(BOUNDS) + ".", autocompletion=completion(BOUNDS)),
    ],
    episodes: Annotated[int, typer.Option(min=1, help="The number of episodes.")] = 1000,
    env: Annotated[
        str | None,
        typer.Option(
            help="Take kernels, domain and constants from this environment.",
            autocompletion=completion(ENVIRONMENTS),
        ),
    ] = None,
    plot: Annotated[
        pathlib.Path | None,
        typer.Option(help="Draw the bound against the number of steps T into this file."),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="Axes of the figure: log-log (auto), log or linear.")
    ] = "auto",
    width: Annotated[
        str,
        typer.Option(help="Width of the figure: one-column or two-column of a paper, or inches."),
    ] = "7",
    horizon: Annotated[
        int | None,
        typer.Option(min=1, help="Periods of an episode, H.", rich_help_panel=SYSTEM),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            help='States and actions, such as "state=[-1,1]; action=[-1,1]^2".',
            rich_help_panel=SYSTEM,
        ),
    ] = None,
    diameter: Annotated[
        float | None,
        typer.Option(
            help="Diameter of the state space, D. By default that of the domain.",
            rich_help_panel=SYSTEM,
        ),
    ] = None,
    state_dimension: Annotated[
        int | None,
        typer.Option(min=1, help="Number of state coordinates, m.", rich_help_panel=SYSTEM),
    ] = None,
    action_dimension: Annotated[
        int | None,
        typer.Option(min=0, help="Number of action coordinates, q.", rich_help_panel=SYSTEM),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            help='Kernel of both reward and transition, such as "se(0.5)".',
            rich_help_panel=KERNELS,
        ),
    ] = None,
    reward_kernel: Annotated[
        str | None,
        typer.Option(help="Kernel of the reward alone.", rich_help_panel=KERNELS),
    ] = None,
    transition_kernel: Annotated[
        str | None,
        typer.Option(help="Kernel of the transition alone.", rich_help_panel=KERNELS),
    ] = None,
    gain_reward: Annotated[
        float | None,
        typer.Option(
            help="The maximum information gain of the reward, instead of a kernel.",
            rich_help_panel=KERNELS,
        ),
    ] = None,
    gain_transition: Annotated[
        float | None,
        typer.Option(
            help="That of the transition, instead of a kernel.",
            rich_help_panel=KERNELS,
        ),
    ] = None,
    tight: Annotated[
        bool | None,
        typer.Option(
            help="Compute gains by optimal designs, which is slow.",
            rich_help_panel=KERNELS,
        ),
    ] = None,
    norm_reward: Annotated[
        float | None,
        typer.Option(help="Bound of the reward's norm, B_R.", rich_help_panel=NORMS),
    ] = None,
    norm_transition: Annotated[
        float | None,
        typer.Option(
            help="Bound of the transition's norm, B_P.",
            rich_help_panel=NORMS,
        ),
    ] = None,
    reward_noise: Annotated[
        float | None,
        typer.Option(help="Noise of the reward, σ_R.", rich_help_panel=NORMS),
    ] = None,
    transition_noise: Annotated[
        float | None,
        typer.Option(help="Noise of the transition, σ_P.", rich_help_panel=NORMS),
    ] = None,
    lipschitz: Annotated[
        float | None,
        typer.Option(
            help="Lipschitz constant of the value of the next state, L.",
            rich_help_panel=NORMS,
        ),
    ] = None,
    version: Annotated[
        str | None,
        typer.Option(
            help=", ".join(VERSIONS) + ". By default all that apply.",
            rich_help_panel=BOUND,
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            help="Probability with which the bound may fail. By default 0.1.",
            rich_help_panel=BOUND,
        ),
    ] = None,
    anytime: Annotated[
        bool | None,
        typer.Option(help="One bound for all numbers of episodes.", rich_help_panel=BOUND),
    ] = None,
    planner: Annotated[
        str | None,
        typer.Option(
            help="exact, or approximate: adds 2√T for plans that are not exact.",
            rich_help_panel=BOUND,
        ),
    ] = None,
    states: Annotated[
        int | None,
        typer.Option(min=1, help="For tabular: number of states.", rich_help_panel=SPECIAL),
    ] = None,
    actions: Annotated[
        int | None,
        typer.Option(min=1, help="For tabular: number of actions.", rich_help_panel=SPECIAL),
    ] = None,
    state_radius: Annotated[
        float | None,
        typer.Option(
            help="For corollaries: bound of the length of a state.", rich_help_panel=SPECIAL
        ),
    ] = None,
    action_radius: Annotated[
        float | None,
        typer.Option(
            help="For corollaries: bound of the length of an action.",
            rich_help_panel=SPECIAL,
        ),
    ] = None,
) -> None:
    """Evaluate a regret bound: its parts, whether it is vacuous, and from which T it is useful."""
    # ``locals`` comes first: at this point it holds the options and nothing else.
    given_options = {
        name: value
        for name, value in locals().items()
        if value is not None and name not in NOT_PASSED
    }
    from kernelmdp.domains import Domain
    from kernelmdp.envs import make
    from kernelmdp.numerics.checks import choice
    from kernelmdp.report import draw_bound
    from kernelmdp.report.rendering import figure_width
    from kernelmdp.theory import BOUNDS as FUNCTIONS
    from kmdp.bound_inputs import domain_diameter, environment_arguments, parse_domain

    function: Any = FUNCTIONS[choice("theorem", theorem, BOUNDS)]
    arguments: dict[str, Any] = {} if env is None else environment_arguments(make(env))
    for role in ("reward", "transition"):
        if kernel is not None:
            arguments[f"{role}_kernel"] = kernel
        if f"gain_{role}" in given_options:
            arguments.pop(f"{role}_kernel", None)
    if domain is not None:
        arguments["domain"] = parse_domain(domain)
    if isinstance(arguments.get("domain"), Domain) and "diameter" not in arguments:
        arguments["diameter"] = domain_diameter(arguments["domain"])
    arguments |= given_options
    bounds = _bounds(function, arguments, VERSIONS if version is None else (version,))
    _print(bounds)
    if plot is not None:
        draw_bound(bounds, plot, scale=scale, width=figure_width(width))
        Console().print(f"figure: {plot}")


def _bounds(
    function: Callable[..., "Bound"], arguments: dict[str, Any], versions: Sequence[str]
) -> list["Bound"]:
    """Evaluate every version that applies. It is an error if none does."""
    from kernelmdp.errors import ArgumentError

    known = inspect.signature(function).parameters
    for name, parameter in known.items():
        needed = parameter.default is parameter.empty and parameter.kind == parameter.KEYWORD_ONLY
        if needed and name not in arguments:
            raise typer.BadParameter(f"--{name.replace('_', '-')} is needed for this bound")
    bounds, refused = [], []
    used = _used_arguments(function, arguments)
    if "version" not in known:  # a theorem of ours, of which there is one version
        return [function(**used)]
    for version in versions:
        try:
            bounds.append(function(**used, version=version))
        except ArgumentError as error:
            refused.append((version, error))
    if not bounds:
        raise refused[-1][1]
    for version, error in refused:
        typer.echo(f"kmdp: no version '{version}': {error}", err=True)
    return bounds


def _used_arguments(function: Callable[..., "Bound"], arguments: dict[str, Any]) -> dict[str, Any]:
    """Leave out the arguments that this theorem does not have."""
    unused = {
        "theorem2": ("diameter", "delta", "anytime"),
        "theorem3": ("norm_reward", "norm_transition"),
        "theorem4": ("norm_reward", "norm_transition", "diameter", "delta", "anytime"),
        "theorem16": ("diameter",),
        "theorem17": ("diameter", "delta", "anytime", "lipschitz"),
        "theorem18": (
            *("norm_reward", "norm_transition", "diameter", "delta", "anytime", "lipschitz"),
        ),
        "theorem19": ("diameter", "lipschitz"),
    }.get(function.__name__, ())
    return {name: value for name, value in arguments.items() if name not in unused}


def _print(bounds: Sequence["Bound"]) -> None:
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
