"""Callbacks that are there: stop at a level, checkpoints, evaluation, CSV and TensorBoard.

>>> import kernelmdp as km
>>> agent = km.Oracle("riverswim", seed=0)
>>> stop = StopAtReturn(0.0)
>>> len(agent.learn(episodes=5, callback=stop, progress=False).episodes)
1
"""

import csv
import math
import pathlib
from typing import Any

import numpy as np

from kernelmdp.agents.evaluation import Evaluation
from kernelmdp.experiments.callback import Callback
from kernelmdp.experiments.certified_stop import StopWhenCertified
from kernelmdp.experiments.tensorboard import require_tensorboard
from kernelmdp.numerics.checks import integer

__all__ = [
    "CSVLog",
    "Callback",
    "Checkpoint",
    "Evaluate",
    "StopAtReturn",
    "StopWhenCertified",
    "TensorBoardLog",
]


class StopAtReturn(Callback):
    """Stops when the mean return of the last episodes reaches a level.

    The returns are those of the episodes that were learned from, with their exploration.

    Args:
        level: The level.
        episodes: The number of last episodes of which the mean is taken.

    >>> stop = StopAtReturn(2.0, episodes=2)
    >>> [stop.on_episode_end(None, {"return": x}) for x in (3.0, 0.5, 4.0)]
    [True, True, False]
    """

    def __init__(self, level: float, episodes: int = 1) -> None:
        self.level = float(level)
        self.episodes = integer("episodes", episodes, least=1)
        self._returns: list[float] = []

    def on_episode_end(self, agent: Any, row: dict[str, Any]) -> bool | None:
        self._returns = [*self._returns, float(row["return"])][-self.episodes :]
        return len(self._returns) < self.episodes or float(np.mean(self._returns)) < self.level


class Checkpoint(Callback):
    """Saves the agent every few episodes, and at the end.

    Args:
        folder: The folder of the files ``agent-0010.kmdp``, where 10 is the number of episodes.
        every: The number of episodes between two files.

    >>> Checkpoint("runs/heater", every=5).path(10).name
    'agent-0010.kmdp'
    """

    def __init__(self, folder: Any, every: int = 10) -> None:
        self.folder = pathlib.Path(folder)
        self.every = integer("every", every, least=1)

    def path(self, episode: int) -> pathlib.Path:
        """Return the path of a file.

        Args:
            episode: The number of episodes that the agent has learned from.

        Returns:
            The path.
        """
        return self.folder / f"agent-{episode:04d}.kmdp"

    def on_start(self, agent: Any) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def on_episode_end(self, agent: Any, row: dict[str, Any]) -> None:
        if agent.episode % self.every == 0:
            agent.save(self.path(agent.episode))

    def on_stop(self, agent: Any) -> None:
        if agent.episode % self.every:
            agent.save(self.path(agent.episode))


class Evaluate(Callback):
    """Evaluates the controller every few episodes, and keeps the best one.

    At the end, ``predict`` follows the best controller that was evaluated.

    Args:
        every: The number of episodes between two evaluations.
        episodes: The number of episodes of an evaluation. They are not learned from.
        env: Another environment to play in. None plays in the agent's own.
        best_path: A file to which the agent is saved whenever it is the best so far. None writes
            none.

    Attributes:
        evaluations: All evaluations.

    >>> import kernelmdp as km
    >>> evaluate = Evaluate(every=2, episodes=3)
    >>> result = km.Greedy("riverswim", seed=0).learn(4, callback=evaluate, progress=False)
    >>> [evaluation.episode for evaluation in evaluate.evaluations]
    [2, 4]
    """

    def __init__(
        self, every: int = 1, episodes: int = 5, env: object = None, best_path: Any = None
    ) -> None:
        self.every = integer("every", every, least=1)
        self.episodes = integer("episodes", episodes, least=1)
        self.env, self.best_path = env, best_path
        self.evaluations: list[Evaluation] = []

    def on_episode_end(self, agent: Any, row: dict[str, Any]) -> None:
        if agent.episode % self.every == 0:
            self.evaluations.append(agent.evaluate(self.episodes, self.env))

    def on_new_best(self, agent: Any, evaluation: Evaluation) -> None:
        if self.best_path is not None:
            agent.save(self.best_path)

    def on_stop(self, agent: Any) -> None:
        if self.evaluations and agent.best is not None:
            agent.follow_best()


class CSVLog(Callback):
    """Writes the numbers of every episode to a file of comma-separated values.

    Args:
        path: The file. An older one is replaced.

    >>> import tempfile, pathlib, kernelmdp as km
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "episodes.csv")
    ...     _ = km.Random("riverswim", seed=0).learn(2, callback=CSVLog(path), progress=False)
    ...     print(path.read_text()[:15])
    episode,return,
    """

    def __init__(self, path: Any) -> None:
        self.path = pathlib.Path(path)
        self._rows: list[dict[str, Any]] = []

    def on_start(self, agent: Any) -> None:
        self._rows = []
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def on_episode_end(self, agent: Any, row: dict[str, Any]) -> None:
        columns = {name: None for each in self._rows for name in each}
        self._rows.append(row)
        # The first episodes may lack numbers that later ones have. All is then written anew.
        is_wider = not row.keys() <= columns.keys()
        columns |= dict.fromkeys(row)
        with self.path.open("w" if is_wider else "a", newline="") as file:
            writer = csv.DictWriter(file, list(columns), restval="nan")
            if is_wider:
                writer.writeheader()
            writer.writerows(self._rows if is_wider else [row])


class TensorBoardLog(Callback):
    """Writes every number of every episode, and evaluations, to event files of TensorBoard.

    Args:
        folder: The folder of the event files.

    >>> TensorBoardLog("runs/heater/events").folder.name
    'events'
    """

    def __init__(self, folder: Any) -> None:
        self.folder = pathlib.Path(folder)
        self._writer: Any = None

    def on_start(self, agent: Any) -> None:
        self._writer = require_tensorboard().SummaryWriter(str(self.folder))

    def on_episode_end(self, agent: Any, row: dict[str, Any]) -> None:
        for name, value in row.items():
            if name != "episode" and math.isfinite(value):
                self._writer.add_scalar(name, value, row["episode"])

    def on_new_best(self, agent: Any, evaluation: Evaluation) -> None:
        self._writer.add_scalar("best_evaluation", evaluation.mean, evaluation.episode)

    def on_stop(self, agent: Any) -> None:
        if self._writer is not None:
            self._writer.close()
