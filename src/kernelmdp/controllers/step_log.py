"""The log of a controller: what was observed, what was done, and from where the action came."""

import collections
import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.episode import unwrapped
from kernelmdp.mdp.problem import Problem
from kernelmdp.mdp.told_data import observed_states

#: The action was decided in time, in the state that was observed.
PLAN = "plan"
#: The decision was late, and the last plan's next action was taken.
LATE = "late"
#: The fallback acted, as a decision was late or an observation was bad.
FALLBACK = "fallback"
#: The last action was held, as a decision was late and there was nothing else.
HELD = "held"
#: Steps that a log keeps: half an hour at 50 Hz, in less than 100 MB. A machine may run for weeks.
LONGEST_LOG = 100_000
#: The sources of actions.
SOURCES = (PLAN, LATE, FALLBACK, HELD)


@dataclasses.dataclass
class LoggedStep:
    """One period of a machine.

    Attributes:
        time: When the observation came, in seconds since 1970.
        state: The observed state, (m,). NaN if the observation was bad.
        action: The action, (q,).
        source: "plan", "late", "fallback" or "held".
        latency: Seconds from the observation to the action.
        reward: The reward of the action, once it is told.
        cost: The measured cost of the action, once it is told.

    >>> LoggedStep(0.0, np.zeros(1), np.ones(1), "plan", 0.001).reward is None
    True
    """

    time: float
    state: Float[np.ndarray, " m"]
    action: Float[np.ndarray, " q"]
    source: str
    latency: float
    reward: float | None = None
    cost: float | None = None

    @property
    def observed(self) -> bool:
        """Whether the observation was good."""
        return bool(np.isfinite(self.state).all())


class StepLog:
    """The steps since the last reset of a controller, as ``agent.tell`` takes them.

    Args:
        problem: The problem of the agent.
        size: The number of steps that are kept. Older ones are dropped.

    Attributes:
        count: The number of all steps, with those that were dropped.
        outcome: The state after the last step, (m,), once it is told.
        terminated: Whether the system ended the episode.

    >>> from kernelmdp.domains import Box
    >>> box = Box([0], [1])
    >>> log = StepLog(Problem.from_spaces(states=box, actions=box, horizon=9))
    >>> state, action, outcome = np.array([0.5]), np.array([1.0]), np.array([0.6])
    >>> log.append(LoggedStep(0.0, state, action, "plan", 0.001, reward=2.0))
    >>> log.outcome = outcome
    >>> log.episode()["rewards"], log.episode()["truncated"]
    (array([2.]), True)
    """

    def __init__(self, problem: Problem, size: int = LONGEST_LOG) -> None:
        self.problem, self.count = problem, 0
        self.outcome: np.ndarray | None = None
        self.terminated = False
        self._steps: collections.deque[LoggedStep] = collections.deque(maxlen=size)

    @property
    def steps(self) -> list[LoggedStep]:
        """The steps that are kept."""
        return list(self._steps)

    @property
    def last(self) -> LoggedStep | None:
        """The last step, or None before the first."""
        return self._steps[-1] if self._steps else None

    def append(self, step: LoggedStep) -> None:
        """Add a step.

        Args:
            step: The step.
        """
        self._steps.append(step)
        self.count += 1

    def episode(self) -> dict[str, Any]:
        """Return the log as one episode: ``agent.tell(**controller.log.episode())``.

        Returns:
            The arguments of ``tell``.

        Raises:
            ArgumentError: If the log has no complete step, more than H steps, or a gap.
        """
        episodes = self.episodes()
        if len(episodes) != 1:
            expected = "one episode of at most H steps without a gap; see log.episodes()"
            raise ArgumentError("log", expected, f"{len(episodes)} of them")
        return episodes[0]

    def episodes(self) -> list[dict[str, Any]]:
        """Return the log as episodes of at most H steps.

        A step is complete once its reward and the state after it are known. The log is cut where an
        observation was bad.

        Returns:
            The arguments of ``tell``, for each of them.

        Raises:
            ArgumentError: If a step has no reward, but for the last one.
        """
        steps = self.steps
        after = [*(step.state for step in steps[1:]), self.outcome]
        pieces: list[list[int]] = [[]]
        for number, (step, state) in enumerate(zip(steps, after, strict=True)):
            if step.observed and state is not None and np.isfinite(state).all():
                if step.reward is None:
                    raise ArgumentError("rewards", "one for each step", f"none for step {number}")
                if len(pieces[-1]) == self.problem.horizon:
                    pieces.append([])
                pieces[-1].append(number)
            elif pieces[-1]:
                pieces.append([])
        return [self._told(steps, after, piece) for piece in pieces if piece]

    def _told(
        self, logged: list[LoggedStep], after: list[np.ndarray | None], numbers: list[int]
    ) -> dict[str, Any]:
        """The arguments of ``tell`` for some steps."""
        space, horizon = observed_states(self.problem), self.problem.horizon
        steps, last = [logged[number] for number in numbers], numbers[-1]
        measured = np.stack([*(step.state for step in steps), np.asarray(after[last])])
        count = space.dimension - len(self.problem.measured)
        terminated = self.terminated and last == len(logged) - 1
        episode: dict[str, Any] = {
            "states": np.asarray(space.nearest(jnp.asarray(measured)))[:, :count],
            "actions": np.stack([step.action for step in steps]),
            "rewards": np.array([step.reward for step in steps], float),
            "outcomes": unwrapped(space, measured)[:, :count],
            "terminated": terminated,
            "truncated": len(steps) < horizon and not terminated,
        }
        if self.problem.measured:
            episode["costs"] = np.array([step.cost for step in steps], float)
        return episode
