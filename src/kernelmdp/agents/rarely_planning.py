"""Agents that may keep a plan for several episodes, until enough was learned since."""

import dataclasses
from typing import Any, ClassVar

import jax
import numpy as np

from kernelmdp.agents.agent import Agent
from kernelmdp.agents.config import AgentConfig
from kernelmdp.confidence.theorem import Evidence
from kernelmdp.errors import ArgumentError
from kernelmdp.learners.stale_beliefs import StaleBeliefs, advanced, deviation_gains, replayed
from kernelmdp.mdp import Episode
from kernelmdp.numerics.checks import positive_number
from kernelmdp.numerics.random_keys import episode_key
from kernelmdp.planners import Plan
from kernelmdp.settings import setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class RarelyPlanningConfig(AgentConfig):
    """Settings of agents that may keep a plan for several episodes.

    >>> RarelyPlanningConfig(replan_gain=0.5).replan_gain
    0.5
    """

    replan_gain: float | None = setting(
        None,
        "Keep a plan until the information gain about the reward or the transition has grown by "
        "more than this number c. Regret bounds grow by a factor of at most e^c, and there are at "
        "most 1 + (γ_R + γ_P)/c plans. None plans for every episode.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.replan_gain is None:
            return
        object.__setattr__(self, "replan_gain", positive_number("replan_gain", self.replan_gain))
        rules = {
            "update='step'": self.update == "step",
            "constraints": self.constraints is not None,
            "at_least": self.at_least is not None,
            "forgetting": self.forgetting > 0,
        }
        for name, used in rules.items():
            if used:
                raise ArgumentError("replan_gain", f"None with {name}", self.replan_gain)


class RarelyPlanning(Agent):
    """The part of an agent that keeps plans while little is learned (theory, Theorem 10).

    Which plan is kept follows from the episodes alone. An agent that was loaded finds it by
    learning from them again.

    Args:
        task: As for ``Agent``.
        **settings: As for ``Agent``.

    Attributes:
        Config: ``RarelyPlanningConfig``.
        config: The settings.

    >>> import kernelmdp as km
    >>> agent = km.GPUCRL("riverswim", replan_gain=1.0, seed=0)
    >>> plans = agent.learn(episodes=100, progress=False).episodes["plans"]
    >>> bool(plans[-1] < 30)
    True
    """

    Config: ClassVar[type[AgentConfig]] = RarelyPlanningConfig
    config: RarelyPlanningConfig
    # The beliefs of the plan; None until they are found. And the plan itself, with its sets.
    _stale: StaleBeliefs | None = None
    _kept: tuple[int, Plan, Any] | None = None

    def __init__(self, task: object, **settings: Any) -> None:
        super().__init__(task, **settings)
        if self.config.replan_gain is None:
            return
        planner = type(self.planner).__name__
        if self.learner.name != "fixed":
            raise ArgumentError("replan_gain", "None unless kernels are fixed", self.learner.name)
        if self.planner.replans or self.planner.approximate:
            raise ArgumentError("replan_gain", "None but for plans of all states", planner)
        self._stale = self._before_data()

    @property
    def plans_made(self) -> int | None:
        return None if self.config.replan_gain is None else self._found().plans

    @property
    def evidence(self) -> Evidence:
        return dataclasses.replace(super().evidence, replan_gain=self.config.replan_gain)

    def restore(self, episodes: list[Episode], state: object, best_state: object) -> None:
        self._stale = None  # the states between the episodes are not known
        super().restore(episodes, state, best_state)

    def _take(self, episode: Episode, state: object) -> None:
        super()._take(episode, state)
        if self._stale is not None:
            self._stale = self._advanced(self._stale, self.episode, self.state)

    def _next_plan(self) -> Plan:
        if self.config.replan_gain is None:
            return super()._next_plan()
        stale = self._found()
        if self._kept is None or self._kept[0] != stale.episode:
            self._kept = (stale.episode, self._plan_from(stale), self.sets)
        _, plan, self.sets = self._kept
        return plan

    def _plan_from(self, stale: StaleBeliefs) -> Plan:
        """The plan as it was made. It is made again only after loading."""
        newest = self.state, self.episode, self._start
        if stale.episode < self.episode:
            self.state, self.episode = stale.state, stale.episode
            self._start = np.asarray(self.history[stale.episode].states[0], float)
        try:
            return super()._next_plan()
        finally:
            self.state, self.episode, self._start = newest

    def _found(self) -> StaleBeliefs:
        if self._stale is None:
            self._stale = replayed(
                self._before_data(),
                self.history,
                update=lambda state, episode, index: self.learner.update(
                    state, episode, key=episode_key(self.seed, index)
                ),
                advance=self._advanced,
            )
        return self._stale

    def _before_data(self) -> StaleBeliefs:
        state = self.learner.init(self.problem, key=jax.random.key(self.seed))
        return StaleBeliefs(0, state, self._gains(state), 1)

    def _gains(self, state: object) -> tuple[float, ...]:
        beliefs = self.learner.beliefs(state)
        assert beliefs is not None  # kernels are fixed
        return deviation_gains(beliefs)

    def _advanced(self, stale: StaleBeliefs, episode: int, state: object) -> StaleBeliefs:
        # Random actions of a first episode are no plan to keep.
        unplanned = stale.episode == 0 and self.first_episode != "prior"
        # In the setting "gp", the slack 1/k² of the episode k of a plan must shrink.
        return advanced(
            stale,
            episode=episode,
            state=state,
            gains=self._gains(state),
            allowed=-1.0 if unplanned else self.config.replan_gain or 0.0,
            doubles=self.confidence.setting == "gp" and not self.problem.points.finite,
        )
