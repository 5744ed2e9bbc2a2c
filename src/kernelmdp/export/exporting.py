"""Write the controller of an agent to a file that needs neither this library nor Python."""

import dataclasses
import json
import pathlib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from kernelmdp.archive import write_atomically
from kernelmdp.errors import ArgumentError
from kernelmdp.export.controller_inputs import action_names, inputs_of
from kernelmdp.export.controller_table import ControllerTable
from kernelmdp.export.description import description_of_agent
from kernelmdp.export.distilled_law import distilled_law
from kernelmdp.export.export_loss import ExportLoss, export_loss
from kernelmdp.export.exported_law import ExportedLaw, law_of
from kernelmdp.export.self_check import CHECKS, SelfCheck, drawn_inputs
from kernelmdp.export.stablehlo import first_memory, stablehlo_program
from kernelmdp.mdp.policy import Policy, player_of
from kernelmdp.numerics.checks import choice, with_suggestion
from kernelmdp.planners.mpc import MPC

#: From a controller and its self-check to the content of a file.
Writer: TypeAlias = Callable[[ControllerTable, SelfCheck], bytes]


@dataclasses.dataclass(frozen=True, eq=False)
class Export:
    """An exported controller, with how it differs from ``predict``.

    Attributes:
        table: The controller as data.
        policy: The policy that the controller follows exactly.
        check: The self-check.
        loss: What is lost by a table or a network; nothing for gains and arms.
        path: The file that was written, or None.

    >>> import kernelmdp as km
    >>> export = controller_of(km.Greedy("lqr-1d", seed=0, planner="riccati"))
    >>> print(export)
    controller of 'lqr-1d' (linear, H = 10): exactly that of predict
    """

    table: ControllerTable
    policy: Policy
    check: SelfCheck
    loss: ExportLoss
    path: pathlib.Path | None = None

    def __str__(self) -> str:
        task, size = self.table.description["task"], ""
        if self.path is not None:
            size = f", {self.path.stat().st_size:,} bytes"
        what = f"controller of {task!r} ({self.table.kind}, H = {self.table.horizon}{size})"
        return f"{what}: {self.loss}"


def controller_of(
    agent: Any,
    *,
    state_points: int | tuple[int, ...] | None = None,
    interpolation: str | None = None,
    **distillation: Any,
) -> Export:
    """Make what a file holds of the controller of an agent.

    Args:
        agent: The agent. Its planner is a grid, Riccati, arms or MPC planner.
        state_points: Nodes along each axis of the state for the table of a grid plan. More nodes
            lose less and make larger files. The default are the nodes of the plan.
        interpolation: "linear" interpolates actions between nodes, "nearest" takes those of the
            nearest node. "auto", the default, takes the one that loses less in the learned model,
            where states and actions form a box; elsewhere actions cannot be interpolated.
        **distillation: Settings of ``DistillationConfig``, for the network of an MPC plan.

    Returns:
        The controller, before it is written.

    Raises:
        ArgumentError: If the plan is of another kind.

    >>> import kernelmdp as km
    >>> controller_of(km.Greedy("riverswim", seed=0)).table.kind
    'points'
    """
    problem, policy = agent.problem, agent.controller_plan().policy
    given: dict[str, Any] = {"state_points": state_points, "interpolation": interpolation}
    given = {name: value for name, value in given.items() if value is not None} | distillation
    inputs = inputs_of(agent, clips=False)  # an agent without inputs is refused before the work
    if isinstance(policy, MPC):
        law, loss = distilled_law(agent, policy, given)
    else:
        law, loss = _law_of_table(agent, **given)
    if law.kind != "linear" and law.kind != "points":
        inputs = inputs_of(agent, clips=True)
    low, high = problem.actions.bounds
    table = ControllerTable(
        inputs=inputs,
        kind=law.kind,
        law=law.arrays,
        rows=law.rows,
        action_names=action_names(agent),
        action_low=low,
        action_high=high,
        description=description_of_agent(agent) | {"loss": str(loss)},
    )
    return Export(table, law.policy, SelfCheck.of(table, law.policy, problem.states), loss)


def _law_of_table(
    agent: Any,
    state_points: int | tuple[int, ...] | None = None,
    interpolation: str = "auto",
    **others: Any,
) -> tuple[ExportedLaw, ExportLoss]:
    """The law of a plan of which a table or gains are exported, and what is lost by it."""
    for name, value in others.items():
        known = ("of", "state_points", "interpolation")
        suggestion = with_suggestion(name, known).removeprefix(repr(name))
        expected = "None, as only MPC plans are distilled"
        raise ArgumentError(name, expected, f"{value}{suggestion}")
    choice("interpolation", interpolation, ("auto", "linear", "nearest"))
    problem, policy = agent.problem, agent.controller_plan().policy
    m = problem.states.dimension
    counts = (int(state_points),) * m if isinstance(state_points, int) else state_points
    law = law_of(policy, problem, counts, interpolation)
    loss = ExportLoss() if law.exact else export_loss(policy, law.policy, agent)
    if interpolation == "auto" and law.kind == "interpolated":
        # Interpolation is smooth, and wrong where the best action jumps. Neither is always better.
        other = law_of(policy, problem, counts, "nearest")
        other_loss = export_loss(policy, other.policy, agent)
        if other_loss.in_model < loss.in_model:
            return other, other_loss
    return law, loss


def write_table(writer: Writer, agent: Any, path: object, **options: Any) -> Export:
    """Write a controller that is a table, gains or a network.

    Args:
        writer: From a controller and its self-check to the content of the file.
        agent: The agent.
        path: The file.
        **options: Options of ``controller_of``.

    Returns:
        The export.
    """
    export = controller_of(agent, **options)
    target = write_to(path, writer(export.table, export.check))
    return dataclasses.replace(export, path=target)


def write_stablehlo(agent: Any, path: object, **options: Any) -> Export:
    """Write the policy of ``predict`` itself as a program, and its description beside it.

    Args:
        agent: The agent.
        path: The file of the program. ``path`` with ``.json`` added is the description.
        **options: None. Options of tables are an error.

    Returns:
        The export. Its table has no law, because the program holds the policy.

    Raises:
        ArgumentError: If an option is given.
    """
    for name, value in options.items():
        raise ArgumentError(name, "None for '.stablehlo', which holds the policy itself", value)
    problem, policy = agent.problem, agent.controller_plan().policy
    inputs = inputs_of(agent, clips=False)
    low, high = problem.actions.bounds
    names, rows = action_names(agent), np.arange(problem.horizon)
    memory = [
        {"shape": list(leaf.shape), "type": str(leaf.dtype), "values": leaf.ravel().tolist()}
        for leaf in first_memory(policy)
    ]
    described = description_of_agent(agent) | {"memory": memory}
    table = ControllerTable(inputs, "program", {}, rows, names, low, high, described)
    observations, periods = drawn_inputs(table, problem.states, count=CHECKS, seed=0)
    state_of = table.numpy_controller().state
    # Every check begins with the first memory.
    actions = [
        player_of(policy)(state_of(row), int(h))
        for row, h in zip(observations, periods, strict=True)
    ]
    check = SelfCheck(observations, periods, np.array(actions))
    target = write_to(path, stablehlo_program(policy, inputs))
    text = json.dumps(table.summary() | {"self_check": check.lists()})
    write_to(f"{path}.json", text.encode())
    return Export(table, policy, check, ExportLoss(), target)


def write_to(path: object, content: bytes) -> pathlib.Path:
    """Write a file atomically.

    Args:
        path: The file.
        content: Its content.

    Returns:
        The path.

    Raises:
        ArgumentError: If the file cannot be written.
    """
    target = pathlib.Path(str(path))
    try:
        write_atomically(target, content)
    except OSError as error:
        raise ArgumentError("path", "a file that can be written", f"{path} ({error})") from None
    return target
