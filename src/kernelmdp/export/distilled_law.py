"""A distilled controller: the arrays of its network, and what it loses."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.export.distillation import DistillationConfig
from kernelmdp.export.distilling import Distillation
from kernelmdp.export.export_loss import ExportLoss, mean_loss, return_loss
from kernelmdp.export.exported_law import ExportedLaw
from kernelmdp.export.network_policy import NetworkPolicy, angular_factors
from kernelmdp.mdp import MDP
from kernelmdp.mdp.policy import Policy
from kernelmdp.numerics.modules import jit
from kernelmdp.planners.mpc import MPC

#: Episodes of the true system that are played of a task that was made from a name.
PLAYED = 8
#: The first seed of these episodes, far from those of ``Agent.evaluate``.
FIRST_SEED = 5000


def distilled_law(
    agent: Any, plan: MPC, options: Mapping[str, Any]
) -> tuple[ExportedLaw, ExportLoss]:
    """Distil the plan of an agent into a network.

    Args:
        agent: The agent.
        plan: The policy that ``predict`` follows.
        options: Settings of ``DistillationConfig``.

    Returns:
        The law of the network, and what is lost by it.
    """
    config = DistillationConfig.of(options)
    distillation = Distillation(agent, plan, config)
    network = distillation.run()
    loss = distillation_loss(agent, distillation, network)
    arrays = law_arrays(network)
    rows = np.arange(agent.problem.horizon)
    return ExportedLaw("network", arrays, rows, network, False), loss


def law_arrays(network: NetworkPolicy) -> dict[str, np.ndarray]:
    """Write the numbers of a network as arrays.

    Args:
        network: The policy of the network.

    Returns:
        ``weights0``, ``biases0`` and so on in single precision, ``angular`` if there are angles,
        and ``choices`` if actions are finite.
    """
    arrays: dict[str, np.ndarray] = {}
    for number, pair in enumerate(zip(network.weights, network.biases, strict=True)):
        for name, values in zip(("weights", "biases"), pair, strict=True):
            arrays[f"{name}{number}"] = np.asarray(values).astype(np.float32)
    if network.states.periodic:
        arrays["angular"] = angular_factors(network.states)
    if network.space.points is not None:
        arrays["choices"] = np.array(network.space.points, float)
    return arrays


def distillation_loss(agent: Any, distillation: Distillation, network: NetworkPolicy) -> ExportLoss:
    """Compare a network with the plan that it imitates.

    Args:
        agent: The agent.
        distillation: The distillation, after its run.
        network: Its result.

    Returns:
        Differences of actions at the states that were labelled last, and of returns from other
        starts than those of the distillation.
    """
    config, plan = distillation.config, distillation.expert
    rows = distillation.labels[-1]
    chosen = _row_actions(network, jnp.asarray(rows.states), jnp.asarray(rows.periods))
    low, high = agent.problem.actions.extent
    shares = np.abs(np.asarray(chosen) - rows.actions) / np.maximum(high - low, 1e-12)
    start_key = jax.random.fold_in(distillation.key, 3000)
    starts = jnp.asarray(distillation.starts(config.loss_episodes, key=start_key))
    value, loss, error = return_loss(distillation.mdp, plan, network, starts)
    truth = _true_loss(agent, plan, network, starts, config)
    differences = float(shares.mean()), float(shares.max())
    return ExportLoss(True, *differences, loss, error, *truth, value, "network")


def _true_loss(
    agent: Any, plan: Policy, network: Policy, starts: jax.Array, config: DistillationConfig
) -> tuple[float, float]:
    """The loss in the true MDP if it is known, or in episodes that are played; else NaN."""
    true_mdp = getattr(agent.task, "mdp", None)
    if isinstance(true_mdp, MDP):
        return return_loss(true_mdp, plan, network, starts)[1:]
    episodes = config.play_episodes
    if episodes is None:
        episodes = 0 if agent.system.offline or agent.system.spec is None else PLAYED
    if episodes < 2:  # An error needs two episodes.
        return float("nan"), float("nan")
    seeds = range(FIRST_SEED, FIRST_SEED + episodes)
    return mean_loss(*(agent.system.evaluate(each, seeds=seeds) for each in (plan, network)))


@jit
def _row_actions(network: NetworkPolicy, states: jax.Array, periods: jax.Array) -> jax.Array:
    return jax.vmap(lambda row, period: network.actions(row[None], period)[0])(states, periods)
