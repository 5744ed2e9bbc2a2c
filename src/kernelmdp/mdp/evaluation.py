"""The value of a policy in a known MDP, with its error."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Domain
from kernelmdp.mdp.mdp import MDP, rollout
from kernelmdp.mdp.policy import Policy
from kernelmdp.mdp.state_grid import StateGrid, TablePositions
from kernelmdp.numerics.modules import jit
from kernelmdp.types import Key


@dataclasses.dataclass(frozen=True)
class Value:
    """A value and its error: |truth − value| ≤ error, in the sense that ``kind`` says.

    "exact"; "certified" (a proof); "estimate" (two resolutions compared); "interval" (Monte Carlo,
    99 %).

    >>> Value(2.0, 0.1, "estimate")
    Value(value=2.0, error=0.1, kind='estimate')
    """

    value: float
    error: float
    kind: str

    def __str__(self) -> str:
        return f"{self.value:.6g} ± {self.error:.2g} ({self.kind})"


@jit
def policy_values(mdp: MDP, policy: Policy, grid: StateGrid) -> Float[Array, "H1 N"]:
    """V^π_h at the nodes for h = 1..H + 1 (the last is 0), by dynamic programming on the grid.

    >>> import kernelmdp as km
    >>> from kernelmdp.mdp.policy import Sequence
    >>> env = km.make("riverswim")
    >>> policy_values(env.mdp, Sequence(jnp.zeros((20, 1))), env.grid).shape
    (21, 6)
    """
    nodes = jnp.asarray(grid.nodes)

    def backup(after: Array, period: Array) -> tuple[Array, Array]:
        actions = policy.at_nodes(grid, period)
        prediction = mdp.model(jnp.concatenate([nodes, actions], axis=1))
        values = prediction.reward + grid.stencil(prediction.state).read(grid.expectation(after))
        return values, values

    last = jnp.zeros(len(grid.nodes))
    _, tables = jax.lax.scan(backup, last, jnp.arange(mdp.horizon), reverse=True)
    return jnp.concatenate([tables, last[None]])


@jit
def optimal_values(mdp: MDP, grid: StateGrid, actions: Float[Array, "A q"]) -> Float[Array, "H1 N"]:
    """V*_h at the nodes for h = 1..H + 1, over finitely many actions, without optimism.

    >>> import kernelmdp as km
    >>> env = km.make("riverswim")
    >>> optimal_values(env.mdp, env.grid, jnp.asarray(env.actions)).shape  # H + 1 periods, 6 states
    (21, 6)
    """
    nodes = jnp.asarray(grid.nodes)

    def table(action: Array) -> tuple[Array, TablePositions]:
        repeated = jnp.broadcast_to(action[None, :], (len(grid.nodes), action.shape[0]))
        prediction = mdp.model(jnp.concatenate([nodes, repeated], axis=1))
        return prediction.reward, grid.stencil(prediction.state)

    rewards, stencils = jax.lax.map(table, actions)

    def backup(after: Array, _: None) -> tuple[Array, Array]:
        expected = grid.expectation(after)

        def one(best: Array, row: tuple[Array, TablePositions]) -> tuple[Array, None]:
            return jnp.maximum(best, row[0] + row[1].read(expected)), None

        values, _ = jax.lax.scan(one, jnp.full(len(grid.nodes), -jnp.inf), (rewards, stencils))
        return values, values

    last = jnp.zeros(len(grid.nodes))
    _, tables = jax.lax.scan(backup, last, None, length=mdp.horizon)
    return jnp.concatenate([tables[::-1], last[None]])


@dataclasses.dataclass(frozen=True, eq=False)
class Optimum:
    """V*_1 of an MDP at every state, from two grids, the finer first."""

    grids: tuple[StateGrid, StateGrid]
    values: tuple[Float[Array, " N"], Float[Array, " n"]]
    exact: bool

    def at(self, start: Any) -> Value:
        """The value of the finer grid; the error is the change from half the cells.

        Between a grid and one with half the cells an error that shrinks linearly or faster halves
        at least, so the change bounds what is left; it is an estimate, not a proof.
        """
        row = jnp.asarray(start, float)[None, :]
        fine, coarse = (
            float(grid.value_at(values, row)[0])
            for grid, values in zip(self.grids, self.values, strict=True)
        )
        return Value(fine, abs(fine - coarse), "exact" if self.exact else "estimate")


def solve(mdp: MDP, *, state_points: tuple[int, ...], action_points: tuple[int, ...]) -> Optimum:
    """V*_1 by dynamic programming on the grid of these sizes and on one with half the cells."""
    grids, tables = [], []
    for halving in (1, 2):
        counts = tuple(
            n // halving if j in mdp.states.periodic else (n - 1) // halving + 1
            for j, n in enumerate(state_points)
        )
        grid = StateGrid(mdp.states, counts, mdp.transition_noise)
        finer = tuple((n - 1) // halving + 1 for n in action_points)
        values = optimal_values(mdp, grid, jnp.asarray(action_grid(mdp.actions, finer)))
        grids.append(grid)
        tables.append(values[0])
    exact = mdp.states.finite and mdp.actions.finite and mdp.transition_noise.categorical
    return Optimum((grids[0], grids[1]), (tables[0], tables[1]), exact)


def optimal_value(
    mdp: MDP, start: Any, *, state_points: tuple[int, ...], action_points: tuple[int, ...]
) -> Value:
    """V*_1 at a state on the grid of these sizes, with its error (``Optimum.at``).

    >>> import kernelmdp as km
    >>> env = km.make("riverswim")
    >>> found = optimal_value(env.mdp, env.start, state_points=(2,), action_points=(2,))
    >>> found.kind, found.value == env.optimal_value().value
    ('exact', True)
    """
    return solve(mdp, state_points=state_points, action_points=action_points).at(start)


def action_grid(actions: Domain, counts: tuple[int, ...]) -> np.ndarray:
    """Actions on a regular grid of a box (all of a finite set), (A, q).

    >>> from kernelmdp.domains import Box
    >>> action_grid(Box([-1.0], [1.0]), (3,))
    array([[-1.],
           [ 0.],
           [ 1.]])
    """
    if actions.points is not None:
        return np.array(actions.points)
    low, high = actions.bounds
    axes = [np.linspace(a, b, n) for a, b, n in zip(low, high, counts, strict=True)]
    return np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)


def grid_value(mdp: MDP, policy: Policy, grid: StateGrid, start: Any) -> float:
    """V^π_1 at a state, by dynamic programming on the grid.

    >>> import kernelmdp as km
    >>> from kernelmdp.mdp.policy import Sequence
    >>> env = km.make("riverswim")
    >>> downstream = Sequence(jnp.zeros((20, 1)))
    >>> round(grid_value(env.mdp, downstream, env.grid, env.start), 4)  # 20 times 0.005
    0.1
    """
    values = policy_values(mdp, policy, grid)
    return float(grid.value_at(values[0], jnp.asarray(start, float)[None, :])[0])


def monte_carlo_value(mdp: MDP, policy: Policy, start: Any, *, episodes: int, key: Key) -> Value:
    """V^π_1 at a state from independent episodes, with a 99 % interval.

    >>> import kernelmdp as km
    >>> from kernelmdp.mdp.policy import Sequence
    >>> env, key = km.make("riverswim"), jax.random.key(0)
    >>> downstream = Sequence(jnp.zeros((20, 1)))
    >>> found = monte_carlo_value(env.mdp, downstream, env.start, episodes=50, key=key)
    >>> abs(found.value - 0.1) <= found.error
    True
    """
    starts = jnp.broadcast_to(jnp.asarray(start, float)[None, :], (episodes, np.size(start)))
    rewards = rollout(mdp, policy, starts, key=key)[2]
    totals = np.asarray(jnp.sum(rewards, axis=0))
    spread = totals.std(ddof=1) / math.sqrt(episodes) if episodes > 1 else math.inf
    return Value(float(totals.mean()), float(2.576 * spread), "interval")
