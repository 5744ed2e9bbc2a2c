"""A stored run lived again: the same agent, told the same episodes, asked for the same plans."""

import dataclasses
import math
import pathlib
from typing import Any

import jax.numpy as jnp
import numpy as np

from kernelmdp.agents import Agent
from kernelmdp.confidence import ConfidenceSets, Coverage
from kernelmdp.envs import Environment
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.learning_loop import CHECKED, columns_of, widths
from kernelmdp.experiments.regret import RegretEvaluator
from kernelmdp.experiments.run_config import RunConfig
from kernelmdp.experiments.run_files import (
    CHECKPOINT,
    ROWS,
    read_description,
    read_history,
    read_rows,
)
from kernelmdp.learners.learner import GAINS
from kernelmdp.mdp import Episode, Policy, policy_values
from kernelmdp.numerics.modules import changed
from kernelmdp.theory.certificates import episode_gap, one_period_gap
from kernelmdp.theory.value_lemmas import martingale_differences

#: Seconds of planning beyond which not every episode is planned again, and how many are then.
PATIENCE, SAMPLED = 60.0, 50
#: Actions further apart than this are not the same.
SAME_ACTION = 1e-6


@dataclasses.dataclass(frozen=True)
class StoredRun:
    """What a run's folder says."""

    config: RunConfig
    coverage: Coverage
    columns: dict[str, np.ndarray]
    history: list[Episode]

    @property
    def episodes(self) -> int:
        """How many have both a row and their data."""
        return len(self.history)

    @property
    def points(self) -> list[np.ndarray]:
        """z = (s, a) of every period of each episode, (H, d); fewer where one ended early."""
        return [np.asarray(episode.points) for episode in self.history]


def read_run(folder: Any) -> StoredRun:
    """A run from its folder, or one sentence on what is missing."""
    place = pathlib.Path(folder)
    description = read_description(place)
    for name in (CHECKPOINT, ROWS):
        if not (place / name).is_file():
            raise ArgumentError("folder", f"a run with its data, in {name}", str(place))
    history, _ = read_history(place, description.config)
    rows = read_rows(place)
    both = min(len(rows), len(history))
    if both == 0:
        raise ArgumentError("folder", "a run of at least one episode", str(place))
    columns = {name: np.array([float(row[name]) for row in rows[:both]]) for name in rows[0]}
    return StoredRun(description.config, description.coverage, columns, history[:both])


@dataclasses.dataclass
class ReplayedRun:
    """What should have been stored, by column, and what only a replay can know; NaN elsewhere."""

    agent: Agent
    coverage: Coverage
    #: Whether the episode was planned again.
    planned: np.ndarray
    columns: dict[str, np.ndarray]
    #: Largest |error|/width of the sets as played, (E, 2): reward, transition.
    ratios: np.ndarray
    #: Certificate (ii) of each episode.
    gaps: np.ndarray
    #: Steps at which the policy's action is not the stored one.
    other_actions: int = 0
    differences: list[np.ndarray] = dataclasses.field(default_factory=list)
    ranges: list[np.ndarray] = dataclasses.field(default_factory=list)
    policy: Policy | None = None
    sets: ConfidenceSets | None = None

    @property
    def environment(self) -> Environment | None:
        """The truth, where there is one."""
        return getattr(self.agent.system, "environment", None)


def replay(stored: StoredRun) -> ReplayedRun:
    """Make the agent anew and tell it the stored episodes one by one, asking before each."""
    agent = stored.config.make_agent()
    total, names = stored.episodes, columns_of(agent)
    for name in names:  # what an older run did not store
        stored.columns.setdefault(name, np.full(total, math.nan))
    seconds = float(np.nansum(stored.columns["plan_seconds"]))
    planned = np.ones(total, bool)
    by_episode = agent.update == "episode"
    if not by_episode:
        planned[:] = False
    elif seconds > PATIENCE and total > SAMPLED:
        planned[:] = False
        planned[np.linspace(0, total - 1, SAMPLED).astype(int)] = True
    found = ReplayedRun(
        agent,
        agent.coverage,
        planned,
        {name: np.full(total, math.nan) for name in names},
        np.full((total, 2), math.nan),
        np.full(total, math.nan),
    )
    known = found.environment is not None and np.isfinite(stored.columns["regret"]).any()
    system: Any = agent.system
    judge = system.evaluator() if known else None
    checked = jnp.asarray(agent.problem.points.spread(CHECKED))
    for number, episode in enumerate(stored.history):
        row: dict[str, float] = {"return": episode.total}
        if planned[number]:
            row |= _planned_again(found, judge, episode, number)
        elif by_episode:
            agent.sets = agent.confidence_sets()
        if by_episode and agent.sets is not None:
            found.sets = agent.sets
            row |= agent.diagnostics()
            if found.environment is not None:
                played = _as_played(agent.sets, stored.columns, number)
                inside = played.containment(found.environment.seen.model, checked)
                found.ratios[number] = inside
        row |= widths(agent, np.asarray(episode.points))
        agent.replay(episode)
        row |= {
            name: value for name, value in agent.learner.info(agent.state).items() if name in GAINS
        }
        for name, value in row.items():
            found.columns[name][number] = value
    return found


def sampled(found: ReplayedRun) -> str:
    """How many episodes were planned again, for a note; nothing when all were."""
    if found.planned.all():
        return ""
    return f"; {int(found.planned.sum())} of {len(found.planned)} episodes were planned again"


def _planned_again(
    found: ReplayedRun, judge: RegretEvaluator | None, told: Episode, number: int
) -> dict[str, float]:
    agent, start = found.agent, told.states[0]
    policy = found.policy = agent.ask(None if found.environment is None else start)
    plan = agent.planned
    assert plan is not None
    player = policy.player()
    again = np.stack([player(state, h) for h, state in enumerate(told.states[:-1])])
    apart = np.abs(again - told.actions) > SAME_ACTION * (1 + np.abs(told.actions))
    found.other_actions += int(np.sum(apart.any(axis=1)))
    row = {"planned_value": plan.value(start)}
    if agent.sets is not None:
        family = agent.sets.family(agent.problem.mdp(agent.sets.plausible))
        if agent.problem.horizon == 1:
            found.gaps[number] = one_period_gap(family, plan, np.asarray(told.points)[0], start)
        elif plan.table is not None:
            optimism = getattr(agent.planner, "optimism", "ball")
            found.gaps[number] = episode_gap(
                family, plan, plan.table.grid, start, optimism=optimism
            )
    if judge is None or found.environment is None:
        return row
    truth = found.environment.mdp
    table = plan.table
    if table is not None and agent.problem.horizon > 1 and truth.termination is None:
        excess = table.values - policy_values(truth, policy, table.grid)
        episode = (jnp.asarray(told.states), jnp.asarray(told.actions))
        parts = martingale_differences(truth, excess, table.grid, *episode)
        found.differences.append(np.asarray(parts[0]))
        found.ranges.append(np.asarray(parts[1]))
    value = judge.value(policy, jnp.asarray(start), told)
    return row | {"value": value, "regret": judge.optimum(jnp.asarray(start)).value - value}


def _as_played(sets: ConfidenceSets, columns: dict[str, np.ndarray], number: int) -> ConfidenceSets:
    """The sets with the β that the run stored, which is what it played with."""
    betas = {name: columns[name][number] for name in ("beta_reward", "beta_transition")}
    given = {k: np.asarray(v, float) for k, v in betas.items() if math.isfinite(v)}
    return changed(sets, plausible=changed(sets.plausible, **given))
