"""What agents do with files: learn from logs, save, load, and export."""

from collections.abc import Sequence
from typing import Any

from kernelmdp.agents.saving import description_of, export_agent, load_agent, save_agent
from kernelmdp.agents.told_logs import read_tables, tell_tables
from kernelmdp.logs import LogColumns, LogReport, Table


class AgentFiles:
    """The methods of agents that read and write files.

    >>> import kernelmdp as km
    >>> isinstance(km.PSRL("riverswim", seed=0), AgentFiles)
    True
    """

    def tell_frame(
        self,
        frame: Table,
        *,
        states: str | Sequence[str],
        actions: str | Sequence[str],
        reward: str | None = None,
        episode: str | None = None,
        terminated: str | None = None,
        learn: bool = True,
    ) -> LogReport:
        """Learn from a table of logged rows. If an error is raised, the agent is unchanged.

        A row holds a state, the action taken in it, and its reward. The next row holds the next
        state. Rows with missing states cut an episode, and so does the horizon.

        Args:
            frame: The table.
            states: The columns of the state, in the order of its coordinates.
            actions: The columns of the action.
            reward: The column of the reward. It may be None if the reward is known.
            episode: The column that tells episodes apart. None if all rows are one.
            terminated: The column that is true where an episode ended by itself.
            learn: Whether to learn. Otherwise the rows are only looked at.

        Returns:
            What is in the table: coverage, gaps, noise, delays and constant columns. Print it.
        """
        columns = LogColumns.of(states, actions, reward, episode, terminated)
        return tell_tables(self, [("the table", frame)], columns, learn=learn)

    def tell_csv(
        self,
        paths: Any,
        *,
        states: str | Sequence[str],
        actions: str | Sequence[str],
        reward: str | None = None,
        episode: str | None = None,
        terminated: str | None = None,
        learn: bool = True,
    ) -> LogReport:
        """Learn from files of comma-separated values, with names in the first row.

        Args:
            paths: A path, or several. Every file begins a new episode.
            states: The columns of the state, in the order of its coordinates.
            actions: The columns of the action.
            reward: The column of the reward. It may be None if the reward is known.
            episode: The column that tells episodes apart. None if all rows of a file are one.
            terminated: The column that is true where an episode ended by itself.
            learn: Whether to learn. Otherwise the files are only looked at.

        Returns:
            What is in the files. Print it.
        """
        columns = LogColumns.of(states, actions, reward, episode, terminated)
        return tell_tables(self, read_tables(paths), columns, learn=learn)

    def save(self, path: object) -> None:
        """Write the agent to a file of arrays and JSON. Such a file contains no code.

        Args:
            path: The file to write.
        """
        save_agent(self, path)

    def export(
        self,
        path: object,
        *,
        of: str = "controller",
        state_points: int | tuple[int, ...] | None = None,
        interpolation: str | None = None,
        **distillation: Any,
    ) -> Any:
        """Write the controller of ``predict`` to a file that runs without this library.

        Args:
            path: The file. Its ending is the format: ``.c``, ``.onnx``, ``.npz`` or ``.stablehlo``;
                of a model ``.onnx``, ``.npz`` or ``.py``.
            of: "controller", or "model" to write the learned model instead.
            state_points: Nodes along each axis of the state, for the table of a plan on a grid.
            interpolation: "linear" or "nearest" between these nodes. None takes the better one.
            **distillation: Settings of ``kernelmdp.export.DistillationConfig``, for the network of
                an MPC plan.

        Returns:
            The ``Export``. Printed, it says how the file differs from ``predict``. For a model, the
            ``PredictionModel``.
        """
        given = {"state_points": state_points, "interpolation": interpolation}
        options = {name: value for name, value in given.items() if value is not None}
        return export_agent(self, path, {"of": of} | options | distillation)

    def description(self) -> dict[str, Any]:
        """Describe how the agent was made, and for which problem.

        Returns:
            The settings and the problem, as text and numbers.
        """
        return description_of(self)

    @classmethod
    def load(
        cls,
        path: object,
        *,
        task: object = None,
        agent: "type[Any] | None" = None,
        **settings: Any,
    ) -> Any:
        """Load an agent from the file that ``save`` wrote, or from the folder of a run.

        Args:
            path: The file or the folder.
            task: The task. Needed when the agent was made for an object and not for a name.
            agent: The class of the agent. Needed when it is not a registered one.
            **settings: Settings that a file cannot hold, such as a reward function, a kernel
                without a text form, or a planner of your own class. An error names those missing.

        Returns:
            The agent. It continues as if it had never stopped.

        Raises:
            CheckpointError: If the file is not a saved agent, or one for another problem.
            ArgumentError: If the task, the class or a setting is missing.

        >>> import os, tempfile, kernelmdp as km
        >>> agent = km.GPUCRL("riverswim", seed=3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     agent.save(os.path.join(folder, "agent.kmdp"))
        ...     km.GPUCRL.load(os.path.join(folder, "agent.kmdp")).seed
        3
        """
        return load_agent(cls, path, task=task, agent=agent, settings=settings)
