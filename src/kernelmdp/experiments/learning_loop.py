"""The loop between an agent and a system: ask, play, tell, and what each episode was worth."""

import time
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.agents import Agent
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.progress import track
from kernelmdp.experiments.regret import Evaluator
from kernelmdp.experiments.results import Result, Table
from kernelmdp.learners.learner import GAINS
from kernelmdp.mdp import Episode
from kernelmdp.planners import Plan
from kernelmdp.types import Key

#: Points at which sets are checked against a known truth.
CHECKED = 400
#: Columns that the loop itself produces: what was earned, how little was known, plans, times.
EARNED = ("episode", "return")
WIDTHS = ("width_reward", "width_transition")
PLANNED = ("planned_value", "planning_error")
TIMES = ("plan_seconds", "update_seconds")


def interact(agent: Agent, episodes: int) -> Iterator[dict[str, Any]]:
    """Play ``episodes`` more episodes; a row of the table after each.

    The system's randomness comes from the agent's seed and the episode's number, apart from the
    agent's own: two agents with one seed meet the same noise.

    >>> import kernelmdp as km
    >>> [row["episode"] for row in interact(km.Random("riverswim", seed=0), 2)]
    [1, 2]
    """
    system: Any = agent.system
    recorder = Recorder(agent, system.evaluator())
    world = jax.random.fold_in(jax.random.key(agent.seed), 2**31 - 1)
    for _ in range(episodes):  # l = 1, 2, …
        start_key, play_key = _keys(world, agent.episode)
        start = system.start(key=start_key)
        start_sync = time.perf_counter()
        policy = agent.ask(start)  # from the beliefs of episodes before l: M_l, and π_l for it
        seconds = time.perf_counter() - start_sync
        plan: Any = agent.planned
        if agent.update == "step":
            episode = system.play_by_step(agent, start, key=play_key)
        else:
            episode = system.play(policy, start, key=play_key)  # s_1, a_1, r_1, …, s_{H+1}
        row = recorder.before_update(plan, episode) | {"plan_seconds": seconds}
        start_sync = time.perf_counter()
        agent.replay(episode)  # update the beliefs with all of it
        jax.block_until_ready(jax.tree.leaves(agent.state))
        row["update_seconds"] = time.perf_counter() - start_sync
        yield row | recorder.after_update()


def learn(agent: Agent, *, episodes: int, progress: bool) -> Result:
    """Play and learn from that many more episodes; ``Agent.learn`` comes here."""
    rows = interact(agent, episodes)
    shown = list(track(rows, total=episodes, agent=agent.name) if progress else rows)
    return Result(agent.problem.name, agent.name, agent.coverage, Table(shown, columns_of(agent)))


@jax.jit
def _keys(world: Key, episode: Any) -> tuple[Key, Key]:
    """For the start of an episode and for its noise; one program is faster than three."""
    start, play = jax.random.split(jax.random.fold_in(world, episode))
    return start, play


class Recorder:
    """Numbers of each episode, from those who produce them: agent, learner, evaluator, the loop."""

    def __init__(self, agent: Agent, evaluator: Evaluator) -> None:
        self.agent, self.evaluator = agent, evaluator
        #: Whether the learner knows more than gains, which are recorded after the update.
        self.diagnoses = agent.learns and not set(agent.learner.columns) <= set(GAINS)
        self.checked = jnp.asarray(agent.problem.points.spread(CHECKED))

    def before_update(self, plan: Plan, episode: Episode) -> dict[str, Any]:
        """What is known of an episode before it is learned from."""
        agent = self.agent
        start = jnp.asarray(episode.states[0])
        row: dict[str, Any] = {"episode": agent.episode + 1, "return": episode.total}
        row |= agent.learner.info(agent.state) if self.diagnoses else {}
        row |= _declared(agent)
        row |= {"planned_value": plan.value(start), "planning_error": plan.error}
        row |= self.evaluator.row(plan.policy, start, episode, agent.totals)
        row |= self.evaluator.containment(agent.sets, self.checked)
        return row | widths(agent, np.asarray(episode.points))

    def after_update(self) -> dict[str, float]:
        """Gains of information, with what the episode told."""
        info = self.agent.learner.info(self.agent.state)
        return {name: info[name] for name in GAINS if name in info}


def columns_of(agent: Agent) -> tuple[str, ...]:
    """The columns of a run, as declared by those who produce them."""
    declared = (
        EARNED,
        Evaluator.columns,
        agent.columns,
        GAINS,
        agent.learner.columns,
        Evaluator.containment_columns,
        WIDTHS,
        PLANNED,
        TIMES,
    )
    return tuple(dict.fromkeys(name for names in declared for name in names))


def _declared(agent: Agent) -> dict[str, float]:
    """The agent's diagnostics; an error names one without a column."""
    found = agent.diagnostics()
    for name in found:
        if name not in agent.columns:
            expected = f"numbers for the columns that {type(agent).__name__} declares"
            raise ArgumentError("diagnostics", expected, repr(name))
    return found


def widths(agent: Agent, points: np.ndarray) -> dict[str, float]:
    """How little was known, before the episode, where it went: sums over points (H, d).

    Half-widths β_R σ_R and ρ of the sets; σ_R and ‖σ_P‖ for agents that have none. Twice the first
    and 2L times the second are this episode's share of a regret certificate (``theory``).
    """
    if agent.update == "step" or not agent.learns:  # what was known before is not kept
        return {}
    # Episodes that ended early are filled up: one program serves every length.
    count, missing = len(points), agent.problem.horizon - len(points)
    z = jnp.asarray(np.concatenate([points, np.repeat(points[-1:], missing, axis=0)]))
    beliefs = agent.learner.beliefs(agent.state)
    if agent.sets is not None:
        reward, transition = agent.sets.half_widths(z)
    elif beliefs is not None:
        reward = beliefs.predict_reward(z)[1]
        transition = np.linalg.norm(np.asarray(beliefs.transition.predict(z)[1]), axis=1)
    else:
        return {}
    sums = (float(np.sum(np.asarray(each)[:count])) for each in (reward, transition))
    return dict(zip(WIDTHS, sums, strict=True))
