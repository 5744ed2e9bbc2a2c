"""Replay a stored run: the same agent learns from the same episodes and makes the same plans."""

import dataclasses
import math
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.agents import Agent
from kernelmdp.confidence import ConfidenceSets, Coverage, Plausible
from kernelmdp.envs import Environment
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.learning_loop import CONTAINMENT_POINTS, columns_of, widths
from kernelmdp.experiments.regret import RegretEvaluator
from kernelmdp.experiments.run_config import RunConfig
from kernelmdp.experiments.run_files import (
    CHECKPOINT_FILE,
    EPISODES_FILE,
    read_description,
    read_history,
    read_rows,
)
from kernelmdp.experiments.safety_columns import SIMULATED_EPISODES, violation_share
from kernelmdp.mdp import Episode, Policy, policy_values
from kernelmdp.numerics.modules import replace_fields
from kernelmdp.theory.certificates import episode_gap, one_period_gap
from kernelmdp.theory.value_lemmas import martingale_differences

#: If the run planned for more seconds than this, only some episodes are planned again. It limits
#: how long an audit takes.
MAX_PLANNING_SECONDS = 60.0
#: How many episodes of such a run are planned again.
SAMPLED_EPISODES = 50
#: Largest relative difference of two actions that count as the same. It allows for rounding.
ACTION_TOLERANCE = 1e-6


@dataclasses.dataclass(frozen=True)
class StoredRun:
    """A run as its folder has it.

    Attributes:
        config: The configuration.
        coverage: Which theorem covers the run, or why none does, as stored when it began.
        columns: The columns of ``episodes.csv``, one number for each episode.
        history: The episodes that have both a row and their data.
    """

    config: RunConfig
    coverage: Coverage
    columns: dict[str, np.ndarray]
    history: list[Episode]

    @property
    def episodes(self) -> int:
        """The number of episodes that have both a row and their data."""
        return len(self.history)

    @property
    def points(self) -> list[np.ndarray]:
        """z = (s, a) of every period of each episode, (H, d); fewer if the episode ended early."""
        return [np.asarray(episode.points) for episode in self.history]


def read_run(folder: Any) -> StoredRun:
    """Read a run from its folder.

    Args:
        folder: The run's folder.

    Returns:
        The run.

    Raises:
        ArgumentError: If a file is missing, or there is no episode.
    """
    path = pathlib.Path(folder)
    description = read_description(path)
    for name in (CHECKPOINT_FILE, EPISODES_FILE):
        if not (path / name).is_file():
            raise ArgumentError("folder", f"a run with its data, in {name}", str(path))
    history, _, _ = read_history(path, description.config)
    rows = read_rows(path)
    count = min(len(rows), len(history))
    if count == 0:
        raise ArgumentError("folder", "a run of at least one episode", str(path))
    columns = {name: np.array([float(row[name]) for row in rows[:count]]) for name in rows[0]}
    return StoredRun(description.config, description.coverage, columns, history[:count])


@dataclasses.dataclass
class ReplayedRun:
    """Numbers that a replay of a run computed, for E episodes. Unknown numbers are NaN.

    Attributes:
        agent: The agent after the replay.
        coverage: Which theorem covers the run, or why none does, computed again.
        planned: Whether each episode was planned again, (E,).
        columns: Recomputed columns of ``episodes.csv``, (E,) each.
        ratios: Largest |error|/width of the confidence sets with the stored β, (E, 2): for reward
            and transition.
        gaps: The gap of each episode, of which certificate (ii) is the sum, (E,).
        other_actions: The number of steps at which the policy's action is not the stored one.
        differences: Martingale differences of lemma (i), one array for each planned episode.
        ranges: Their ranges, likewise.
        policy: The policy of the last episode that was planned.
        sets: The last confidence sets, or None for an agent without sets.
        true_risks: The simulated probability of a violation of each plan in the truth, (E,).
    """

    agent: Agent
    coverage: Coverage
    planned: np.ndarray
    columns: dict[str, np.ndarray]
    ratios: np.ndarray
    gaps: np.ndarray
    other_actions: int = 0
    differences: list[np.ndarray] = dataclasses.field(default_factory=list)
    ranges: list[np.ndarray] = dataclasses.field(default_factory=list)
    policy: Policy | None = None
    sets: ConfidenceSets | None = None
    true_risks: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))

    @property
    def environment(self) -> Environment | None:
        """The environment whose true MDP is known, or None."""
        return getattr(self.agent.system, "environment", None)


def replay(stored: StoredRun) -> ReplayedRun:
    """Make the agent of a run again, and let it plan and learn from the stored episodes.

    Args:
        stored: The run. Columns that an older version did not store are added to it, as NaN.

    Returns:
        The recomputed numbers.
    """
    agent = stored.config.make_agent()
    total, names = stored.episodes, columns_of(agent)
    for name in names:
        stored.columns.setdefault(name, np.full(total, math.nan))
    seconds = float(np.nansum(stored.columns["plan_seconds"]))
    planned = np.ones(total, bool)
    by_episode = agent.update == "episode"
    if not by_episode:
        planned[:] = False
    elif seconds > MAX_PLANNING_SECONDS and total > SAMPLED_EPISODES:
        planned[:] = False
        planned[np.linspace(0, total - 1, SAMPLED_EPISODES).astype(int)] = True
    if agent.plans_made is not None:
        planned[:] = True  # few plans are made, and their sets serve other episodes
    replayed = ReplayedRun(
        agent,
        agent.coverage,
        planned,
        {name: np.full(total, math.nan) for name in names},
        np.full((total, 2), math.nan),
        np.full(total, math.nan),
        true_risks=np.full(total, math.nan),
    )
    known = replayed.environment is not None and np.isfinite(stored.columns["regret"]).any()
    system: Any = agent.system
    evaluator = system.evaluator() if known else None
    points = jnp.asarray(agent.problem.points.spread_points(CONTAINMENT_POINTS))
    for number, episode in enumerate(stored.history):
        row: dict[str, float] = {"return": episode.total}
        if planned[number]:
            row |= _plan_again(replayed, evaluator, episode, number)
        elif by_episode:
            agent.sets = agent.confidence_sets()
        if by_episode and agent.sets is not None:
            replayed.sets = agent.sets
            row |= agent.diagnostics()
            if replayed.environment is not None:
                sets = _with_stored_radii(agent.sets, stored.columns, number)
                ratios = sets.containment(replayed.environment.agent_mdp.model, points)
                replayed.ratios[number] = ratios
        row |= widths(agent, np.asarray(episode.points))
        agent.replay(episode)
        info = agent.learner.info(agent.state)
        row |= {name: info[name] for name in agent.learner.update_columns if name in info}
        for name, value in row.items():
            replayed.columns[name][number] = value
    return replayed


def replanned_note(replayed: ReplayedRun) -> str:
    """Say how many episodes were planned again.

    Args:
        replayed: The replayed run.

    Returns:
        Text to append to the note of a check; empty if all episodes were planned again.
    """
    if replayed.planned.all():
        return ""
    return f"; {int(replayed.planned.sum())} of {len(replayed.planned)} episodes were planned again"


def _plan_again(
    replayed: ReplayedRun, evaluator: RegretEvaluator | None, episode: Episode, number: int
) -> dict[str, float]:
    """Plan an episode again and compare the plan with the stored actions."""
    agent, start = replayed.agent, episode.states[0]
    policy = replayed.policy = agent.ask(None if replayed.environment is None else start)
    plan = agent.planned
    assert plan is not None
    player = policy.player()
    actions = np.stack([player(state, h) for h, state in enumerate(episode.states[:-1])])
    tolerance = ACTION_TOLERANCE * (1 + np.abs(episode.actions))
    differs = np.abs(actions - episode.actions) > tolerance
    replayed.other_actions += int(np.sum(differs.any(axis=1)))
    row = {"planned_value": plan.value(start)}
    if agent.problem.violation is not None:
        row["planned_risk"] = plan.risk(start)
        if replayed.environment is not None:
            replayed.true_risks[number] = violation_share(
                replayed.environment.mdp,
                agent.problem.violation,
                policy,
                start,
                episodes=SIMULATED_EPISODES,
                key=jax.random.key(number),
            )
    if agent.sets is not None:
        family = agent.sets.family(agent.problem.mdp(agent.sets.plausible))
        if agent.problem.horizon == 1:
            point = np.asarray(episode.points)[0]
            replayed.gaps[number] = one_period_gap(family, plan, point, start)
        elif plan.table is not None:
            optimism = getattr(agent.planner, "optimism", "ball")
            if optimism == "bonus" and not agent.problem.states.finite:
                optimism = "upper"  # L bounds no slopes of worst values
            replayed.gaps[number] = episode_gap(
                family, plan, plan.table.grid, start, optimism=optimism
            )
    if evaluator is None or replayed.environment is None:
        return row
    truth = replayed.environment.mdp
    table = plan.table
    if table is not None and agent.problem.horizon > 1 and truth.termination is None:
        excess = table.values - policy_values(truth, policy, table.grid)
        visited = (jnp.asarray(episode.states), jnp.asarray(episode.actions))
        differences, ranges = martingale_differences(truth, excess, table.grid, *visited)
        replayed.differences.append(np.asarray(differences))
        replayed.ranges.append(np.asarray(ranges))
    value = evaluator.value(policy, jnp.asarray(start), episode)
    return row | {"value": value, "regret": evaluator.optimum(jnp.asarray(start)).value - value}


def _with_stored_radii(
    sets: ConfidenceSets, columns: dict[str, np.ndarray], number: int
) -> ConfidenceSets:
    """Return the sets with the stored radii β, with which the episode was played."""
    radii = {name: columns[name][number] for name in ("beta_reward", "beta_transition")}
    stored = {k: np.asarray(v, float) for k, v in radii.items() if math.isfinite(v)}
    if not isinstance(sets.plausible, Plausible):
        return sets  # several sets, which follow from the data alone
    return replace_fields(sets, plausible=replace_fields(sets.plausible, **stored))
