"""What agents do with what they have learned: predict, control a machine, and be evaluated."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelmdp.agents.config import AgentConfig
from kernelmdp.agents.evaluation import Evaluation, warn_of_loss
from kernelmdp.agents.optimality import Certificate, estimated_certificate
from kernelmdp.agents.promise import Promise, promise_of
from kernelmdp.agents.system import System, checked_state
from kernelmdp.controllers import Controller
from kernelmdp.domains import Box
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp import Episode, Policy, Problem
from kernelmdp.mdp.told_data import user_policy
from kernelmdp.numerics.checks import integer
from kernelmdp.numerics.keywords import suggests_keywords
from kernelmdp.numerics.random_keys import episode_key
from kernelmdp.planners import Plan
from kernelmdp.types import ArrayLike, Key, Observation


class AgentControl:
    """The methods of agents that use what was learned.

    Attributes:
        config: The settings.
        system: The system that the agent controls.
        problem: What is known of it before learning.
        seed: The seed of everything that is random.
        episode: The number of episodes that were learned from.
        history: These episodes.
        state: The learner's state: what was learned so far.
        best: The best evaluation so far, or None before the first.
        best_state: The learner's state at the best evaluation.
        follows_best: Whether ``predict`` follows the best controller and not the newest one.
        plan_greedy: The method that plans without exploration.

    >>> import kernelmdp as km
    >>> isinstance(km.PSRL("riverswim", seed=0), AgentControl)
    True
    """

    config: AgentConfig
    system: System
    problem: Problem
    seed: int
    episode: Any
    history: list[Episode]
    state: Any
    best: Evaluation | None
    best_state: Any
    follows_best: bool
    plan_greedy: Callable[..., Plan]
    _greedy: Plan | None
    _evaluated_in: object

    @suggests_keywords
    def predict(self, observation: Observation, period: int = 0) -> np.ndarray:
        """Return the best action that the agent knows, without exploration.

        After the H periods of an episode, MPC goes on with its receding horizon. All other
        policies hold their last rule, which looks one step ahead only.

        Args:
            observation: What the system shows, in the form of its observations. Or a batch: an
                array with a row for each observation, or a list of observations with parts.
            period: The period, from 0.

        Returns:
            The action, (q,). For a batch of n observations the actions, (n, q).

        Raises:
            ArgumentError: If the period is negative.

        >>> import kernelmdp as km
        >>> agent = km.Oracle("riverswim", seed=0)
        >>> agent.predict([0]), agent.predict([[0], [5]]).shape
        (array([1.]), (2, 1))
        """
        period = integer("period", period, least=0)
        policy = user_policy(self.problem, self.controller_plan().policy)
        if period >= self.problem.horizon:
            period = policy.later_period(self.problem.horizon)
        rows = self.system.rows_of(observation)
        if rows is None:
            return self._action(policy, observation, period)
        actions = [self._action(policy, row, period) for row in rows]
        return np.reshape(actions, (len(rows), self.problem.actions.dimension))

    def _action(self, policy: Policy, observation: Observation, period: int) -> np.ndarray:
        """The action of a policy for one observation."""
        seen = np.atleast_1d(np.asarray(self.system.state_of(observation), float))
        checked_state(self.problem, "observation", seen)
        return policy(seen, period)

    @suggests_keywords
    def controller(
        self,
        *,
        time_limit: float | None = None,
        watchdog: float | None = None,
        on_stale: Callable[[np.ndarray | None], object] | None = None,
        fallback: Any = None,
        bounds: Box | None = None,
    ) -> Controller:
        """Make an object that runs what ``predict`` does on a machine, period after period.

        Args:
            time_limit: Seconds that a decision may take. None takes as long as it takes.
            watchdog: Seconds after which a controller that nobody called is stale. None: never.
            on_stale: Called once with the fallback's action, or None, when it gets stale.
            fallback: A fixed action, or a controller of states. The fallback of the problem is the
                default.
            bounds: A box outside which a state is a bad observation.

        Returns:
            The controller. It keeps its plan, whatever the agent learns meanwhile.
        """
        return Controller(
            user_policy(self.problem, self.controller_plan().policy),
            self.problem,
            state_of=self.system.state_of,
            time_limit=time_limit,
            watchdog=watchdog,
            on_stale=on_stale,
            fallback=fallback,
            bounds=bounds,
        )

    def controller_plan(self) -> Plan:
        """Return the plan that ``predict`` follows. It is made once after every episode.

        Returns:
            The plan.
        """
        if self._greedy is None:
            key: Key = episode_key(self.seed, self.episode)
            self._greedy = self.plan_greedy(key=key)
        return self._greedy

    @suggests_keywords
    def evaluate(self, episodes: int = 5, env: object = None, *, seed: int = 0) -> Evaluation:
        """Play the newest controller without learning from it, and keep the best one.

        If the newest controller is much worse than the best one evaluated so far, a warning says
        so, and ``predict`` follows the best one until a later evaluation finds no such loss.

        Args:
            episodes: The number of episodes.
            env: Another environment to play in, such as a more exact simulator. It has the same
                observations and actions. None plays in the agent's own. Evaluations in different
                environments are not compared.
            seed: The seed of the first one; the others have the next seeds.

        Returns:
            All returns of the newest controller, with their mean and its 95 % interval.
        """
        episodes = integer("episodes", episodes, least=1)
        if env is not self._evaluated_in:
            self.best, self._evaluated_in = None, env
        system = self.system if env is None else self._system_like(env)
        if self.follows_best:
            self.follows_best, self._greedy = False, None
        policy = user_policy(self.problem, self.controller_plan().policy)
        returns = system.evaluate(policy, seeds=range(seed, seed + episodes))
        newest = Evaluation(self.episode, returns)
        totals = np.array([episode.total for episode in self.history])
        if self.best is not None and warn_of_loss(newest, self.best, seen=totals):
            self.follows_best, self._greedy = True, None
        elif self.best is None or newest.mean >= self.best.mean:
            self.best, self.best_state = newest, self.state
        return newest

    def follow_best(self) -> None:
        """Let ``predict`` follow the best evaluated controller, until the next evaluation.

        Raises:
            ArgumentError: If there was no evaluation.
        """
        if self.best is None:
            raise ArgumentError("evaluate", "at least one evaluation before", "none")
        self.follows_best, self._greedy = True, None

    def promise(self, start: ArrayLike | None = None) -> Promise:
        """Estimate what ``predict`` is worth at least: its lowest value in several drawn MDPs.

        Args:
            start: The first state, (m,). The default is the start of the last episode.

        Returns:
            The estimate. No theorem is behind it. NaN if the plan or the learner allows none.
        """
        return promise_of(self, start)

    def certificate(self, start: ArrayLike | None = None) -> Certificate:
        """Estimate what ``predict`` is worth at least, and what the optimal policy is at most.

        Args:
            start: The first state, (m,). The default is the start of the last episode.

        Returns:
            The estimate. No theorem is behind it.
        """
        return estimated_certificate(self, start)

    def _system_like(self, env: object) -> System:
        """The system of another environment, with the states and actions of the agent's own."""
        options = {"default_horizon": self.problem.horizon}
        repeat = getattr(self.system.task, "action_repeat", None)
        system = self.config.system_for(env, **options, action_repeat=repeat)
        theirs, ours = system.problem, self.problem
        for name, other, given in (
            ("states", theirs.states, ours.states),
            ("actions", theirs.actions, ours.actions),
        ):
            if other.dimension != given.dimension:
                expected = f"{name} of {given.dimension} coordinates, as the agent's task has"
                raise ArgumentError("env", expected, f"{other.dimension}")
        if theirs.states.periodic != ours.states.periodic:
            expected = "the angles of the agent's task; pass km.from_gymnasium(env, angles=...)"
            raise ArgumentError("env", expected, f"angles {theirs.states.periodic}")
        if theirs.horizon != ours.horizon:
            expected = f"{ours.horizon} periods, as the agent's task has"
            raise ArgumentError("env", expected, theirs.horizon)
        return system
