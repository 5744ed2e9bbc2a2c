"""A stored run lived again: the same agent, told the same episodes, asked for the same plans."""

import dataclasses
import math
import pathlib
import tomllib
from typing import Any

import jax.numpy as jnp
import numpy as np

from kernelmdp.agents import GPUCRL, Agent, checkpoint
from kernelmdp.agents.base import Told
from kernelmdp.agents.learning import CHECKED, widths
from kernelmdp.agents.records import COLUMNS
from kernelmdp.agents.regret import Judge
from kernelmdp.confidence import ConfidenceSets
from kernelmdp.envs import Environment
from kernelmdp.errors import ArgumentError, CheckpointError
from kernelmdp.experiments.config import RunConfig, read_config
from kernelmdp.experiments.recovery import read_rows
from kernelmdp.mdp import Episode, Policy, policy_values
from kernelmdp.numerics.modules import changed
from kernelmdp.planners import GridPlan
from kernelmdp.theory.certificates import episode_gap, one_period_gap
from kernelmdp.theory.chances import martingale_differences

#: Seconds of planning beyond which not every episode is planned again, and how many are then.
PATIENCE, SAMPLED = 60.0, 50
#: Actions further apart than this are not the same.
SAME_ACTION = 1e-6


@dataclasses.dataclass(frozen=True)
class Stored:
    """What a run's folder says."""

    config: RunConfig
    covered: str
    columns: dict[str, np.ndarray]
    history: list[Told]

    @property
    def episodes(self) -> int:
        """How many have both a row and their data."""
        return len(self.history)

    @property
    def points(self) -> list[np.ndarray]:
        """z = (s, a) of every period of each episode, (H, d); fewer where one ended early."""
        return [_points(told) for told in self.history]


def read_run(folder: Any) -> Stored:
    """A run from its folder, or one sentence on what is missing."""
    place = pathlib.Path(folder)
    config = read_config(place)
    for name in ("checkpoint", "episodes.csv"):
        if not (place / name).is_file():
            raise ArgumentError("folder", f"a run with its data, in {name}", str(place))
    description, arrays = checkpoint.read(place / "checkpoint")
    agent, seed = description.get("agent"), description.get("seed")
    if (agent, seed) != (config.agent, config.seed):
        raise CheckpointError(f"{place}: the checkpoint holds {agent} with seed {seed}")
    if len({len(arrays[name]) for name in checkpoint.ARRAYS}) > 1:
        raise CheckpointError(f"{place}: the checkpoint has arrays of different lengths")
    rows = read_rows(place / "episodes.csv")
    told = Told.all_of(arrays)
    both = min(len(rows), len(told))
    if both == 0:
        raise ArgumentError("folder", "a run of at least one episode", str(place))
    columns = {name: np.array([float(row[name]) for row in rows[:both]]) for name in COLUMNS}
    found = tomllib.loads((place / "config.toml").read_text()).get("found", {})
    return Stored(config, str(found.get("covered", "")), columns, told[:both])


@dataclasses.dataclass
class Replayed:
    """What should have been stored, by column, and what only a replay can know; NaN elsewhere."""

    agent: Agent
    covered: str
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
        return self.agent.task if isinstance(self.agent.task, Environment) else None


def replay(stored: Stored) -> Replayed:
    """Make the agent anew and tell it the stored episodes one by one, asking before each."""
    agent = stored.config.make_agent()
    total = stored.episodes
    seconds = float(np.nansum(stored.columns["plan_seconds"]))
    planned = np.ones(total, bool)
    by_episode = agent.update == "episode"
    if not by_episode:
        planned[:] = False
    elif seconds > PATIENCE and total > SAMPLED:
        planned[:] = False
        planned[np.linspace(0, total - 1, SAMPLED).astype(int)] = True
    found = Replayed(
        agent,
        agent.covered,
        planned,
        {name: np.full(total, math.nan) for name in COLUMNS},
        np.full((total, 2), math.nan),
        np.full(total, math.nan),
    )
    known = found.environment is not None and np.isfinite(stored.columns["regret"]).any()
    judge = Judge(found.environment) if known and found.environment is not None else None
    checked = jnp.asarray(agent.problem.points.spread(CHECKED))
    for number, told in enumerate(stored.history):
        row: dict[str, float] = {"return": float(np.sum(told.rewards))}
        if planned[number]:
            row |= _planned_again(found, judge, told, number)
        elif by_episode and isinstance(agent, GPUCRL):
            agent.sets = agent.confidence_sets()
        if by_episode and isinstance(agent, GPUCRL) and hasattr(agent, "sets"):
            found.sets = agent.sets
            row |= agent.diagnostics()
            if found.environment is not None:
                played = _as_played(agent.sets, stored.columns, number)
                inside = played.coverage(found.environment.seen.model, checked)
                found.ratios[number] = inside
        row |= widths(agent, _points(told))
        agent.relive(told)
        row["gain_reward"], row["gain_transition"] = agent.gains
        for name, value in row.items():
            found.columns[name][number] = value
    return found


def sampled(found: Replayed) -> str:
    """How many episodes were planned again, for a note; nothing when all were."""
    if found.planned.all():
        return ""
    return f"; {int(found.planned.sum())} of {len(found.planned)} episodes were planned again"


def _planned_again(
    found: Replayed, judge: Judge | None, told: Told, number: int
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
    if isinstance(agent, GPUCRL) and hasattr(agent, "sets"):
        family = agent.sets.family(agent.problem.mdp(agent.sets.plausible))
        if agent.problem.horizon == 1:
            found.gaps[number] = one_period_gap(family, plan, _points(told)[0], start)
        elif isinstance(plan, GridPlan):
            optimism = agent.planner.optimism
            found.gaps[number] = episode_gap(family, plan, plan.grid, start, optimism=optimism)
    if judge is None or found.environment is None:
        return row
    truth = found.environment.mdp
    if isinstance(plan, GridPlan) and agent.problem.horizon > 1 and truth.termination is None:
        excess = plan.values - policy_values(truth, policy, plan.grid)
        episode = (jnp.asarray(told.states), jnp.asarray(told.actions))
        parts = martingale_differences(truth, excess, plan.grid, *episode)
        found.differences.append(np.asarray(parts[0]))
        found.ranges.append(np.asarray(parts[1]))
    rows = (told.states, told.actions, told.rewards, told.outcomes)
    lived = Episode(*map(jnp.asarray, rows), terminated=told.terminated)
    value = judge.value(policy, jnp.asarray(start), lived)
    return row | {"value": value, "regret": judge.optimum(jnp.asarray(start)).value - value}


def _as_played(sets: ConfidenceSets, columns: dict[str, np.ndarray], number: int) -> ConfidenceSets:
    """The sets with the β that the run stored, which is what it played with."""
    betas = {name: columns[name][number] for name in ("beta_reward", "beta_transition")}
    given = {k: np.asarray(v, float) for k, v in betas.items() if math.isfinite(v)}
    return changed(sets, plausible=changed(sets.plausible, **given))


def _points(told: Told) -> np.ndarray:
    return np.concatenate([told.states[:-1], told.actions], axis=1)
