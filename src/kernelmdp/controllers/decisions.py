"""Decisions of a policy, in the thread of the caller or in a thread of their own."""

import dataclasses
import threading
from typing import Any

import numpy as np
from jaxtyping import Float

from kernelmdp.mdp.policy import Policy, PolicyPlayer, player_of


@dataclasses.dataclass(frozen=True)
class Decision:
    """An action and those that are planned after it.

    Attributes:
        number: The number of the period, from 0, also after the end of an episode.
        state: The state, (m,).
        action: The action, (q,).
        planned: The planned actions of the periods after it, (T, q), perhaps none.
    """

    number: int
    state: Float[np.ndarray, " m"]
    action: Float[np.ndarray, " q"]
    planned: Float[np.ndarray, "T q"]

    def action_at(self, number: int) -> np.ndarray | None:
        """Return the action that was planned for a later period.

        Args:
            number: The number of the period.

        Returns:
            The action, (q,). None if the plan does not reach so far.
        """
        ahead = number - self.number - 1
        return self.planned[ahead] if 0 <= ahead < len(self.planned) else None


class Decisions:
    """Decides in the thread of the caller.

    Args:
        policy: The policy.
        horizon: The number of periods H of an episode.

    Attributes:
        latest: The last decision, or None before the first.
    """

    def __init__(self, policy: Policy, horizon: int) -> None:
        self.policy, self.horizon = policy, horizon
        self.latest: Decision | None = None
        self._player: Any = player_of(policy)

    def compile(self, state: np.ndarray) -> None:
        """Compile all that decisions run, by some decisions that are forgotten.

        Programs may differ at the first period, at later ones, and after the end of an episode.

        Args:
            state: Any state, (m,).
        """
        self.restart()
        for number in (0, 1, self.horizon):
            self.request(number, state)
            self.wait(number)
        self.restart()

    def restart(self) -> None:
        """Begin an episode: forget the plans of the last one."""
        self.latest = None
        if isinstance(self._player, PolicyPlayer):
            self._player.restart()

    def request(self, number: int, state: np.ndarray) -> None:
        """Ask for the decision of one period, which is then the latest one.

        Args:
            number: The number of the period.
            state: The state, (m,).
        """
        self._decide(number, state)

    def wait(self, number: int, seconds: float | None = None) -> bool:
        """Wait for a decision that was requested.

        Args:
            number: The number of the period.
            seconds: How long to wait. None waits as long as it takes.

        Returns:
            Whether it was decided in time.
        """
        return True

    def _decide(self, number: int, state: np.ndarray) -> None:
        horizon = self.horizon
        period = number if number < horizon else self.policy.later_period(horizon)
        action = np.asarray(self._player(state, period), float)
        planned = None
        if isinstance(self._player, PolicyPlayer):
            planned = self._player.planned_actions()
        if planned is None:
            planned = np.zeros((0, len(action)))
        # Beyond the end of the episode, nothing was searched.
        self.latest = Decision(number, state, action, planned[: max(0, horizon - period - 1)])

    def close(self) -> None:
        """Decide no more."""


class ThreadedDecisions(Decisions):
    """Decides in a thread of its own, so that the caller may stop waiting.

    A decision that is late goes on, as its plan serves later periods. Requests that wait meanwhile
    are replaced by newer ones.

    Args:
        policy: The policy.
        horizon: The number of periods H of an episode.
    """

    def __init__(self, policy: Policy, horizon: int) -> None:
        super().__init__(policy, horizon)
        self._changed = threading.Condition()
        self._request: tuple[int, np.ndarray] | None = None
        self._busy = self._closed = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def restart(self) -> None:
        with self._changed:
            self._request = None
            self._changed.wait_for(lambda: not self._busy)
            self._raise_error()
            super().restart()

    def request(self, number: int, state: np.ndarray) -> None:
        with self._changed:
            self._request = number, state
            self._changed.notify_all()

    def wait(self, number: int, seconds: float | None = None) -> bool:
        def decided() -> bool:
            done = self.latest is not None and self.latest.number >= number
            return done or self._error is not None

        with self._changed:
            in_time = self._changed.wait_for(decided, seconds)
            self._raise_error()
            return in_time

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def _raise_error(self) -> None:
        """Raise what the thread met, in the thread of the caller."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._request is not None or self._closed)
                if self._closed:
                    return
                assert self._request is not None
                (number, state), self._request, self._busy = self._request, None, True
            try:
                self._decide(number, state)
            except BaseException as error:
                self._error = error
