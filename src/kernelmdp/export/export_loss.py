"""What is lost by an export that is not exact: differences of actions and of returns."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from kernelmdp.domains import Domain
from kernelmdp.mdp import MDP
from kernelmdp.mdp.mdp import rollout
from kernelmdp.mdp.policy import Policy
from kernelmdp.numerics.modules import jit

#: Episodes in which returns are compared. Both policies meet the same noise, so the difference of
#: two good policies has a small error already.
EPISODES = 64
#: Periods and states in each of them at which actions are compared: 1,000 together.
PERIODS, STATES = 10, 100


@dataclasses.dataclass(frozen=True)
class ExportLoss:
    """How an exported table or network differs from the policy that ``predict`` follows.

    Attributes:
        measured: Whether it was measured. An exact controller loses nothing.
        mean_difference: Mean difference of actions, as a share of the action space.
        largest_difference: The largest difference of an action, as the same share.
        in_model: Return of the policy minus that of the export in the learned model, mean over
            episodes from past starts.
        in_model_error: The standard error of that mean.
        in_truth: The same in the true MDP; NaN where it is unknown.
        in_truth_error: The standard error of that mean.
        value: The return of the policy in the learned model, to compare the loss with.
        of: What the export is, "table" or "network".

    >>> print(ExportLoss())
    exactly that of predict
    """

    measured: bool = False
    mean_difference: float = 0.0
    largest_difference: float = 0.0
    in_model: float = 0.0
    in_model_error: float = 0.0
    in_truth: float = 0.0
    in_truth_error: float = 0.0
    value: float = float("nan")
    of: str = "table"

    def __str__(self) -> str:
        if not self.measured:
            return "exactly that of predict"
        if self.largest_difference == 0 and self.in_model == 0:
            return f"actions equal those of predict at {PERIODS * STATES:,} states"
        text = (
            f"actions differ from predict by {self.mean_difference:.2g} of their range on average, "
            f"at most {self.largest_difference:.2g}; the {self.of} loses {self.in_model:.3g} ± "
            f"{self.in_model_error:.2g} of a return of {self.value:.4g} in the learned model"
        )
        if np.isnan(self.in_truth):
            return text
        return f"{text}, and {self.in_truth:.3g} ± {self.in_truth_error:.2g} in the true one"


def export_loss(policy: Policy, table: Policy, agent: Any) -> ExportLoss:
    """Compare a table with the policy that it was made of.

    Args:
        policy: The policy that ``predict`` follows.
        table: The policy of the table.
        agent: The agent.

    Returns:
        The differences of actions and returns.
    """
    problem, visited = agent.problem, agent.starts
    starts = jnp.asarray(np.resize(visited, (EPISODES, visited.shape[1])))
    differences = action_differences(policy, table, problem.states, problem.horizon)
    low, high = problem.actions.extent
    shares = differences / np.maximum(high - low, 1e-12)
    value, loss, error = return_loss(agent.careful_mdp(), policy, table, starts)
    truth, truth_error = float("nan"), float("nan")
    true_mdp = getattr(agent.task, "mdp", None)
    if isinstance(true_mdp, MDP):
        truth, truth_error = return_loss(true_mdp, policy, table, starts)[1:]
    numbers = (float(shares.mean()), float(shares.max()), loss, error, truth, truth_error, value)
    return ExportLoss(True, *numbers)


def action_differences(
    policy: Policy, table: Policy, states: Domain, horizon: int
) -> Float[np.ndarray, "n q"]:
    """Compare the actions of two policies at 1,000 states and periods.

    Args:
        policy: One policy.
        table: The other one.
        states: The state space.
        horizon: The number of periods.

    Returns:
        The absolute differences, (n, q).
    """
    generator = np.random.default_rng(0)
    differences = []
    for period in generator.integers(horizon, size=PERIODS):
        if states.points is not None:
            rows = np.array(states.points)[generator.integers(len(states.points), size=STATES)]
        else:
            rows = generator.uniform(*states.extent, (STATES, states.dimension))
        chosen = [
            _actions(each, jnp.asarray(rows), jnp.asarray(period)) for each in (policy, table)
        ]
        differences.append(np.abs(np.asarray(chosen[0]) - np.asarray(chosen[1])))
    return np.concatenate(differences)


@jit
def _actions(policy: Policy, states: jax.Array, period: jax.Array) -> jax.Array:
    return policy.actions(states, period)


def return_loss(
    mdp: MDP, policy: Policy, exported: Policy, starts: jax.Array
) -> tuple[float, float, float]:
    """Compare the returns of two policies from the same starts, with the same noise.

    Args:
        mdp: The MDP that both are played in.
        policy: One policy.
        exported: The other one.
        starts: The first states, (n, m).

    Returns:
        The mean return of the first policy, how much less the other one earns on average, and the
        standard error of that.
    """
    returns = [
        np.asarray(rollout(mdp, each, starts, key=jax.random.key(0))[2]).sum(axis=0)
        for each in (policy, exported)
    ]
    return (float(returns[0].mean()), *mean_loss(*returns))


def mean_loss(
    returns: Float[np.ndarray, " n"], exported: Float[np.ndarray, " n"]
) -> tuple[float, float]:
    """Compute how much less an export earns, and the standard error of that.

    Args:
        returns: Returns of the policy, (n,).
        exported: Returns of the export in the same episodes, (n,).

    Returns:
        The mean difference and its error.

    >>> mean_loss(np.array([2.0, 4.0]), np.array([1.0, 1.0]))
    (2.0, 1.0)
    """
    losses = returns - exported
    return float(losses.mean()), float(losses.std(ddof=1)) / len(losses) ** 0.5
