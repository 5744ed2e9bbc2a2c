"""The learning loop: ask an agent for a policy, play an episode, learn from it, record numbers."""

import dataclasses
import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp

from kernelmdp.agents import Agent
from kernelmdp.agents.agent_summary import Row, model_rows
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.callback import CallbackList
from kernelmdp.experiments.certified_stop import StopWhenCertified
from kernelmdp.experiments.plan_columns import plan_columns, plan_row
from kernelmdp.experiments.progress import track
from kernelmdp.experiments.regret import Evaluator
from kernelmdp.experiments.results import Result, Table
from kernelmdp.experiments.safety_columns import safety_columns, safety_row
from kernelmdp.learners.learner import GAINS
from kernelmdp.mdp import Episode
from kernelmdp.mdp.checked_start import CheckedStart
from kernelmdp.numerics.modules import small_jit
from kernelmdp.numerics.random_keys import episode_key
from kernelmdp.numerics.tracing import array_library, as_array, as_float
from kernelmdp.planners import Plan
from kernelmdp.types import AnyArray, Key

#: Points at which confidence sets are compared with a known truth. More of them make every episode
#: slower.
CONTAINMENT_POINTS = 400
#: Columns for the number of the episode and its return.
RETURN_COLUMNS = ("episode", "return")
#: Columns for the uncertainty at the visited points; ``widths`` fills them.
WIDTH_COLUMNS = ("width_reward", "width_transition")
#: Columns for the plan.
PLAN_COLUMNS = ("planned_value", "planning_error")
#: Columns for the seconds that the agent took.
TIME_COLUMNS = ("plan_seconds", "update_seconds")


def interact(agent: Agent, episodes: int) -> Iterator[dict[str, Any]]:
    """Play more episodes, and yield a row of the run's table after each.

    The randomness of the system depends on the agent's seed and the number of the episode, but not
    on the agent. Two agents with the same seed meet the same noise.

    Args:
        agent: The agent. It learns from every episode.
        episodes: The number of episodes to play.

    Yields:
        A row: one number for each of the columns that ``columns_of`` lists, or for some of them.

    >>> import kernelmdp as km
    >>> [row["episode"] for row in interact(km.Random("riverswim", seed=0), 2)]
    [1, 2]
    """
    system: Any = agent.system
    recorder = Recorder(agent, system.evaluator())
    key = system_key(agent.seed)
    violation = agent.problem.violation
    agent.last_episode = agent.episode + episodes
    for _ in range(episodes):  # l = 1, 2, …
        start_key, play_key = episode_keys(key, agent.episode)
        start = system.start(key=start_key)
        start_time, agent.activity = time.perf_counter(), "planning"
        policy = agent.ask(start)  # M_l from the beliefs before episode l, and its policy π_l
        seconds = time.perf_counter() - start_time
        plan: Any = agent.planned
        agent.activity = "playing"
        if agent.update == "step":
            episode = system.play_by_step(agent, start, key=play_key)
        else:
            if start is None and violation is not None:
                policy = CheckedStart(policy, violation)
            episode = system.play(policy, start, key=play_key)  # s_1, a_1, r_1, …, s_{H+1}
        row = recorder.before_update(plan, episode) | {"plan_seconds": seconds}
        start_time, agent.activity = time.perf_counter(), "learning"
        agent.replay(episode)  # update the beliefs with the whole episode
        jax.block_until_ready(jax.tree.leaves(agent.state))
        row["update_seconds"] = time.perf_counter() - start_time
        yield row | recorder.after_update()


def learn(
    agent: Agent, *, episodes: int, progress: bool, callback: Any = None, until: float | None = None
) -> Result:
    """Play more episodes and learn from each. ``Agent.learn`` calls this.

    Args:
        agent: The agent.
        episodes: The number of episodes to play.
        progress: Whether to show a progress line in a terminal.
        callback: A callback, a function of agent and row, or a list of these.
        until: Stop when the certificate is within this share of the span; None never does.

    Returns:
        The table of these episodes, and whether a theorem covers the run.
    """
    rows: Iterator[dict[str, Any]] = interact(agent, episodes)
    if progress:
        activity = functools.partial(getattr, agent, "activity")
        rows = track(rows, total=episodes, agent=agent.name, activity=activity)
    callbacks, stop = CallbackList.of(callback), None
    if until is not None:
        stop = StopWhenCertified(until)
        callbacks.callbacks.append(stop)
    tracked = []
    try:
        callbacks.on_start(agent)
        for row in rows:
            tracked.append(row)
            if callbacks.on_episode_end(agent, row) is False:
                break
    finally:
        callbacks.on_stop(agent)
    table = Table(tracked, columns_of(agent))
    result = Result(agent.problem.name, agent.name, agent.coverage, table, model=final_model(agent))
    return result if stop is None else dataclasses.replace(result, certificate=stop.certificate)


def final_model(agent: Agent) -> Callable[[], list[Row]]:
    """Make the function that describes what an agent has learned until now, for results.

    Args:
        agent: The agent.

    Returns:
        A function that returns rows of a summary. What the agent learns later does not change them.
    """
    learner, state, problem = agent.learner, agent.state, agent.problem
    planner = [("planner", type(agent.planner).__name__)]
    if learner.needs_data and not agent.history:
        return functools.partial(list, planner)
    return functools.partial(_model_after, planner, learner, state, problem)


def _model_after(planner: list[Row], *learned: Any) -> list[Row]:
    return planner + model_rows(*learned)


def system_key(seed: Any) -> Key:
    """Make the key of everything random in the system of a run.

    Args:
        seed: The seed of the run, which may be traced.

    Returns:
        The key. No episode of the agent has the same one.
    """
    return episode_key(seed, 2**31 - 1)


@small_jit
def episode_keys(key: Key, episode: Any) -> tuple[Key, Key]:
    """Derive the keys of an episode's start and noise. One program is faster than three.

    Args:
        key: The key of the system.
        episode: The number of episodes before.

    Returns:
        The two keys.
    """
    start, play = jax.random.split(jax.random.fold_in(key, episode))
    return start, play


class Recorder:
    """Collects the numbers of an episode from agent, learner, evaluator and loop.

    Args:
        agent: The agent.
        evaluator: Computes regret and coverage, if the truth is known.
    """

    def __init__(self, agent: Agent, evaluator: Evaluator) -> None:
        self.agent, self.evaluator = agent, evaluator
        #: Whether the learner has diagnostics besides those that are recorded after updates.
        after = set(agent.learner.update_columns)
        self.diagnoses = agent.learns and not set(agent.learner.columns) <= after

    @functools.cached_property
    def containment_points(self) -> jax.Array:
        """Points at which confidence sets are compared with the truth."""
        return jnp.asarray(self.agent.problem.points.spread_points(CONTAINMENT_POINTS))

    def before_update(self, plan: Plan, episode: Episode) -> dict[str, Any]:
        """Collect the numbers of an episode before the agent learns from it.

        Args:
            plan: The agent's plan of the episode.
            episode: The episode.

        Returns:
            Numbers by column.
        """
        agent = self.agent
        start = jnp.asarray(episode.states[0])
        row: dict[str, Any] = {"episode": agent.episode + 1, "return": episode.total}
        row |= agent.learner.info(agent.state) if self.diagnoses else {}
        row |= _checked_diagnostics(agent)
        row |= safety_row(agent, plan, episode)
        row |= plan_row(agent)
        row |= {"planned_value": plan.value(start), "planning_error": plan.error}
        row |= self.evaluator.row(plan.policy, start, episode, agent.totals)
        if agent.sets is not None:
            row |= self.evaluator.containment(agent.sets, self.containment_points)
        return row | widths(agent, episode.points)

    def after_update(self) -> dict[str, float]:
        """Collect the learner's numbers that include the episode, such as information gains.

        Returns:
            Numbers by column.
        """
        learner = self.agent.learner
        info = learner.info(self.agent.state)
        return {name: info[name] for name in learner.update_columns if name in info}


def columns_of(agent: Agent) -> tuple[str, ...]:
    """List the columns of a run. Every part that produces numbers declares its columns.

    Args:
        agent: The agent of the run.

    Returns:
        The names of the columns, in the order of the table.
    """
    declared = (
        RETURN_COLUMNS,
        Evaluator.columns,
        agent.columns,
        GAINS,
        agent.learner.columns,
        Evaluator.containment_columns,
        WIDTH_COLUMNS,
        PLAN_COLUMNS,
        plan_columns(agent),
        safety_columns(agent),
        TIME_COLUMNS,
    )
    return tuple(dict.fromkeys(name for names in declared for name in names))


def _checked_diagnostics(agent: Agent) -> dict[str, float]:
    """Return the agent's diagnostics. An undeclared column is an error."""
    diagnostics = agent.diagnostics()
    for name in diagnostics:
        if name not in agent.columns:
            expected = f"numbers for the columns that {type(agent).__name__} declares"
            raise ArgumentError("diagnostics", expected, repr(name))
    return diagnostics


def widths(agent: Agent, points: AnyArray) -> dict[str, float]:
    """Sum the uncertainty before an episode over the points that the episode visited.

    The summands are the half-widths β_R σ_R and ρ of the confidence sets; σ_R and ‖σ_P‖ for agents
    without sets. Twice the first sum and 2L times the second are the episode's share of a regret
    certificate (``theory``).

    Args:
        agent: The agent, before it learns from the episode.
        points: z = (s, a) of the episode, (n, d) with n ≤ H.

    Returns:
        One number for each of ``WIDTH_COLUMNS``. Empty for an agent that does not learn, or that
        learned during the episode.
    """
    # With updates at every step, the beliefs from before the episode no longer exist.
    if agent.update == "step" or not agent.learns:
        return {}
    # Shorter episodes are padded: then one compiled program serves every length.
    count, missing = len(points), agent.problem.horizon - len(points)
    library = array_library(points)
    z = as_array(library.concatenate([points, library.repeat(points[-1:], missing, axis=0)]))
    beliefs = agent.learner.beliefs(agent.state)
    if agent.sets is not None:
        reward, transition = agent.sets.half_widths(z)
    elif beliefs is not None:
        reward = beliefs.predict_reward(z)[1]
        transition = beliefs.transition.predict(z)[1]
        transition = library.linalg.norm(library.asarray(transition), axis=1)
    else:
        return {}
    sums = (
        as_float(library.sum(library.asarray(values)[:count])) for values in (reward, transition)
    )
    return dict(zip(WIDTH_COLUMNS, sums, strict=True))
