"""Distil a plan that searches at every decision into a small network.

In each round the plan labels the states of simulated episodes in the learned model. In the first
round the plan acts, later the network that earns most. After each round networks are trained on
all labels so far. The one that earns most of all rounds is the controller.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from kernelmdp.domains import Domain
from kernelmdp.export.distillation import DistillationConfig
from kernelmdp.export.labelled_states import LabelledStates, best_plan, labelled_episodes
from kernelmdp.export.network_policy import NetworkPolicy
from kernelmdp.export.network_training import (
    Network,
    action_units,
    inputs_with_period,
    targets_of,
    trained,
    untrained,
)
from kernelmdp.mdp import MDP
from kernelmdp.mdp.mdp import rollout
from kernelmdp.numerics.modules import replace_fields
from kernelmdp.planners.mpc import MPC

#: Starts of which the best plan is taken where all episodes begin with one plan. Searches from the
#: same start end on several hills; among so many, one is on the best of them.
CANDIDATES = 16
#: The least deviation of visited states, against division by zero.
LEAST_SPREAD = 1e-12


class Distillation:
    """The distillation of one plan. ``distilled`` runs it.

    Args:
        agent: The agent.
        expert: The plan that it follows.
        config: The settings.

    Attributes:
        expert: The plan.
        config: The settings.
        mdp: The learned model, in which the plan searches.
        key: Decides everything random.
        labels: All labelled states so far.
        returns: The mean return of each round's best network in the learned model.
    """

    def __init__(self, agent: Any, expert: MPC, config: DistillationConfig) -> None:
        self.expert, self.config = expert, config
        self.mdp: MDP = agent.careful_mdp()
        self.key = jax.random.key(config.seed)
        self.labels: list[LabelledStates] = []
        self.returns: list[float] = []
        self._past_starts = agent.starts
        deviations = agent.learner.noise_deviations(agent.controller_state)
        m = self.mdp.states.dimension
        self._deviations = np.zeros(m) if deviations is None else np.asarray(deviations)
        self._common: tuple[Any, Any] | None = None
        past, states = self._past_starts, self.mdp.states
        visited = np.concatenate([past, *(np.asarray(each.states) for each in agent.history)])
        spreads = [
            np.asarray(states.difference(rows, rows[:1])).std(axis=0) for rows in (past, visited)
        ]
        self._start_deviations = spreads[0]
        self._start_share = np.max(spreads[0] / np.maximum(spreads[1], LEAST_SPREAD))

    def run(self) -> NetworkPolicy:
        """Label, train and compare, round by round.

        Returns:
            The network that earns most in the learned model.
        """
        config, horizon = self.config, self.mdp.horizon
        reads = (False, True) if config.period is None else (config.period,)
        networks: list[Network] = []
        best: tuple[float, Network] | None = None
        for number in range(config.rounds):
            self._label(number, None if best is None else best[1])
            states, periods, actions = map(np.concatenate, zip(*self.labels, strict=True))
            inputs = inputs_with_period(states, periods, self.mdp.states, horizon)
            targets = targets_of(actions, self.mdp.actions)
            keys = jax.random.split(jax.random.fold_in(self.key, number), 2 * len(reads))
            if not networks:
                networks = [
                    untrained(inputs, targets.shape[1], config, reads_period=read, key=k)
                    for read, k in zip(reads, keys, strict=False)
                ]
            networks = [
                trained(each, inputs, targets, config, finite=self.mdp.actions.finite, key=k)
                for each, k in zip(networks, keys[len(reads) :], strict=True)
            ]
            values = [self._value(each) for each in networks]
            winner = int(np.argmax(values))
            self.returns.append(values[winner])
            if best is None or values[winner] > best[0]:
                best = values[winner], networks[winner]
        assert best is not None
        policy = self._policy(best[1])
        return policy if best[1].reads_period else without_period(policy)

    def _label(self, number: int, student: Network | None) -> None:
        """Add the labels of a round. Every second episode is disturbed."""
        config, horizon = self.config, self.mdp.horizon
        count = -(-config.states // horizon)
        count += count % 2
        keys = jax.random.split(jax.random.fold_in(self.key, 1000 + number), 2)
        if student is None:
            # The network does not act in the first round. It only has the right shapes.
            units = np.outer([-1.0, 1.0], np.ones(network_width(self.mdp.states)))
            outputs = len(action_units(self.mdp.actions)[0])
            student = untrained(units, outputs, config, reads_period=False, key=keys[1])
        states, actions, counted = labelled_episodes(
            self.mdp,
            self.expert,
            self._policy(student),
            jnp.asarray(self.starts(count, key=keys[0])),
            jnp.full(count, number > 0),
            jnp.asarray(np.where(np.arange(count) % 2, config.perturbation, 0.0)),
            jnp.asarray(self._deviations),
            keys[1],
            self._first_plan(),
        )
        flags = np.asarray(counted)
        periods = np.broadcast_to(np.arange(horizon)[:, None], flags.shape)
        arrays = (np.asarray(states), periods, np.asarray(actions))
        self.labels.append(LabelledStates(*(each[flags] for each in arrays)))

    def _first_plan(self) -> tuple[Any, Any] | None:
        """The first action and the memory after it that all episodes share; None if each plans."""
        shared = self.config.common_plan
        if shared is None:
            shared = bool(self._start_share <= self.config.narrow)
        if not shared:
            return None
        if self._common is None:
            starts = self.starts(CANDIDATES, key=jax.random.fold_in(self.key, 4000))
            self._common = best_plan(self.expert, jnp.asarray(starts))
        return self._common

    def starts(self, count: int, *, key: Any) -> Float[np.ndarray, "n m"]:
        """Draw first states: past ones, each moved by the deviation of past ones.

        Args:
            count: The number of states.
            key: Decides the draws.

        Returns:
            The states, (count, m).
        """
        past, states = self._past_starts, self.mdp.states
        row_key, noise_key = jax.random.split(key)
        rows = past[np.asarray(jax.random.randint(row_key, (count,), 0, len(past)))]
        if states.finite:
            return rows
        noise = np.asarray(jax.random.normal(noise_key, rows.shape))
        return np.array(states.nearest(rows + self._start_deviations * noise))

    def _value(self, network: Network) -> float:
        starts = self.starts(self.config.episodes, key=jax.random.fold_in(self.key, 2000))
        rewards = rollout(self.mdp, self._policy(network), jnp.asarray(starts), key=self.key)[2]
        return float(np.asarray(rewards).sum(axis=0).mean())

    def _policy(self, network: Network) -> NetworkPolicy:
        return network.policy(self.mdp.states, self.mdp.actions, self.mdp.horizon)


def network_width(states: Domain) -> int:
    """Count the inputs of a network: coordinates, a sine for each angle, and the period.

    Args:
        states: The state space.

    Returns:
        The number of inputs.
    """
    return states.dimension + len(states.periodic) + 1


def without_period(policy: NetworkPolicy) -> NetworkPolicy:
    """Leave out the period, which must have weights of 0.

    Args:
        policy: The policy.

    Returns:
        The policy with one input less.
    """
    first, *others = policy.weights
    return replace_fields(policy, weights=(first[:, :-1], *others), reads_period=False)
