"""The table of a run, with one row an episode, and the result of learning."""

import csv
import dataclasses
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kernelmdp.agents.agent_summary import Row, returns_text, summary_text
from kernelmdp.agents.optimality import Certificate
from kernelmdp.confidence import Coverage
from kernelmdp.experiments.safety_columns import safety_rows
from kernelmdp.mdp import Episode
from kernelmdp.numerics.checks import with_suggestion

if TYPE_CHECKING:
    from pandas import DataFrame as Frame


class Table:
    """The rows of a run. ``table["regret"]`` is a column as an array.

    Args:
        rows: Mappings from column to number. Missing numbers are NaN.
        columns: All columns in their order. None means the columns of the rows.

    >>> table = Table([{"episode": 1, "return": 2.5}])
    >>> table["return"]
    array([2.5])
    >>> table.frame()
       episode  return
    0        1     2.5
    """

    def __init__(
        self, rows: Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None
    ) -> None:
        rows = list(rows)
        self.columns = tuple(
            dict.fromkeys(name for row in rows for name in row) if columns is None else columns
        )
        self.rows = [{name: row.get(name, np.nan) for name in self.columns} for row in rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __contains__(self, column: object) -> bool:
        return column in self.columns

    def __getitem__(self, column: str) -> np.ndarray:
        if column not in self.columns:
            name = with_suggestion(column, self.columns)
            raise KeyError(f"no column {name}; there are {', '.join(self.columns)}")
        return np.array([float(row[column]) for row in self.rows])

    def __iter__(self) -> Iterator[dict[str, float]]:
        """Iterate over rows, as ``pandas.DataFrame(table)`` does."""
        for row in self.rows:
            yield {
                name: value if name == "episode" else float(value) for name, value in row.items()
            }

    def frame(self) -> "Frame":
        """Return the table as a data frame of pandas.

        Returns:
            The data frame, one row an episode.
        """
        import pandas as pd

        return pd.DataFrame(list(self), columns=list(self.columns))

    def __repr__(self) -> str:
        return f"Table({len(self)} episodes: {', '.join(self.columns)})"


class PlayedRun(NamedTuple):
    """A run that was played, before it is stored.

    Attributes:
        rows: The rows of its table.
        history: Its episodes.
        state: The learner's state after them.
        totals: Running sums, such as the cumulative regret.
    """

    rows: list[dict[str, Any]]
    history: list[Episode]
    state: Any
    totals: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of ``learn``: the table of a run, and which theorem covers it.

    Attributes:
        name: The name of the environment.
        agent: The name of the agent.
        coverage: Which theorem covers the run, or why none does.
        episodes: The table, one row an episode.
        bound: Which theorem bounds the regret, or why none does; empty if not computed.
        curve: Numbers of episodes and the bound after each, two arrays of the same length; None
            if there is no bound.
        model: A function that describes planner, kernels and noise at the end, for ``print``.
        certificate: How far from optimal the controller is at most, with ``learn(until=...)``.

    >>> import kernelmdp as km
    >>> result = km.Random("riverswim", seed=0).learn(episodes=2, progress=False)
    >>> result.agent, result.name, len(result.episodes)
    ('random', 'riverswim', 2)
    """

    name: str
    agent: str
    coverage: Coverage
    episodes: Table
    bound: str = ""
    curve: tuple[np.ndarray, np.ndarray] | None = None
    model: Callable[[], list[Row]] = dataclasses.field(default=list, compare=False)
    certificate: Certificate | None = None

    def __repr__(self) -> str:
        rows: list[Row] = [("episodes", str(len(self.episodes)))]
        if len(self.episodes):
            returns = self.episodes["return"]
            best = int(np.argmax(returns))
            number = int(self.episodes["episode"][best])
            rows.append(("returns", returns_text(returns[-1], returns[best], number)))
            if np.isfinite(self.regret):
                rows.append(("regret", f"{self.regret:.4g}"))
        rows += [*safety_rows(self.episodes), *self.model(), ("theory", str(self.coverage))]
        if self.certificate is not None:
            rows.append(("certificate", str(self.certificate)))
        return summary_text(f"{self.agent} on {self.name}", rows)

    @property
    def regret(self) -> float:
        """Cumulative regret; NaN if the optimal value is unknown."""
        return float(self.episodes["cumulative_regret"][-1]) if len(self.episodes) else 0.0

    def plot(self, axes: Any = None) -> Any:
        """Plot cumulative regret against the episode; the return if the optimum is unknown.

        A bound above all that can be lost is not drawn. The legend tells of it.

        Args:
            axes: Axes of Matplotlib to draw on. None makes a new figure.

        Returns:
            The axes.
        """
        import matplotlib.pyplot as plt

        given = axes is not None
        axes = axes if given else plt.figure(figsize=(6, 4), layout="constrained").gca()
        known = np.isfinite(self.episodes["cumulative_regret"]).all()
        column = "cumulative_regret" if known else "return"
        axes.plot(self.episodes["episode"], self.episodes[column], label=self.agent)
        if known and self.curve is not None:
            theorem, _, remark = self.bound.partition(";")
            if "vacuous" in remark:
                axes.plot([], [], " ", label=f"{theorem}: vacuous ({self.curve[1][-1]:,.0f})")
            else:
                axes.plot(*self.curve, "k--", drawstyle="steps-pre", label=theorem)
        axes.set_xlabel("episode")
        axes.set_ylabel(column.replace("_", " "))
        axes.set_title(self.name)
        # Below the axes, where it hides nothing, unless the figure is yours.
        below = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.14), "frameon": False}
        axes.legend(**({} if given else below))
        return axes

    def save(self, path: Any) -> None:
        """Write the table as CSV.

        Args:
            path: The file to write.
        """
        with pathlib.Path(path).open("w", newline="") as file:
            writer = csv.DictWriter(file, self.episodes.columns)
            writer.writeheader()
            writer.writerows(self.episodes.rows)
