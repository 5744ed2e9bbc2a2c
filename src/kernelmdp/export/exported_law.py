"""What a file can hold of a policy: gains, or the actions at the nodes of a grid.

Grid policies look one step ahead with the learned model at every decision. A file cannot hold the
model, so it holds the actions that the policy chooses at the nodes.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.export.controller_table import share_rows
from kernelmdp.export.tabulated_policy import TabulatedPolicy, rounded
from kernelmdp.mdp import Problem, StateGrid
from kernelmdp.mdp.linear_policy import LinearPolicy
from kernelmdp.mdp.noise import NO_NOISE
from kernelmdp.mdp.policy import Policy
from kernelmdp.numerics.modules import jit
from kernelmdp.planners.arm_planner import ArmPolicy
from kernelmdp.planners.grid_planner import GridPolicy

#: Finite actions up to this number are stored by their number, in one byte.
MOST_NUMBERED = 256


class ExportedLaw(NamedTuple):
    """The part of an exported controller that follows from the policy.

    Attributes:
        kind: The kind of ``ControllerTable``.
        arrays: Its arrays by name.
        rows: The row that each period uses, (H,).
        policy: The policy that the export follows exactly.
        exact: Whether it is the policy of ``predict``, not a table of it.

    >>> ExportedLaw._fields
    ('kind', 'arrays', 'rows', 'policy', 'exact')
    """

    kind: str
    arrays: dict[str, np.ndarray]
    rows: np.ndarray
    policy: Policy
    exact: bool


@functools.singledispatch
def law_of(
    policy: Policy, problem: Problem, state_points: tuple[int, ...] | None, interpolation: str
) -> ExportedLaw:
    """Find what a file can hold of a policy.

    Args:
        policy: The policy that ``predict`` follows.
        problem: The problem.
        state_points: Nodes along each axis of the state for a table; None for those of the planner.
        interpolation: "linear" or "nearest" between nodes; "auto" is linear where states and
            actions form a box.

    Returns:
        The law.

    Raises:
        ArgumentError: If only the format ``.stablehlo`` can hold the policy.
    """  # noqa: DOC202  (registered functions return)
    expected = "'.stablehlo' for plans that are not of a grid, Riccati, arms or MPC planner"
    raise ArgumentError("format", expected, f"plans of {type(policy).__name__}")


@law_of.register
def _linear(
    policy: LinearPolicy, problem: Problem, state_points: object, interpolation: object
) -> ExportedLaw:
    if problem.actions.finite or problem.actions.periodic:
        raise ArgumentError("agent", "actions in a box without angles", problem.actions)
    rows, (gains, offsets) = share_rows(np.asarray(policy.gains), np.asarray(policy.offsets))
    return ExportedLaw("linear", {"gains": gains, "offsets": offsets}, rows, policy, True)


@law_of.register
def _arm(
    policy: ArmPolicy, problem: Problem, state_points: object, interpolation: object
) -> ExportedLaw:
    action = np.asarray(policy.action)
    gains = np.zeros((1, len(action), problem.states.dimension))
    rows = np.zeros(problem.horizon, int)
    return ExportedLaw("linear", {"gains": gains, "offsets": action[None, :]}, rows, policy, True)


@law_of.register
def _grid(
    policy: GridPolicy,
    problem: Problem,
    state_points: tuple[int, ...] | None,
    interpolation: str,
) -> ExportedLaw:
    planned, space = policy.optimistic_backup.grid, problem.actions
    counts = planned.counts if state_points is None else state_points
    grid = planned if counts == planned.counts else StateGrid(planned.states, counts, NO_NOISE)
    boxes = not (space.finite or space.periodic or grid.states.finite)
    if interpolation == "linear" and not boxes:
        raise ArgumentError(
            "interpolation", "'nearest' unless states and actions form a box", interpolation
        )
    interpolated = boxes and interpolation != "nearest"
    rows, (actions,) = share_rows(np.asarray(_at_nodes(policy, grid, problem.horizon)))
    if space.points is not None and len(space.points) <= MOST_NUMBERED:
        choices = np.array(space.points)
        numbers = np.abs(actions[:, :, None, :] - choices).sum(axis=3).argmin(axis=2)
        table = choices[numbers]
        arrays = {"choices": choices, "table": numbers.astype(np.uint8)}
    else:
        table = rounded(actions)
        arrays = {"table": table.astype(np.float32)}
    if grid.states.finite:
        kind, arrays["nodes"] = "points", grid.nodes
    else:
        kind = "interpolated" if interpolated else "nearest"
        arrays["counts"] = np.array(grid.counts)
        arrays["first"], arrays["spacing"] = grid.states.bounds[0], grid.spacing
    fields = (jnp.asarray(table), jnp.asarray(rows), grid, space, interpolated)
    return ExportedLaw(kind, arrays, rows, TabulatedPolicy(*fields), False)


@jit
def _at_nodes(policy: Policy, grid: StateGrid, horizon: int) -> jax.Array:
    """The actions at the nodes in all periods, (H, N, q)."""
    return jax.lax.map(lambda period: policy.at_nodes(grid, period), jnp.arange(horizon))
