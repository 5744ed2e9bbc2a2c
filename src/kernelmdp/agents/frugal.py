"""An agent that explores only when it pays: careful plans, and draws that promise enough.

The careful plan is the best plan for the mean, with rewards lowered where they are uncertain. It
earns well and seldom fails, but it does not look for anything. PSRL's plan for one drawn MDP does.
Before each episode, the two plans are compared on several drawn MDPs:

- The gain is what the plan for a draw earns there more than the careful plan does. A draw in which
  careful plans earn less than they have earned in fact promises nothing by that.
- The cost is the most that it earns less than the careful plan in one of the other draws.

The agent explores if the gain, over the episodes that are left and times the probability that such
gains come true, exceeds the cost. Both are corrected by what earlier explorations gained and cost.
As long as careful plans improve by themselves, the agent does not explore.
"""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from kernelmdp.agents.agent import Agent
from kernelmdp.agents.config import AgentConfig
from kernelmdp.agents.exploration_record import ExplorationRecord
from kernelmdp.agents.saving import AGENTS
from kernelmdp.errors import ArgumentError
from kernelmdp.learners.model_wrappers import ClippedReward
from kernelmdp.mdp import MDP, Episode
from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.numerics.modules import replace_fields
from kernelmdp.planners import Plan
from kernelmdp.settings import setting
from kernelmdp.types import Key


@dataclasses.dataclass(frozen=True, kw_only=True)
class FrugalConfig(AgentConfig):
    """Settings of the frugal agent.

    >>> FrugalConfig(draws=5).draws
    5
    """

    draws: int = setting(
        6,
        "Number of drawn MDPs on which plans are compared. The first is planned for. The others "
        "tell the cost: with five of them, a loss that one draw in five predicts is mostly seen.",
    )
    learning_episodes: int | None = setting(
        None,
        "Number of episodes in which what is learned pays. The default is the number passed to "
        "learn; with ask and tell it is 20.",
    )
    trust: float = setting(
        0.2,
        "Probability that a promised gain comes true, before there is any experience. A plan is "
        "chosen because its draw promises much, so most promises are too large.",
    )
    improvement: float = setting(
        0.1,
        "Careful plans improve by themselves if the last one earned more than all before by this "
        "share of the promised gain.",
    )
    trust_weight: float = setting(
        5.0, "Number of explorations whose outcome weighs as much as the initial probability."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("draws", self.draws, least=2)
        if self.learning_episodes is not None:
            integer("learning_episodes", self.learning_episodes, least=1)
        for name in ("trust", "trust_weight", "improvement"):
            positive_number(name, getattr(self, name))
        if self.trust > 1:
            raise ArgumentError("trust", "a probability", self.trust)


#: Episodes in which learning pays if nothing is known of their number.
DEFAULT_EPISODES = 20


class Frugal(Agent):
    """Plays careful plans, and explores when that is expected to pay.

    For episodes l = 1, 2, …:

    1. Plan carefully: the mean transition, and the mean reward less some standard deviations.
    2. Draw MDPs from the posterior, and plan for the first of them.
    3. Compare both plans on the draws: what may be gained, and what it is expected to cost.
    4. Play the plan for the draw if gain × episodes left × trust exceeds the cost. Otherwise play
       the careful plan.
    5. Update the posteriors, and the trust in promised gains.

    No theorem is about this agent.

    Attributes:
        name: "frugal".
        Config: ``FrugalConfig``.
        config: The settings.
        columns: Whether the episode explored, the gain that was promised, and the expected cost.
        plans_with_deviations: True: careful plans need standard deviations of the reward.
        is_careful: True: they lower rewards by one, unless ``pessimism`` is set.
        draws_functions: True.

    >>> import kernelmdp as km
    >>> agent = km.Frugal("riverswim", seed=0)
    >>> len(agent.learn(episodes=3, progress=False).episodes)
    3
    """

    name: ClassVar[str] = "frugal"
    Config: ClassVar[type[AgentConfig]] = FrugalConfig
    config: FrugalConfig
    columns: ClassVar[tuple[str, ...]] = ("explored", "promised_gain", "expected_cost")
    plans_with_deviations: ClassVar[bool] = True
    is_careful: ClassVar[bool] = True
    draws_functions: ClassVar[bool] = True

    # Whether the current episode explores, with its promised gain and expected cost.
    _decision: tuple[bool, float, float] | None = None

    def plan(self, *, key: Key) -> Plan:
        careful_key, draw_key, plan_key = jax.random.split(key, 3)
        careful = self.solve(self.careful_mdp(), key=careful_key)
        if self._steps_seen and self._decision is not None:
            explores = self._decision[0]  # decided at the first step of the episode
            return self._plan_for_draw(draw_key, plan_key)[0] if explores else careful
        left = self._episodes_left()
        if left <= 0:
            self._decision = (False, 0.0, 0.0)
            return careful
        draw_plan, draws = self._plan_for_draw(draw_key, plan_key)
        gain, cost = self._compared(careful, draw_plan, draws)
        # Where nothing tells plans apart, careful plans cannot improve.
        can_improve = self._record.is_informed or not self.episode
        improving = can_improve and self._record.improvement > self.config.improvement * gain
        trust = self._record.trust(self.config.trust, self.config.trust_weight)
        self._decision = (gain > 0 and not improving and left * trust * gain > cost, gain, cost)
        return draw_plan if self._decision[0] else careful

    def after_episode(self, episode: Episode) -> None:
        self._record.see_steps(episode)
        plan = self.planned
        if self._decision is None or (plan is not None and plan.plan_share < 1):
            # Random actions, episodes of someone else, or not all of what was planned.
            self._record.see_other(episode.total)
        elif self._decision[0]:
            self._record.see_exploration(episode.total, promised=self._decision[1])
        else:
            self._record.see_careful(episode.total)
        self._decision = None

    def diagnostics(self) -> dict[str, float]:
        if self._decision is None:  # a first episode of random actions
            return {}
        return dict(zip(self.columns, map(float, self._decision), strict=True))

    # Private methods.

    @property
    def _record(self) -> ExplorationRecord:
        return ExplorationRecord(self.totals)

    def _episodes_left(self) -> int:
        """The number of episodes after the next one."""
        given = self.config.learning_episodes
        last = self.last_episode if given is None else given
        return (DEFAULT_EPISODES if last is None else last) - self.episode - 1

    def _plan_for_draw(self, draw_key: Key, plan_key: Key) -> tuple[Plan, list[MDP]]:
        """PSRL's plan for the first draw, and all draws."""
        low, high = map(jnp.asarray, self.learner.reward_limits(self.state))
        draws = []
        for each in jax.random.split(draw_key, self.config.draws):
            mdp = self.learner.sample(self.state, key=each)
            if self.problem.reward is None:
                mdp = replace_fields(mdp, model=ClippedReward(mdp.model, low, high))
            draws.append(mdp)
        # Plans are compared with one terminal value. Termination is the same in all draws.
        first = self.planner.prepared(draws[0], key=jax.random.fold_in(plan_key, 1))
        draws = [replace_fields(mdp, signals=first.signals) for mdp in draws]
        return self.solve(first, key=plan_key), draws

    def _compared(self, careful: Plan, draw_plan: Plan, draws: list[MDP]) -> tuple[float, float]:
        """What the plan for the first draw gains there, and what it costs in the others."""
        start = self.starts[-1] if self._start is None else self._start
        values, careful_values = draw_plan.values_in(draws, start), careful.values_in(draws, start)
        expected = max(0.0, -float((values - careful_values)[1:].min()))
        gain = float(values[0]) - max(float(careful_values[0]), self._record.level)
        return max(gain, 0.0), self._record.corrected_cost(expected)


AGENTS.register(Frugal.name, Frugal)
