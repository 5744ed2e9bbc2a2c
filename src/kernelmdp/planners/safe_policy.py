"""The policy of a safe plan: one-step lookahead for the value, within the risk of the cell."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from kernelmdp.mdp.constraints import Violation
from kernelmdp.mdp.episode import state_action
from kernelmdp.mdp.fallback import Fallback
from kernelmdp.mdp.mdp import Signal
from kernelmdp.mdp.model import Model, Prediction
from kernelmdp.mdp.policy import Policy, player_of
from kernelmdp.planners.action_selection import optimistic_rewards
from kernelmdp.planners.optimism import with_radius
from kernelmdp.planners.optimistic_backup import OptimisticBackup
from kernelmdp.planners.worst_violation import CellBound, TableBound
from kernelmdp.types import Period


class RiskTables(NamedTuple):
    """Bounds of the probability of a violation for all cells and periods h = 1..H.

    Attributes:
        worst: W̄_h from any state of a cell on, with h = H + 1 too, (H + 1, N).
        trusted: The same from trusted states of a cell on, (H, N).
        bounds: The largest of ``trusted`` over all trusted states, with h = H + 1 too, (H + 1,).
        choices: The action that keeps ``worst``; A is the fallback, (H, N).
        trusted_choices: The action that keeps ``trusted``, (H, N).
        limits: The risk that plans may take from period h on, (H,).
    """

    worst: Float[Array, "H1 N"]
    trusted: Float[Array, "H N"]
    bounds: Float[Array, " H1"]
    choices: Int[Array, "H N"]
    trusted_choices: Int[Array, "H N"]
    limits: Float[Array, " H"]


class SafeGridPolicy(Policy):
    """Plays the best action whose W is within the bound of the cell, or the safest one.

    The action that was chosen for the whole cell keeps the bound in every state of the cell. Other
    actions are played only if their W at the actual state does so too. If the bound of the cell
    exceeds what the plan may take, the action with the least W is played, or the fallback.

    Attributes:
        model: The model of the family.
        risks: Bounds of the probability of a violation.
        tables: For each period the table that ``value_backup`` reads, a pytree with H rows.
        dilation_sizes: Sizes of plausible sets for which these tables were prepared.
        lipschitz: The Lipschitz constant L of the MDP, a scalar.
        action_set: The actions that are compared, (A, q).
        priority: Priorities of the actions and of the fallback, which break ties, (H, A + 1).
        value_backup: How the next state is chosen for values.
        risk_bound: How the next state is chosen for W.
        violation: The constraints.
        fallback: The fallback, or None.
        reward_range: The lowest and the highest mean reward.
        optimistic: Whether values are optimistic. False plans for the centres of the family.
        termination: The termination signal of the MDP, or None.
    """

    model: Model
    risks: RiskTables
    tables: Any
    dilation_sizes: Array
    lipschitz: Float[Array, ""]
    action_set: Float[Array, "A q"]
    priority: Float[Array, "H A1"]
    value_backup: OptimisticBackup = eqx.field(static=True)
    risk_bound: CellBound | TableBound = eqx.field(static=True)
    violation: Violation = eqx.field(static=True)
    fallback: Fallback | None = eqx.field(static=True)
    optimistic: bool = eqx.field(static=True)
    reward_range: tuple[Any, ...]
    termination: Signal | None = None

    def reset(self, count: int) -> Any:
        return () if self.fallback is None else self.fallback.policy.reset(count)

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        return self.decide(self.reset(states.shape[0]), states, period)[0]

    def decide(
        self, memory: Any, states: Float[Array, "n m"], period: Period
    ) -> tuple[Float[Array, "n q"], Any]:
        actions, memory, _, _ = self.choose(memory, states, period)
        return actions, memory

    def player(self) -> Callable[[Any, int], np.ndarray]:
        return player_of(self)

    def choose(
        self, memory: Any, states: Float[Array, "n m"], period: Period
    ) -> tuple[Float[Array, "n q"], Any, Float[Array, " n"], Bool[Array, " n"]]:
        """Choose actions, and tell how safe they are.

        Args:
            memory: The memory of the fallback.
            states: The states, (n, m).
            period: The period, counted from 0.

        Returns:
            The actions (n, q), the next memory, bounds of the probability of a violation from this
            period on (n,), and whether the fallback acts (n,).
        """
        count, actions = states.shape[0], self.action_set.shape[0]
        candidates = jnp.broadcast_to(
            self.action_set[None], (count, actions, self.action_set.shape[1])
        )
        trusted = jnp.zeros(count, bool)
        if self.fallback is not None:
            proposed, memory = self.fallback.policy.decide(memory, states, period)
            candidates = jnp.concatenate([candidates, proposed[:, None, :]], axis=1)
            trusted = self.fallback.is_trusted(states)
        values, risks = self._lookahead(states, candidates, period)
        tables = self.risks
        cell = self.risk_bound.cells.index(states)
        limit = jnp.where(trusted, tables.trusted[period][cell], tables.worst[period][cell])
        safest = jnp.where(
            trusted, tables.trusted_choices[period][cell], tables.choices[period][cell]
        )
        if self.fallback is not None:
            known = jnp.minimum(tables.bounds[period + 1] + self.fallback.leaves, 1.0)
            least = jnp.where(trusted, jnp.minimum(risks[:, -1], known), risks[:, -1])
            risks = risks.at[:, -1].set(least)
        index = select(values, risks, limit, safest, tables.limits[period], self.priority[period])
        rows = jnp.arange(count)
        risk = jnp.where(
            index == safest, jnp.minimum(risks[rows, index], limit), risks[rows, index]
        )
        return candidates[rows, index], memory, risk, index == actions

    def _lookahead(
        self, states: Array, candidates: Float[Array, "n k q"], period: Period
    ) -> tuple[Float[Array, "n k"], Float[Array, "n k"]]:
        """Values and W of k actions in each state."""
        count, options, q = candidates.shape
        points = state_action(jnp.repeat(states, options, axis=0), candidates.reshape(-1, q))
        prediction = with_radius(self.model(points), self.value_backup.metric)
        table = jax.tree.map(lambda leaf: leaf[period], self.tables)
        values = values_of(
            self.value_backup,
            prediction if self.optimistic else centres(prediction),
            table,
            self.dilation_sizes,
            self.lipschitz,
            self.reward_range,
        )
        after = self.value_backup.grid.states.nearest
        if self.termination is not None:
            rewards = optimistic_rewards(prediction, self.reward_range)
            ends = self.termination(points, after(prediction.state))
            values = jnp.where(ends, rewards, values)
        nothing = jnp.zeros(states.shape[1])
        worst = self.risks.worst[period + 1]
        risks = risks_of(self.risk_bound, prediction, worst, nothing)
        risks = jnp.where(self.violation.at_points(points), 1.0, risks)
        return values.reshape(count, options), risks.reshape(count, options)


def centres(prediction: Prediction) -> Prediction:
    """Remove the widths of predictions.

    Args:
        prediction: Predictions of a family.

    Returns:
        The predictions of its centre.
    """
    return Prediction(reward=prediction.reward, state=prediction.state)


def values_of(
    backup: OptimisticBackup,
    prediction: Prediction,
    table: Any,
    sizes: Array,
    lipschitz: Float[Array, ""],
    reward_range: tuple[Any, ...],
) -> Float[Array, " n"]:
    """Compute optimistic rewards plus the best plausible later values.

    Args:
        backup: How the next state is chosen.
        prediction: Predictions at n points.
        table: The prepared table of the period.
        sizes: Sizes of plausible sets for which it was prepared.
        lipschitz: The Lipschitz constant L of the MDP.
        reward_range: The lowest and the highest mean reward.

    Returns:
        The values, (n,).
    """
    low, high = reward_range
    positions = backup.locate(prediction, sizes, lipschitz)
    return optimistic_rewards(prediction, (low, high)) + backup.read(table, positions)


def risks_of(
    bound: CellBound | TableBound,
    prediction: Prediction,
    worst: Float[Array, " N"],
    inflation: Float[Array, " m"],
) -> Float[Array, " n"]:
    """Compute W at points, for constraints on states.

    Args:
        bound: How the next state is chosen.
        prediction: Predictions at n points.
        worst: W̄ of the next period for all cells, (N,).
        inflation: Half the sides of a box by which plausible sets are widened, (m,).

    Returns:
        W, (n,).
    """
    positions = bound.locate(prediction, inflation, jnp.zeros(()))
    return jnp.clip(bound.read(bound.prepare(worst, inflation), positions), 0.0, 1.0)


def select(
    values: Float[Array, "n k"],
    risks: Float[Array, "n k"],
    limit: Float[Array, " n"],
    safest: Int[Array, " n"],
    allowed: Float[Array, ""],
    priority: Float[Array, " A1"],
) -> Int[Array, " n"]:
    """Choose the best action within a limit of W, or the one with the least W.

    Args:
        values: Values of the actions, the fallback last, (n, k).
        risks: W of the actions, (n, k).
        limit: The bound of W that each choice must keep, (n,).
        safest: An action that keeps the bound, whatever ``risks`` says of it, (n,).
        allowed: The W that plans may take. If the limit exceeds it, the least W counts.
        priority: Among equal actions, the one with the highest priority is chosen, (A + 1,).

    Returns:
        The indices of the actions, (n,).
    """
    options = jnp.arange(values.shape[1], dtype=jnp.int32)[None, :]
    chosen = options == safest[:, None]
    within = (risks <= limit[:, None]) | chosen
    order = priority[: values.shape[1]]
    best = _first_best(jnp.where(within, values, -jnp.inf), order)
    least = jnp.where(chosen, jnp.minimum(risks, limit[:, None]), risks)
    # Of equally safe actions the fallback comes first. It is the last option.
    preferred = jnp.where(options[0] == priority.shape[0] - 1, 2.0, order)
    safe = _first_best(-least, preferred)
    return jnp.where(limit <= allowed, best, safe).astype(jnp.int32)


def _first_best(scores: Float[Array, "n k"], order: Float[Array, " k"]) -> Int[Array, " n"]:
    """The best option of each row; among equal ones, that of the highest order."""
    top = jnp.max(scores, axis=1, keepdims=True)
    return jnp.argmax(jnp.where(scores >= top, order[None, :], -jnp.inf), axis=1)
