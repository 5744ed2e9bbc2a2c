"""Many runs in one compiled program: a scan over episodes, vectorised over seeds and numbers.

``interact`` plays one agent and dispatches some twenty programs an episode. Here the same calls are
traced once: the agent's ``plan``, the environment, the learner's ``update`` and the diagnostics.
The runs get the same keys and the same numbers, up to rounding. Sums are added in another order.

What Python decides by values cannot be traced. Agents with fixed kernels and planners on grids are
traced as they are. For others an error says why.
"""

import copy
import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from kernelmdp.agents import Agent
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.learning_loop import Recorder, episode_keys, system_key
from kernelmdp.experiments.regret import RegretEvaluator, ValueEvaluator
from kernelmdp.experiments.results import PlayedRun
from kernelmdp.experiments.systems import EnvironmentSystem
from kernelmdp.experiments.varying_numbers import VaryingNumbers, with_fields
from kernelmdp.mdp import Episode
from kernelmdp.mdp.mdp import play
from kernelmdp.numerics.checks import integer
from kernelmdp.numerics.modules import replace_fields
from kernelmdp.numerics.random_keys import episode_key
from kernelmdp.numerics.unchanged_leaves import changed_leaves
from kernelmdp.planners import Planner

#: Points that are planned for at once, over all runs. More runs at once make small programs
#: faster, as long as their tables fit into a processor's cache.
POINTS_AT_ONCE = 100_000
#: Episodes of one call of the program. Between calls, a worker notices that it should stop.
SEGMENT = 100
#: Parts of an agent in which runs may differ by numbers.
AGENT_PARTS = ("problem", "confidence", "config", "learner", "planner")
#: Parts of an environment in which runs may differ by numbers.
ENVIRONMENT_PARTS = ("mdp", "approximate_mdp", "start")
#: What is expected of agents: all that they know is in the learner's state.
NO_MEMORY = "agents without a memory of their own"


def play_together(
    agents: Sequence[Agent], episodes: int, *, between: Callable[[], None] = lambda: None
) -> list[PlayedRun]:
    """Play the first episodes of several agents in one compiled program.

    Args:
        agents: Agents before their first episode. They are equal but for seeds and numbers, and
            stay unchanged.
        episodes: The number of episodes of each.
        between: Called after every hundred episodes. It may raise an error to stop.

    Returns:
        The run of each agent.

    Raises:
        ArgumentError: If the runs cannot be compiled, or not together.

    >>> import kernelmdp as km
    >>> play_together([km.Frugal("riverswim", seed=seed) for seed in range(2)], 5)
    Traceback (most recent call last):
    kernelmdp.errors.ArgumentError: vectorise: expected agents without a memory of their own, got
    frugal on riverswim
    """
    agents = _with_one_reward_range(agents)
    for agent in agents:
        _require_vectorisable(agent)
    try:
        played = _Program(agents).run(integer("episodes", episodes, least=1), between)
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as error:
        reason = str(error).split("\n", 1)[0]
        name = f"{agents[0].name} on {agents[0].problem.name}"
        raise ArgumentError(
            "vectorise", f"runs that can be compiled, unlike {name}", reason
        ) from None
    return [_as_run(agent, *each) for agent, each in zip(agents, played, strict=True)]


def _with_one_reward_range(agents: Sequence[Agent]) -> list[Agent]:
    """Copies of agents whose true MDPs have one reward range, so that one program serves them.

    The range clips planned values of the optimal policy. The union of all ranges is as correct.
    """
    if not all(isinstance(agent.system, EnvironmentSystem) for agent in agents):
        raise ArgumentError("vectorise", "environments of this library", agents[0].problem.name)
    ranges = [_environment(agent).mdp.reward_range for agent in agents]
    union = (min(low for low, _ in ranges), max(high for _, high in ranges))
    copies = []
    for agent in agents:
        environment: Any = agent.task
        mdp = replace_fields(environment.mdp, reward_range=union)
        changed = dataclasses.replace(environment, mdp=mdp)
        copied = copy.copy(agent)
        copied.system = EnvironmentSystem(changed)
        copies.append(copied)
    return copies


def _require_vectorisable(agent: Agent) -> None:
    """Raise an error for what would be traced wrongly, or could not be."""
    beliefs = agent.beliefs
    engines = [] if beliefs is None else [each.engine for each in beliefs.learned.values()]
    problems = {
        "agents that are planned before the first data": agent.first_episode != "prior",
        NO_MEMORY: type(agent).after_episode is not Agent.after_episode,
        "a plan for every episode (replan_gain=None)": agent.plans_made is not None,
        "agents that learn by the episode": agent.update != "episode",
        "episodes that do not end early": agent.problem.termination is not None,
        "kernels with a finite basis": "exact" in engines,
        "one planner for all episodes": type(agent.planner).for_episode is not Planner.for_episode,
        "agents before their first episode": agent.episode > 0,
    }
    for expected, fails in problems.items():
        if fails:
            raise _not_vectorisable(agent, expected)


def _not_vectorisable(agent: Agent, expected: str) -> ArgumentError:
    return ArgumentError("vectorise", expected, f"{agent.name} on {agent.problem.name}")


class _Program:
    """The scan over episodes, for several agents."""

    def __init__(self, agents: Sequence[Agent]) -> None:
        self.agents, self.agent = agents, agents[0]
        self.seeds = np.array([agent.seed for agent in agents])
        self.evaluator = RegretEvaluator(_environment(self.agent))
        self.recorder = Recorder(self.agent, self.evaluator)
        self.numbers = VaryingNumbers([_described(agent) for agent in agents])
        leaves, self.structure = jax.tree.flatten(self.agent.state)
        self.leaves = [jnp.asarray(leaf) for leaf in leaves]
        self.changed = self._changed_leaves()

    def run(
        self, episodes: int, between: Callable[[], None]
    ) -> list[tuple[dict[str, np.ndarray], Episode, Any]]:
        """Rows, episodes and the last state of each agent; arrays have one entry an episode."""
        lanes = max(1, min(len(self.agents), POINTS_AT_ONCE // self._points))
        calls = -(-episodes // SEGMENT)
        # All segments are equally long. Episodes after the last one change nothing.
        length = -(-episodes // calls)

        @jax.jit
        def segment(first: Array, seeds: Array, values: Any, carries: Any) -> Any:
            def one(lane: Any) -> Any:
                seed, numbers, carry = lane

                def step(before: Any, number: Array) -> Any:
                    after, played = self._episode(seed, numbers, before, number)
                    counts = number < episodes
                    return jax.tree.map(lambda a, b: jnp.where(counts, a, b), after, before), played

                return jax.lax.scan(step, carry, first + jnp.arange(length))

            return jax.lax.map(one, (seeds, values, carries), batch_size=lanes)

        values = [jnp.asarray(value) for value in self.numbers.values]
        carries = self._first_carries()
        parts = []
        for call in range(calls):
            first = jnp.asarray(call * length)
            carries, rows = segment(first, jnp.asarray(self.seeds), values, carries)
            parts.append(jax.tree.map(np.asarray, rows))
            between()
        rows, history = jax.tree.map(
            lambda *arrays: np.concatenate(arrays, axis=1)[:, :episodes], *parts
        )
        states = [
            self._state(agent.state, [leaf[i] for leaf in carries])
            for i, agent in enumerate(self.agents)
        ]
        return [
            (*jax.tree.map(lambda array, i=i: array[i], (rows, history)), state)
            for i, state in enumerate(states)
        ]

    @property
    def _points(self) -> int:
        points = self.agent.planner.query_points(self.agent.problem)
        return 1 if points is None else len(points)

    def _episode(self, seed: Array, numbers: Any, carry: Any, number: Array) -> Any:
        """One episode of one run, as ``interact`` plays it. ``number`` counts from 0."""
        described = self.numbers.filled(numbers)
        agent, environment = copy.copy(self.agent), _environment(self.agent)
        for name in AGENT_PARTS:
            setattr(agent, name, described[name])
        truths = {name: described[name] for name in ENVIRONMENT_PARTS}
        if any(getattr(environment, name) is not truth for name, truth in truths.items()):
            environment = with_fields(environment, truths)
        agent.seed, agent.episode = seed, number  # type: ignore[assignment]
        agent.state = state = self._state(described["state"], carry)
        start_key, play_key = episode_keys(system_key(seed), number)
        start = environment.draw_start(start_key)
        agent._start = start
        key, before = episode_key(seed, number), dict(vars(agent))
        plan = agent.plan(key=key)
        # What an agent remembers of a plan would be lost. Confidence sets are made for every plan.
        after = {name: value for name, value in vars(agent).items() if name != "sets"}
        if any(name not in before or before[name] is not after[name] for name in after):
            raise _not_vectorisable(agent, NO_MEMORY)
        episode = play(environment.mdp, plan.policy, start, key=play_key)
        recorder = copy.copy(self.recorder)
        recorder.agent, recorder.evaluator = agent, ValueEvaluator(self.evaluator, environment)
        row = recorder.before_update(plan, episode)
        if agent.learns:
            agent.state = agent.learner.update(state, episode, key=key)
        row |= recorder.after_update()
        leaves = jax.tree.leaves(agent.state)
        changed = [jnp.asarray(x) for x, c in zip(leaves, self.changed, strict=True) if c]
        numbers = {name: jnp.asarray(value, float) for name, value in row.items()}
        return changed, (numbers, episode)

    def _state(self, state: Any, carry: Sequence[Any]) -> Any:
        """A learner's state with other leaves where they change from episode to episode."""
        leaves, structure = jax.tree.flatten(state)
        remaining = iter(carry)
        filled = [
            next(remaining) if changed else leaf
            for leaf, changed in zip(leaves, self.changed, strict=True)
        ]
        return jax.tree.unflatten(structure, filled)

    def _changed_leaves(self) -> list[bool]:
        problem, key = self.agent.problem, jax.random.key(0)
        H = problem.horizon
        state = np.asarray(problem.states.spread_points(1)[0], float)
        action = np.asarray(problem.actions.spread_points(1)[0], float)
        states, actions = np.tile(state, (H + 1, 1)), np.tile(action, (H, 1))
        episode = Episode(*map(jnp.asarray, (states, actions, np.zeros(H), states[1:])))
        tree = jax.tree.unflatten(self.structure, self.leaves)
        return changed_leaves(lambda tree: self.agent.learner.update(tree, episode, key=key), tree)

    def _first_carries(self) -> list[Array]:
        leaves = [jax.tree.leaves(agent.state) for agent in self.agents]
        return [
            jnp.stack([jnp.asarray(each[i]) for each in leaves])
            for i in itertools.compress(range(len(self.leaves)), self.changed)
        ]


def _environment(agent: Agent) -> Any:
    return agent.task


def _described(agent: Agent) -> dict[str, Any]:
    """Everything in an agent and its environment that numbers may differ in."""
    environment = _environment(agent)
    parts = {name: getattr(agent, name) for name in (*AGENT_PARTS, "state")}
    return parts | {name: getattr(environment, name) for name in ENVIRONMENT_PARTS}


def _as_run(agent: Agent, rows: dict[str, np.ndarray], history: Episode, state: Any) -> PlayedRun:
    """The table and the episodes of one run, with its regret."""
    evaluator, totals = RegretEvaluator(_environment(agent)), dict[str, float]()
    count = len(rows["return"])
    columns = {name: values.tolist() for name, values in rows.items()}
    # Errors of plans are mostly unknown, and without a plan the planned value is.
    unknown = ("planning_error",) if agent.learns else ("planning_error", "planned_value")
    for name, values in columns.items():
        if name not in unknown and np.isnan(values).any():
            raise ArgumentError("vectorise", "runs that differ in other numbers", f"NaN in {name}")
    table = []
    for i in range(count):
        row = {name: values[i] for name, values in columns.items()}
        row |= {"episode": i + 1}
        row |= evaluator.regret_row(row["value"], history.states[i, 0], totals)
        table.append(row)
    arrays = (history.states, history.actions, history.rewards, history.outcomes)
    episodes = [Episode(*each) for each in zip(*arrays, strict=True)]
    return PlayedRun(table, episodes, state, totals)
