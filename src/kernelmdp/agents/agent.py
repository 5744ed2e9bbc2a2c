"""The base class of agents: plan an episode, learn from it, save and load.

An agent is a rule. A subclass says how beliefs become a plan, in ``plan``; nothing else differs.
All randomness comes from the seed and the number of the episode. A resumed agent therefore
continues as if it had never stopped.
"""

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from kernelmdp.agents.agent_control import AgentControl
from kernelmdp.agents.agent_files import AgentFiles
from kernelmdp.agents.agent_summary import agent_rows, summary_text
from kernelmdp.agents.config import AgentConfig, signature_with
from kernelmdp.agents.conservative import next_plan
from kernelmdp.agents.evaluation import Evaluation
from kernelmdp.agents.evidence import evidence_of
from kernelmdp.agents.first_state import first_state
from kernelmdp.agents.safety import allowed_risk, plan_safely, spend_risk, without_theorem
from kernelmdp.agents.system import checked_state
from kernelmdp.confidence import NO_THEOREM, Beliefs, ConfidenceSets, Coverage, as_confidence
from kernelmdp.confidence.run_assumptions import first_clipped_step
from kernelmdp.confidence.theorem import Evidence, Theorem
from kernelmdp.errors import ArgumentError
from kernelmdp.learners import Learner, LearnerRequirements, as_learner
from kernelmdp.mdp import MDP, Episode, Problem
from kernelmdp.mdp.constraints import require_allowed
from kernelmdp.mdp.episode import checked_step, recorded_episode
from kernelmdp.mdp.policy import Policy
from kernelmdp.mdp.schedules import has_tables, schedules_of
from kernelmdp.mdp.told_data import told_episode, user_policy
from kernelmdp.numerics.checks import integer
from kernelmdp.numerics.keywords import suggests_keywords
from kernelmdp.numerics.random_keys import episode_key
from kernelmdp.planners import Plan, Planner, as_planner
from kernelmdp.planners.registry import constrained
from kernelmdp.types import ArrayLike, Key


class Agent(AgentControl, AgentFiles, abc.ABC):
    """An agent that learns a controller episode by episode. Use one of its subclasses.

    Args:
        task: An environment, its name, a Gymnasium id or object, or a ``Problem`` when you run
            the loop yourself with ``ask`` and ``tell``.
        seed: The seed of everything that is random.
        horizon: The number of periods H, where the task does not define it.
        action_repeat: The number of steps of a Gymnasium environment for which each action is
            held. One period is then that many steps. The default is what the task has, usually 1.
        angles: Coordinates of a Gymnasium environment that are angles in radians, by number or
            name. The default is what the task has. Cosines and sines are found by themselves.
        config: All settings in one object.
        **settings: Single settings instead of ``config``. ``Config`` documents each of them.

    Attributes:
        name: The agent's name on the command line and in files.
        Config: The class of the agent's settings.
        columns: Columns that ``diagnostics`` fills, besides those of the learner.
        default_learner: The learner's name; "auto" takes the one that the problem names.
        plans_with_deviations: Whether plans need standard deviations at the planner's points.
        is_careful: Whether plans lower learned rewards by a standard deviation with any kernels.
        draws_functions: Whether plans need functions drawn from the posterior.
        learns: Whether beliefs change with the data.

    Raises:
        ArgumentError: If a setting is unknown or invalid.

    >>> import kernelmdp as km
    >>> agent = km.PSRL("riverswim", seed=0)
    >>> policy = agent.ask()  # fixed for one episode
    >>> states, actions, rewards = [[0]], [], []
    >>> for period in range(20):
    ...     actions.append(policy(states[-1], period))
    ...     rewards.append(0.005)  # measured on your system
    ...     states.append([0])
    >>> agent.tell(states, actions, rewards)
    >>> agent.episode
    1
    """

    name: ClassVar[str]
    Config: ClassVar[type[AgentConfig]] = AgentConfig
    columns: ClassVar[tuple[str, ...]] = ()
    default_learner: ClassVar[str] = "auto"
    plans_with_deviations: ClassVar[bool] = False
    is_careful: ClassVar[bool] = False
    draws_functions: ClassVar[bool] = False
    learns: ClassVar[bool] = True

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Show the settings in the signature of the class."""
        super().__init_subclass__(**keywords)
        cls.__signature__ = signature_with(Agent.__init__, cls.Config)  # type: ignore[attr-defined]

    def __init__(
        self,
        task: object,
        *,
        seed: int = 0,
        horizon: int | None = None,
        action_repeat: int | None = None,
        angles: Sequence[int | str] | None = None,
        config: AgentConfig | None = None,
        **settings: Any,
    ) -> None:
        if config is not None and settings:
            raise ArgumentError("config", "None when settings are given", config)
        self.seed = integer("seed", seed, least=0)
        others = ("seed", "horizon", "action_repeat", "angles")
        self.config = self.Config.of(settings if config is None else config, others)
        options: dict[str, Any] = {"action_repeat": action_repeat, "angles": angles}
        self.system = self.config.system_for(task, horizon=horizon, **options)
        self.problem: Problem = self.config.problem_for(self.system)
        preset = "fitted" if self.problem.learner == "fitted" else "practical"
        confidence = as_confidence(self.config.confidence, default=preset)
        self.confidence = confidence.for_problem(self.problem)
        self.planner: Planner = self._make_planner()
        self.learner: Learner = self._make_learner()
        self.update = self.config.update_for(self.problem)
        # A rough model can be planned in before any data, if it is known what is wanted.
        can_plan = self.problem.known_motion.is_prior and self.problem.reward is not None
        must_explore = self.learner.needs_data and self.update == "episode" and not can_plan
        exploration = "random" if self.problem.fallback is None else "fallback"
        self.first_episode = self.config.first_episode or (exploration if must_explore else "prior")
        #: The learner's state: what was learned so far.
        self.state: Any = first_state(self.learner, self.problem, self.seed, self.draws_functions)
        #: The episodes that were learned from, and their number.
        self.history: list[Episode] = []
        self.episode: Any = 0
        #: Running sums, such as cumulative regret, that the learning loop stores with the agent.
        self.totals: dict[str, float] = {}
        #: What the learning loop does now: "planning", "playing" or "learning".
        self.activity = "planning"
        #: Number of the last episode in which what is learned pays; None if it is not known.
        self.last_episode: int | None = None
        #: Confidence sets of the current episode, for agents that build them.
        self.sets: ConfidenceSets | None = None
        # Whether the next episode has schedules of its own.
        self._follows_schedules = has_tables(self.config.known)
        # Steps of the current episode that were learned from already (``update="step"``).
        self._steps_seen = 0
        # Episode and step of the first outcome that may have been clipped.
        self._clipped: tuple[int, int] | None = None
        self._plan: Plan | None = None
        self._start: np.ndarray | None = None
        self._greedy: Plan | None = None
        self._evaluated_in: object = None
        #: The best evaluation so far, or None before the first.
        self.best: Evaluation | None = None
        #: Whether ``predict`` follows the best controller and not the newest one.
        self.follows_best = False
        #: The learner's state at the best evaluation.
        self.best_state: Any = self.state

    # Methods for subclasses.

    @abc.abstractmethod
    def plan(self, *, key: Key) -> Plan:
        """Plan the next episode from what was learned.

        Args:
            key: Decides everything random in the plan.

        Returns:
            The plan. Its policy is played for one whole episode.
        """

    def plan_greedy(self, *, key: Key) -> Plan:
        """Plan without exploration: the best plan for the mean, with pessimistic rewards.

        Args:
            key: Breaks ties between equally good actions.

        Returns:
            The plan that ``predict`` follows.
        """
        mdp, state = self.careful_mdp(), self.controller_state
        return plan_safely(self, self.planner, mdp, state=state, key=key)

    def careful_mdp(self) -> MDP:
        """Return the mean MDP, with learned rewards lowered by the setting ``pessimism``.

        Returns:
            The MDP that ``predict`` plans in.
        """
        if self.pessimism == 0:
            return self.learner.mean(self.controller_state)
        return self.learner.pessimistic(self.controller_state, deviations=self.pessimism)

    @property
    def controller_state(self) -> Any:
        """The learner's state that ``predict`` plans with: the newest, or the best evaluated."""
        return self.best_state if self.follows_best else self.state

    @property
    def pessimism(self) -> float:
        """Standard deviations by which ``careful_mdp`` lowers rewards."""
        lowers = self.is_careful or self.problem.learner == "fitted"
        default = float(lowers and not self.planner.needs_quadratic_rewards)
        return default if self.config.pessimism is None else float(self.config.pessimism)

    def requirements(self) -> LearnerRequirements:
        """State what the agent and its planner need from the learner.

        Returns:
            The requirements, from which ``as_learner`` makes the learner.
        """
        return LearnerRequirements(
            query_points=self.planner.query_points,
            deviations=self.plans_with_deviations,
            uses_grid=self.planner.uses_grid,
            visited_states=self.planner.visited_states(self.problem),
        )

    def after_episode(self, episode: Episode) -> None:
        """Take note of how an episode went that was planned with ``plan``.

        Args:
            episode: The episode, from which the learner has learned already.
        """

    def confidence_sets(self) -> ConfidenceSets | None:
        """Build the confidence sets of the next episode.

        Returns:
            The sets, or None for an agent without confidence sets.
        """
        return None

    @property
    def coverage(self) -> Coverage:
        """Which theorem covers this run, or why none does."""
        return NO_THEOREM

    def diagnostics(self) -> dict[str, float]:
        """Report numbers of the last plan.

        Returns:
            One number for each name in ``columns``.
        """
        return {}

    def solve(self, mdp: MDP, *, key: Key) -> Plan:
        """Plan in an MDP, or in a family of plausible MDPs, from the next episode's start.

        Args:
            mdp: What to plan in.
            key: Decides everything random in the plan.

        Returns:
            The planner's plan.
        """
        planner = self.planner.for_episode(self.episode + 1, horizon=self.problem.horizon)
        return plan_safely(self, planner, mdp, risk=allowed_risk(self), start=self._start, key=key)

    @property
    def next_start(self) -> np.ndarray | None:
        """First state of the next episode, (m,), if ``ask`` was told."""
        return self._start

    @property
    def starts(self) -> np.ndarray:
        """First states of all episodes, (n, m); before the first, one of the state space."""
        if not self.history:
            return np.asarray(self.problem.states.spread_points(1)[:1], float)
        return np.stack([np.asarray(episode.states[0], float) for episode in self.history])

    @property
    def evidence(self) -> Evidence:
        """What the assumptions of theorems are checked on."""
        return evidence_of(self, clipped=self._clipped)

    @property
    def plans_made(self) -> int | None:
        """How many plans were made, with the next episode's; None if every episode has its own."""
        return None

    @property
    def safety(self) -> Coverage:
        """Whether a theorem covers the constraints, or why none does."""
        return without_theorem(self)

    @property
    def theorem(self) -> Theorem | None:
        """The theorem that is about this agent, or None."""
        return None

    # Methods for users.

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.problem.name!r}, {self.episode} episodes)"

    def __str__(self) -> str:
        return summary_text(f"{type(self).__name__}, seed {self.seed}", agent_rows(self))

    @property
    def task(self) -> object:
        """The task that the agent was made for."""
        return self.system.task

    @property
    def beliefs(self) -> Beliefs | None:
        """Gaussian process posteriors of reward and transition, if the learner has them."""
        return self.learner.beliefs(self.state)

    def ask(self, first_state: ArrayLike | None = None) -> Policy:
        """Return the policy π_l of the next episode.

        The policy is fixed for the episode. Until you call ``tell``, ``ask`` returns the same
        policy again.

        Args:
            first_state: Where the episode starts, (m,). Planners that depend on the start use it.

        Returns:
            A function ``policy(state, period) -> action``; periods count from 0.
        """
        if first_state is not None:
            self._start = checked_state(self.problem, "first_state", first_state)
            require_allowed(self.problem.violation, "first_state", self._start)
        if self._plan is None:
            if self._follows_schedules:
                self.schedule(**schedules_of(self.config.known, self.episode, self.problem))
            self._plan = self._next_plan()
        return user_policy(self.problem, self._plan.policy)

    def schedule(self, **values: ArrayLike) -> None:
        """Say what scheduled coordinates do in the next episodes, such as another reference.

        ``ask``, ``predict`` and the controller plan for it. Schedules given as a table with a row
        for each episode come back at the next ``ask`` after ``tell``.

        Args:
            **values: Values at the times 0 to H, (H + 1,), by the name of the coordinate. The
                setting ``known`` must have named a schedule for it.
        """
        self.state = self.learner.with_schedules(self.state, values)
        self.best_state = self.learner.with_schedules(self.best_state, values)
        self._plan = self._greedy = None
        self._follows_schedules = False

    @property
    def planned(self) -> Plan | None:
        """The plan of the current episode, or None before ``ask``."""
        return self._plan

    @suggests_keywords
    def tell(
        self,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        outcomes: ArrayLike | None = None,
        *,
        costs: ArrayLike | None = None,
        terminated: bool = False,
        truncated: bool = False,
    ) -> None:
        """Learn from an episode. If an error is raised, the agent is unchanged.

        Args:
            states: The H + 1 visited states, (H + 1, m).
            actions: The H actions, (H, q).
            rewards: The H rewards, (H,).
            outcomes: Next states before they were projected to the state space, (H, m). If None,
                they are taken from ``states``, unwrapped along periodic axes. At the border of a
                box the projected states bias what is learned.
            costs: What each step was measured to cost, (H,), if a constraint limits the cost.
            terminated: Whether the system ended the episode, which may then be shorter.
            truncated: Whether the episode was cut off, and may be shorter.
        """
        data = (states, actions, rewards, outcomes, costs)
        ending = {"terminated": terminated, "truncated": truncated}
        episode = told_episode(*data, problem=self.problem, **ending)
        self._take(episode, self._learned(episode))

    def _learned(self, episode: Episode) -> Any:
        """The learner's state after an episode."""
        if self.update == "episode":
            return self._updated(self.state, episode)
        # A loaded agent gets whole episodes. It must still learn step by step, because fitted
        # kernels depend on when they were fitted.
        state = self.state
        for step in range(self._steps_seen, len(episode)):
            state = self._updated(state, episode.step(step))
        return state

    def _take(self, episode: Episode, state: Any) -> None:
        """Take over an episode, and the learner's state after it."""
        spend_risk(self, self._plan, episode)
        self.state = state
        self.history.append(episode)
        self.episode += 1
        clipped = first_clipped_step(episode, self.problem.states)
        if self._clipped is None and clipped is not None:
            self._clipped = (self.episode, clipped)
        if self.best is not None and self.best.episode == self.episode:
            self.best_state = self.state  # a loaded agent may learn its history again
        self.after_episode(episode)
        self._steps_seen = 0
        self._plan = self._greedy = self._start = None
        self._follows_schedules = has_tables(self.config.known)

    def replay(self, episode: Episode) -> None:
        """Learn from an episode that another agent has recorded.

        Args:
            episode: An episode of the ``history`` of an agent for the same problem.
        """
        checked = recorded_episode(episode, spaces=self.problem)
        self._take(checked, self._learned(checked))

    def restore(self, episodes: list[Episode], state: Any, best_state: Any) -> None:
        """Take over recorded episodes and what was learned from them.

        Args:
            episodes: The ``history`` of an agent for the same problem.
            state: The learner's state after them.
            best_state: The learner's state at the best evaluation.
        """
        for episode in episodes:
            self._take(recorded_episode(episode, spaces=self.problem), self.state)
        self.state, self.best_state = state, best_state

    def observe_step(
        self,
        state: ArrayLike,
        action: ArrayLike,
        reward: ArrayLike,
        outcome: ArrayLike,
        *,
        terminated: bool = False,
    ) -> None:
        """Learn from one step of the current episode (``update="step"``).

        At the end of the episode, pass all of it to ``tell``. Steps that were observed are not
        learned twice.

        Args:
            state: The state before the step, (m,).
            action: The action, (q,).
            reward: The reward, one number.
            outcome: The next state before it was projected to the state space, (m,). Its last
                coordinate is the cost, if a constraint limits a measured cost.
            terminated: Whether the system ended the episode.

        Raises:
            ArgumentError: If the agent learns by the episode.
        """
        if self.update != "step":
            raise ArgumentError("update", "'step' to learn within an episode", repr(self.update))
        before = checked_state(self.problem, "state", state)
        after = checked_state(self.problem, "outcome", outcome, complete=True)
        data = (before, action, reward, after)
        episode = checked_step(*data, spaces=self.problem, terminated=terminated)
        self.state = self._updated(self.state, episode)
        self._steps_seen += 1
        self._plan = self._greedy = None

    @suggests_keywords
    def learn(
        self,
        episodes: int,
        *,
        until: float | None = None,
        callback: object = None,
        progress: bool = True,
    ) -> Any:
        """Play more episodes of the task and learn from each.

        Args:
            episodes: The number of episodes to play at most.
            until: Stop as soon as ``certificate`` says that ``predict`` is within this share of the
                span from optimal. 0.05 is 5 %. None plays all episodes.
            callback: What is called after every episode: a function of the agent and the row of
                the episode, which stops learning if it returns False. Or a callback of
                ``km.callbacks``, such as ``StopAtReturn``, or a list of these.
            progress: Whether to show a progress line in a terminal.

        Returns:
            A ``Result``: a table with one row an episode, and whether a theorem covers the run.

        Raises:
            ArgumentError: If a number is out of its range.
        """
        episodes = integer("episodes", episodes, least=1)
        if until is not None and not 0 < until < 1:
            raise ArgumentError("until", "None, or a share between 0 and 1", until)
        options: dict[str, Any] = {"progress": progress, "callback": callback, "until": until}
        return self.system.learn(self, episodes=episodes, **options)

    # Private methods.

    def _next_plan(self) -> Plan:
        return next_plan(self, key=episode_key(self.seed, self.episode))

    def _updated(self, state: Any, episode: Episode) -> Any:
        if not self.learns:
            return state
        return self.learner.update(state, episode, key=episode_key(self.seed, self.episode))

    def _make_planner(self) -> Planner:
        planner = as_planner(self.config.planner, self.problem)
        if not self.problem.constraints:
            return planner
        norm = getattr(self.confidence, "norm_transition", None)
        return constrained(planner, dataclasses.replace(self.problem, norm_transition=norm))

    def _make_learner(self) -> Learner:
        learner = self.config.learner_for(self.problem)
        learner = self.default_learner if learner == "auto" else learner
        return as_learner(learner, self.problem, self.requirements())
