"""The table of a run: one row an episode."""

import csv
import dataclasses
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

#: Columns every run has, in the order in which they are written.
COLUMNS = (
    "episode",
    "return",
    "value",
    "optimal_value",
    "optimal_value_error",
    "regret",
    "cumulative_regret",
    "beta_reward",
    "beta_transition",
    "gain_reward",
    "gain_transition",
    "covered_reward",
    "covered_transition",
    "width_reward",
    "width_transition",
    "planned_value",
    "planning_error",
    "r_hat",
    "effective_sample_size",
    "acceptance",
    "divergences",
    "mixed",
    "plan_seconds",
    "update_seconds",
)


class Table:
    """Rows of a run by column: ``table["regret"]`` is an array.

    >>> Table([{"episode": 1, "return": 2.5}])["return"]
    array([2.5])
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.rows = [{name: row.get(name, np.nan) for name in COLUMNS} for row in rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, column: str) -> np.ndarray:
        if column not in COLUMNS:
            raise KeyError(f"no column {column!r}; there are {', '.join(COLUMNS)}")
        return np.array([float(row[column]) for row in self.rows])

    def __repr__(self) -> str:
        return f"Table({len(self)} episodes: {', '.join(COLUMNS)})"


@dataclasses.dataclass(frozen=True)
class Result:
    """What ``learn`` gives back: the table, and what the theory says of the run.

    >>> import kernelmdp as km
    >>> result = km.Random("riverswim", seed=0).learn(episodes=2, progress=False)
    >>> result.agent, result.name, len(result.episodes)
    ('random', 'riverswim', 2)
    """

    name: str
    agent: str
    covered: str
    episodes: Table
    #: Which theorem bounds the regret, or why none does; empty where nobody asked.
    bound: str = ""
    #: Numbers of episodes, and that bound after each.
    curve: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def regret(self) -> float:
        """Cumulative regret; NaN when no optimum is known."""
        return float(self.episodes["cumulative_regret"][-1]) if len(self.episodes) else 0.0

    def plot(self, axes: Any = None) -> Any:
        """Cumulative regret (or the return, where no optimum is known) against the episode."""
        import matplotlib.pyplot as plt

        axes = axes if axes is not None else plt.figure(figsize=(6, 4)).gca()
        known = np.isfinite(self.episodes["cumulative_regret"]).all()
        column = "cumulative_regret" if known else "return"
        axes.plot(self.episodes["episode"], self.episodes[column], label=self.agent)
        if known and self.curve is not None:
            axes.plot(*self.curve, "k--", drawstyle="steps-pre", label=self.bound.split(";")[0])
        axes.set_xlabel("episode")
        axes.set_ylabel(column.replace("_", " "))
        axes.set_title(self.name)
        axes.legend()
        return axes

    def save(self, path: Any) -> None:
        """As CSV."""
        with pathlib.Path(path).open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(self.episodes.rows)
