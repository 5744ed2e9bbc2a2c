"""A controller: an object that runs a policy on a machine, one period after another."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelmdp.controllers.decisions import Decision, Decisions, ThreadedDecisions
from kernelmdp.controllers.fallback_action import FallbackAction
from kernelmdp.controllers.step_log import FALLBACK, HELD, LATE, PLAN, LoggedStep, StepLog
from kernelmdp.controllers.watchdog import Watchdog
from kernelmdp.domains import Box
from kernelmdp.errors import ArgumentError, ObservationError, StaleControllerError
from kernelmdp.mdp.measured_cost import with_zero_costs
from kernelmdp.mdp.policy import Policy
from kernelmdp.mdp.problem import Problem
from kernelmdp.mdp.told_data import observed_states
from kernelmdp.numerics.checks import float_array, positive_number, require_finite
from kernelmdp.types import Observation


class Controller:
    """Runs a policy on a machine. It counts the periods, keeps a time limit, and writes a log.

    All programs are compiled when the controller is made. After the H periods of an episode it goes
    on: MPC keeps its receding horizon, and all other policies hold their last rule.

    Within a time limit, a late decision is replaced. The first of these acts that there is: the
    next action of the last plan (MPC plans sequences), the fallback, the last action. In the first
    period there may be none of them, and the controller waits. ``reset(first_observation)`` plans
    the first action before the machine starts.

    Where states tell the past (``history``, ``delay``), the controller remembers what the policy
    decided. After a late decision this differs from what was done, for as long as the memory lasts.

    A bad observation is an ``ObservationError``, and nothing changes. With a fallback, the fallback
    acts instead, in the last good state.

    Args:
        policy: The policy.
        problem: The problem.
        state_of: From an observation to a state.
        time_limit: Seconds that a decision may take. None decides in the thread of the caller, as
            long as it takes.
        watchdog: Seconds after which a controller that nobody called is stale. None: never.
        on_stale: Called once with the fallback's action, or None, when the controller gets stale.
            It runs in another thread. Write the action to your machine here.
        fallback: A fixed action, or what the agent's setting ``fallback`` takes, for states. The
            default is the fallback of the problem, if it has one.
        bounds: A box outside which a state is a bad observation.
        clock: Returns the time in seconds, for time limit and watchdog.

    Attributes:
        log: The steps since the last reset.

    Raises:
        ArgumentError: If bounds have another dimension, or a number is not positive.

    >>> import kernelmdp as km
    >>> agent = km.Greedy("lqr-1d", seed=0)
    >>> with agent.controller(fallback=[0.0], time_limit=0.5, watchdog=5.0) as controller:
    ...     controller.reset([0.3])
    ...     actions = [controller([0.3]), controller([0.2], reward=-0.1)]
    ...     controller.observe(-0.05, [0.1])
    >>> controller.period, controller.log.episode()["rewards"].tolist()
    (2, [-0.1, -0.05])
    """

    def __init__(
        self,
        policy: Policy,
        problem: Problem,
        *,
        state_of: Callable[[Observation], Observation] = lambda observation: observation,
        time_limit: float | None = None,
        watchdog: float | None = None,
        on_stale: Callable[[np.ndarray | None], object] | None = None,
        fallback: Any = None,
        bounds: Box | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.problem, self._state_of, self._clock = problem, state_of, clock
        self._policy = policy
        self._space = observed_states(problem)
        self._dimension = self._space.dimension - len(problem.measured)
        if bounds is not None and bounds.dimension != self._dimension:
            raise ArgumentError("bounds", f"a box of {self._dimension} coordinates", bounds)
        self._bounds, self._on_stale = bounds, on_stale
        self._limit = None if time_limit is None else positive_number("time_limit", time_limit)
        self._fallback = FallbackAction(fallback, problem)
        kind = Decisions if time_limit is None else ThreadedDecisions
        self._decisions = kind(policy, problem.horizon)
        self._watchdog: Watchdog | None = None
        state = np.asarray(self._space.spread_points(1)[0], float)
        self._decisions.compile(state)
        for period in (0, 1):  # a fallback with a memory has one program for each
            self._fallback.at(state, period)
        self._fallback.restart()
        self._first: Decision | None = None
        self._state: np.ndarray | None = None
        self._action: np.ndarray | None = None
        self._begin(StepLog(problem))
        if watchdog is not None:
            self._watchdog = Watchdog(watchdog, self._became_stale, clock=clock)

    def reset(
        self, first_observation: Observation | None = None, log: StepLog | None = None
    ) -> None:
        """Begin an episode. This also ends being stale.

        Args:
            first_observation: Where the machine is. The first action is then planned here, without
                a time limit. None plans nothing.
            log: The log of an episode under way, which goes on. The default is a new one.
        """
        first = None if first_observation is None else self.checked(first_observation)
        self._decisions.restart()
        self._fallback.restart()
        self._begin(StepLog(self.problem) if log is None else log)
        if first is not None and self.period == 0:
            self._decisions.request(0, first)
            self._decisions.wait(0)
            self._first = self._decisions.latest
        if self._watchdog is not None:
            self._watchdog.feed()

    def __call__(
        self, observation: Observation, *, reward: float | None = None, cost: float | None = None
    ) -> np.ndarray:
        """Return the action of this period.

        Args:
            observation: What the machine shows, in the form of the task's observations.
            reward: The reward of the last action, if it is known.
            cost: The measured cost of the last action, if it is known.

        Returns:
            The action, (q,).

        Raises:
            ObservationError: If the observation is bad and there is no fallback.
            StaleControllerError: If nobody called for too long.
        """
        begin, wall_time = self._clock(), time.time()
        self._require_fresh()
        instead = None
        try:
            state = self.checked(observation)
        except ObservationError:
            instead = self._fallback.at(self._state, self._rule)
            if instead is None:
                raise
            state = np.full(self._space.dimension, np.nan)
        if reward is not None or cost is not None:
            self.observe(reward, cost=cost)
        action, source = self._decided(state, begin) if instead is None else (instead, FALLBACK)
        self._require_fresh()
        self._state = state if instead is None else self._state
        latency = self._clock() - begin
        self.log.append(LoggedStep(wall_time, state, action.copy(), source, latency))
        self._action = action
        if self._watchdog is not None:
            self._watchdog.feed()
        return action

    def observe(
        self,
        reward: float | None,
        observation: Observation | None = None,
        *,
        cost: float | None = None,
        terminated: bool = False,
    ) -> None:
        """Take note of what the last action earned, and of where it led if the episode ends there.

        Args:
            reward: The reward.
            observation: The observation after the last step of an episode.
            cost: The measured cost.
            terminated: Whether the system ended the episode.

        Raises:
            ArgumentError: If there was no action, or a number is not finite.
        """
        if self.log.last is None:
            raise ArgumentError("reward", "none before the first action", reward)
        outcome = None if observation is None else self.checked(observation)
        numbers = {"reward": reward, "cost": cost}
        for name, number in numbers.items():
            if number is not None:
                require_finite(name, np.asarray(float_array(number, name)))
                setattr(self.log.last, name, float(number))
        if outcome is not None:
            self.log.outcome = outcome
        self.log.terminated = terminated

    def checked(self, observation: Observation) -> np.ndarray:
        """Convert an observation to a state, and check it. Nothing is changed.

        Args:
            observation: What the machine shows.

        Returns:
            The state, (m,).

        Raises:
            ObservationError: If the observation is bad.
        """
        try:
            state = np.atleast_1d(np.asarray(float_array(self._state_of(observation), "state")))
            state = np.asarray(state, float)
            if self.problem.memory is None:
                state = with_zero_costs(self.problem, state)
            require_finite("observation", state)
        except ArgumentError as error:
            raise ObservationError(error.argument, error.expected, error.got) from None
        if state.shape != (self._space.dimension,):
            expected = f"{self._dimension} numbers"
            raise ObservationError("observation", expected, f"shape {state.shape}")
        if self._bounds is not None:
            inside = state[None, : self._dimension]
            if np.asarray(self._bounds.distance_outside(inside)).any():
                raise ObservationError("observation", f"a state in {self._bounds}", state)
        return state

    @property
    def period(self) -> int:
        """The number of the next period, from 0."""
        return self.log.count

    @property
    def stale(self) -> bool:
        """Whether nobody called for longer than the watchdog allows."""
        return self._watchdog is not None and self._watchdog.check()

    def close(self) -> None:
        """End the threads. The log stays."""
        if self._watchdog is not None:
            self._watchdog.close()
        self._decisions.close()

    def __repr__(self) -> str:
        policy = getattr(self._policy, "policy", self._policy)
        limit = "no time limit" if self._limit is None else f"time limit {self._limit:g} s"
        stale = (
            "no watchdog" if self._watchdog is None else f"watchdog {self._watchdog.seconds:g} s"
        )
        return (
            f"Controller({self.problem.name!r}, {type(policy).__name__}, {limit}, {stale}, "
            f"{self._fallback}, period {self.period})"
        )

    def __enter__(self) -> "Controller":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _begin(self, log: StepLog) -> None:
        self.log, self._first = log, None
        good = [step.state for step in log.steps if step.observed]
        self._state = good[-1] if good else None
        self._action = None if log.last is None else log.last.action

    @property
    def _rule(self) -> int:
        """The period of an episode whose rule acts."""
        return min(self.period, self.problem.horizon - 1)

    def _decided(self, state: np.ndarray, begin: float) -> tuple[np.ndarray, str]:
        """The action in a good state, and its source."""
        first, number = self._first, self.period
        if first is not None and number == 0:
            if np.array_equal(first.state, state):
                return first.action, PLAN
            self._decisions.restart()
        latest = self._decisions.latest
        ahead = None if latest is None else latest.action_at(number)
        if first is not None and number == 0:
            ahead = first.action
        self._decisions.request(number, state)
        # While the thread decides, find out what acts if it is late.
        action, source = ahead, LATE
        if ahead is None and self._limit is not None:
            action, source = self._fallback.at(state, self._rule), FALLBACK
            if action is None:
                action, source = self._action, HELD
        seconds = None
        if action is not None and self._limit is not None:
            seconds = max(0.0, self._limit - (self._clock() - begin))
        if not self._decisions.wait(number, seconds):
            assert action is not None
            return action, source
        assert self._decisions.latest is not None
        return self._decisions.latest.action, PLAN

    def _require_fresh(self) -> None:
        if self.stale:
            raise StaleControllerError("the controller is stale: nobody called it; call reset()")

    def _became_stale(self) -> None:
        action = self._fallback.at(self._state, self._rule)
        if self._on_stale is not None:
            self._on_stale(action)
