"""The service: ask, act and tell, with everything on disk before it is answered.

The folder holds these files:

- ``agent.kmdp``: the agent after the last episode that it learned from.
- ``episodes/000001.jsonl`` and so on: the journal, one file an episode.
- ``predicted/``: the same for episodes that nothing is learned from.
"""

import contextlib
import pathlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelmdp.agents import Agent
from kernelmdp.controllers import Controller
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.run_folder import lock, storage_errors
from kernelmdp.mdp.told_data import told_episode
from kernelmdp.serving.agent_source import reopened
from kernelmdp.serving.answers import MILLISECONDS, episode_row, restored_log, step_answer
from kernelmdp.serving.journal import Journal
from kernelmdp.serving.request_error import BAD_REQUEST, CONFLICT, RequestError

#: The saved agent in the folder.
AGENT_FILE = "agent.kmdp"


class Service:
    """Serves one agent. One request is answered at a time, and others are refused meanwhile.

    Args:
        agent: The agent. If the folder has a saved one, that one goes on.
        folder: The folder. It is made if there is none, and no other process may use it.
        time_limit: Seconds that a decision may take; see ``Controller``. None is no limit.
        learns: Whether to explore and learn. Otherwise the controller of ``predict`` acts, also
            after the end of an episode.
        waits_for_disk: Whether an action waits until its observation is on disk. Otherwise a loss
            of power may lose the last steps.

    Attributes:
        agent: The agent.
        activity: What is going on: "ready", "planning", "acting" or "learning".

    Raises:
        ArgumentError: If the agent learns by the step.

    >>> import tempfile, kernelmdp as km
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Service(km.Greedy("riverswim", seed=0), folder) as service:
    ...         asked, answer = service.ask([0]), service.act([0])
    >>> answer["period"], answer["source"]
    (0, 'plan')
    """

    def __init__(
        self,
        agent: Agent,
        folder: Any,
        *,
        time_limit: float | None = None,
        learns: bool = True,
        waits_for_disk: bool = True,
    ) -> None:
        if agent.update != "episode":
            raise ArgumentError("update", "'episode' for an agent that is served", agent.update)
        self.folder, self.learns = pathlib.Path(folder), learns
        self._time_limit, self._waits_for_disk = time_limit, waits_for_disk
        self._exclusive, self.activity = threading.Lock(), "ready"
        self._controller: Controller | None = None
        self._resources = contextlib.ExitStack()
        self._resources.enter_context(lock(self.folder))
        self.agent = reopened(agent, self.folder / AGENT_FILE)
        self._journal = Journal(self.folder / ("episodes" if learns else "predicted"))
        self._resources.callback(self._journal.close)
        numbers = self._journal.numbers()
        self._number = self.agent.episode if learns else max(numbers, default=0)
        if learns and self.agent.episode and not (self.folder / AGENT_FILE).exists():
            self._save()  # what was loaded from elsewhere is complete in this folder
        self._recover(numbers)

    def ask(self, observation: list[float] | None = None) -> dict[str, Any]:
        """Begin an episode. Until the first action, asking again changes nothing.

        Args:
            observation: Where the plant is. Planners that depend on the start use it.

        Returns:
            The number of the episode, its horizon, and the milliseconds that planning took.

        Raises:
            RequestError: If an episode is under way.
        """
        with self._only("planning"):
            begin = time.perf_counter()
            if self._controller is not None and self._controller.period:
                text = f"episode {self._number} is under way, in period {self._controller.period}"
                raise RequestError(CONFLICT, f"{text}: act, or tell how it ended")
            if self._controller is None:
                controller = self._planned(observation)
                self._number += 1
                self._journal.open(self._number)
                self._record("ask", observation=observation)
                self._journal.sync()
                self._controller = controller
            return {
                "episode": self._number,
                "period": 0,
                "horizon": self.agent.problem.horizon,
                "milliseconds": MILLISECONDS * (time.perf_counter() - begin),
            }

    def act(
        self,
        observation: list[float],
        reward: float | None = None,
        cost: float | None = None,
        period: int | None = None,
    ) -> dict[str, Any]:
        """Return the action of one period. The step is in the journal before this returns.

        Args:
            observation: What the plant shows, (m,).
            reward: What the last action earned. Only the first period has none.
            cost: The measured cost of the last action, where a constraint limits it.
            period: The period that the client is in. A repeated request then gets the same action
                again, and a lost one is noticed.

        Returns:
            The action, its period, where it came from, and the milliseconds that it took.

        Raises:
            RequestError: If no episode is under way, or it is in another period.
        """
        with self._only("acting"):
            controller = self._under_way()
            if period is not None and period == controller.period - 1:
                return self._repeated(controller, observation)
            self._require_period(controller, period)
            self._require_rewards(controller, reward, cost)
            controller.checked(observation)
            now = {"period": controller.period, "observation": observation}
            self._record("observed", reward=reward, cost=cost, **now)
            self._journal.start_sync()
            controller(observation, reward=reward, cost=cost)
            self._record("acted", **step_answer(controller))
            if self._waits_for_disk:
                self._journal.wait()
            return {"episode": self._number} | step_answer(controller)

    def tell(
        self,
        observation: list[float] | None = None,
        reward: float | None = None,
        cost: float | None = None,
        terminated: bool = False,
        episode: int | None = None,
    ) -> dict[str, Any]:
        """End the episode under way, and learn from it.

        Args:
            observation: What the plant shows after the last action. Without it, the last step is
                not learned from.
            reward: What the last action earned.
            cost: The measured cost of the last action, where a constraint limits it.
            terminated: Whether the plant ended the episode by itself.
            episode: The number of the episode. A repeated request then gets the same answer again.

        Returns:
            A row of ``episodes``.

        Raises:
            RequestError: If no such episode is under way, or numbers are missing.
        """
        with self._only("learning"):
            if self._controller is None and episode is not None and episode == self._number > 0:
                return self._row(self._number)
            controller = self._under_way()
            if episode not in (None, self._number):
                expected = f"episode {self._number} is under way, not episode {episode}"
                raise RequestError(CONFLICT, expected)
            ending: dict[str, Any] = {"observation": observation, "reward": reward, "cost": cost}
            if terminated and observation is None:
                raise RequestError(BAD_REQUEST, "observation: expected that of the terminal state")
            if observation is not None:
                self._require_rewards(controller, reward, cost)
                controller.checked(observation)
            self._record("ended", terminated=terminated, **ending)
            self._journal.sync()
            return self._end(controller, terminated=terminated, **ending)

    def tell_episode(self, **episode: Any) -> dict[str, Any]:
        """Learn from an episode that was recorded elsewhere.

        Args:
            **episode: The arguments of ``Agent.tell``.

        Returns:
            A row of ``episodes``.

        Raises:
            RequestError: If an episode is under way, or the server does not learn.
        """
        with self._only("learning"):
            if self._controller is not None and self._controller.period:
                text = f"episode {self._number} is under way: tell how it ended first"
                raise RequestError(CONFLICT, text)
            if not self.learns:
                raise RequestError(CONFLICT, "this server does not learn: it was given --predict")
            # Or an error, before it is recorded.
            told_episode(**episode, problem=self.agent.problem)
            if self._controller is None:
                self._number += 1
                self._journal.open(self._number)
            else:
                self._controller.close()
                self._controller = None
            self._record("told", **episode)
            self._journal.sync()
            return self._learn(episode)

    def episodes(self) -> list[dict[str, Any]]:
        """Return the table of episodes that the agent has learned from.

        Returns:
            One row an episode, with its number, steps, return, and whether it ended by itself.
        """
        return [
            episode_row(n, episode) for n, episode in enumerate(list(self.agent.history), start=1)
        ]

    def health(self) -> dict[str, Any]:
        """Tell what is going on. This is answered at any time.

        Returns:
            The activity, the episode and period under way, and the number of episodes learned from.
        """
        controller = self._controller
        return {
            "status": self.activity,
            "episode": None if controller is None else self._number,
            "period": None if controller is None else controller.period,
            "episodes": len(self.agent.history),
        }

    def close(self) -> None:
        """Close the files, and let other processes use the folder."""
        if self._controller is not None:
            self._controller.close()
        self._resources.close()

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _only(self, activity: str) -> Iterator[None]:
        """Refuse other requests meanwhile. A machine shall not wait without knowing why."""
        if not self._exclusive.acquire(blocking=False):
            text = f"the agent is {self.activity}: repeat this when GET /health says ready"
            raise RequestError(CONFLICT, text)
        try:
            self.activity = activity
            yield
        finally:
            self.activity = "ready"
            self._exclusive.release()

    def _planned(self, observation: list[float] | None) -> Controller:
        agent = self.agent
        state: Any = None if observation is None else agent.system.state_of(observation)
        options: dict[str, Any] = {"time_limit": self._time_limit}
        if not self.learns:
            controller = agent.controller(**options)
        else:
            policy, state_of = agent.ask(state), agent.system.state_of
            controller = Controller(policy, agent.problem, state_of=state_of, **options)
        controller.reset(observation)
        return controller

    def _under_way(self) -> Controller:
        if self._controller is None:
            raise RequestError(CONFLICT, "no episode is under way: POST /ask first")
        return self._controller

    def _repeated(self, controller: Controller, observation: list[float]) -> dict[str, Any]:
        last = controller.log.last
        if last is None or not np.array_equal(controller.checked(observation), last.state):
            text = f"period {controller.period - 1} was observed differently before"
            raise RequestError(CONFLICT, text)
        return {"episode": self._number} | step_answer(controller)

    def _require_period(self, controller: Controller, period: int | None) -> None:
        horizon, now = self.agent.problem.horizon, controller.period
        if self.learns and now >= horizon:
            text = f"the episode has its {horizon} periods: POST /tell how it ended"
            raise RequestError(CONFLICT, text)
        if period not in (None, now):
            raise RequestError(CONFLICT, f"the episode is in period {now}, not in period {period}")

    def _require_rewards(
        self, controller: Controller, reward: float | None, cost: float | None
    ) -> None:
        """Every action but the one under way has its reward, and its cost where one is measured."""
        needed = {"reward": reward}
        if self.agent.problem.measured:
            needed["cost"] = cost
        for name, number in needed.items():
            if not controller.period and number is not None:
                raise RequestError(BAD_REQUEST, f"{name}: there was no action yet that has one")
            if self.learns and controller.period and number is None:
                raise RequestError(BAD_REQUEST, f"{name}: expected that of the last action")

    def _end(
        self,
        controller: Controller,
        observation: list[float] | None,
        reward: float | None,
        cost: float | None,
        terminated: bool,
    ) -> dict[str, Any]:
        if controller.period and reward is not None:
            controller.observe(reward, observation, cost=cost, terminated=terminated)
        controller.close()
        self._controller = None
        complete = controller.log.episodes() if self.learns else []
        if not complete:  # nothing to learn from
            row = {"episode": self._number, "steps": controller.period, "learned": False}
            self._number -= 1 if self.learns else 0
            return row
        return self._learn(complete[0])

    def _learn(self, episode: dict[str, Any]) -> dict[str, Any]:
        self.agent.tell(**episode)
        self._save()
        return self._row(self.agent.episode)

    def _row(self, number: int) -> dict[str, Any]:
        if not self.learns:
            return {"episode": number, "learned": False}
        return episode_row(number, self.agent.history[number - 1]) | {"learned": True}

    def _save(self) -> None:
        with storage_errors(self.folder):
            self.agent.save(self.folder / AGENT_FILE)

    def _record(self, event: str, **content: Any) -> None:
        given = {name: value for name, value in content.items() if value is not None}
        self._journal.append({"event": event, "time": time.time()} | given)

    def _recover(self, numbers: list[int]) -> None:
        """Learn from the episodes that ended after the agent was saved, and resume the last one."""
        for number in numbers:
            if number < self._number or (number == self._number and self.learns):
                continue
            events = self._journal.events(number)
            asks = [i for i, event in enumerate(events) if event["event"] in ("ask", "told")]
            if not asks:
                continue
            first, *rest = events[asks[-1] :]
            self._number = number
            self._journal.open(number)
            if first["event"] == "told":
                self._learn({name: first[name] for name in first if name not in ("event", "time")})
                continue
            self._resume(first, rest)

    def _resume(self, asked: dict[str, Any], events: list[dict[str, Any]]) -> None:
        controller = self._planned(asked.get("observation"))
        controller.reset(log=restored_log(controller, events))
        if not events or events[-1]["event"] != "ended":
            self._controller = controller
            return
        ended = {name: events[-1].get(name) for name in ("observation", "reward", "cost")}
        self._end(controller, terminated=events[-1]["terminated"], **ended)
