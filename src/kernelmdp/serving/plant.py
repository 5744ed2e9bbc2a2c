"""The description of a plant: what a TOML file or the options of ``kmdp serve`` say."""

import dataclasses
import pathlib
import tomllib
from collections.abc import Mapping
from typing import Any

from kernelmdp.agents import AGENTS, Agent
from kernelmdp.domains import Box
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp import Problem
from kernelmdp.numerics.checks import float_array, integer, with_suggestion
from kernelmdp.settings import nest


@dataclasses.dataclass(frozen=True)
class Plant:
    """A plant that somebody else runs, and the agent that learns to control it.

    Attributes:
        name: The name of the plant.
        states: The lowest and the highest value of each coordinate of the state, by its name.
        actions: The same for the action.
        horizon: The number of periods H of an episode.
        periodic: Names of coordinates of the state that are angles, or wrap in another way.
        agent: The name of an agent.
        seed: The seed of everything random.
        settings: Settings of the agent. A dotted name sets a setting of a component. Functions
            are given as ``module:function``.

    Raises:
        ArgumentError: If a limit or a name is invalid.

    >>> heater = Plant("heater", {"temperature": (0, 100)}, {"power": (0, 1)}, horizon=40)
    >>> heater.problem.coordinates, heater.make_agent().name
    (('temperature',), 'frugal')
    """

    name: str
    states: Mapping[str, Any]
    actions: Mapping[str, Any]
    horizon: int
    periodic: tuple[str, ...] = ()
    agent: str = "frugal"
    seed: int = 0
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        integer("horizon", self.horizon, least=1)
        integer("seed", self.seed, least=0)
        for argument in ("states", "actions"):
            _limits(argument, getattr(self, argument))
        for name in self.periodic:
            if name not in self.states:
                raise ArgumentError(
                    "periodic", "names of states", with_suggestion(name, self.states)
                )
        if not isinstance(self.settings, Mapping):
            raise ArgumentError("settings", "a table of settings", repr(self.settings))

    @classmethod
    def read(cls, path: pathlib.Path) -> "Plant":
        """Read the description of a plant.

        Args:
            path: A TOML file with the fields of this class.

        Returns:
            The plant. Its name is that of the file if it has none.

        Raises:
            ArgumentError: If the file cannot be read, or is not of this form.
        """
        try:
            table = tomllib.loads(path.read_text())
        except OSError as error:
            expected = "a file to read"
            raise ArgumentError("plant", expected, f"{path} ({error.strerror})") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ArgumentError("plant", "a TOML file", f"{path} ({error})") from None
        return cls.of({"name": path.stem} | table)

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> "Plant":
        """Make a plant of a table, such as one of TOML.

        Args:
            table: The fields by name.

        Returns:
            The plant.

        Raises:
            ArgumentError: If a field is unknown or missing.
        """
        fields = {field.name: field for field in dataclasses.fields(cls)}
        for name in table:
            if name not in fields:
                expected = "fields among " + ", ".join(fields)
                raise ArgumentError("plant", expected, with_suggestion(name, fields))
        for name in ("name", "states", "actions", "horizon"):
            if name not in table:
                raise ArgumentError("plant", f"{name} to be given", "none")
        return cls(**dict(table) | {"periodic": tuple(table.get("periodic", ()))})

    @property
    def problem(self) -> Problem:
        """The learning problem: spaces and horizon, with the names of the coordinates."""
        periodic = [list(self.states).index(name) for name in self.periodic]
        problem = Problem.from_spaces(
            states=Box(*_limits("states", self.states), periodic),
            actions=Box(*_limits("actions", self.actions)),
            horizon=self.horizon,
            name=self.name,
        )
        return dataclasses.replace(problem, coordinates=tuple(self.states))

    def make_agent(self) -> Agent:
        """Make the agent.

        Returns:
            The agent, before its first episode.
        """
        return AGENTS.find(self.agent)(self.problem, seed=self.seed, **nest(self.settings))


def _limits(argument: str, limits: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    """Lowest and highest values, each in the order of the names."""
    if not isinstance(limits, Mapping) or not limits:
        raise ArgumentError(argument, "names with their limits", repr(limits))
    pairs = []
    for name, pair in limits.items():
        numbers = float_array(pair, argument).tolist()
        if not isinstance(numbers, list) or len(numbers) != 2 or not numbers[0] < numbers[1]:
            raise ArgumentError(argument, f"two limits of {name}, the lower one first", pair)
        pairs.append(numbers)
    return [low for low, _ in pairs], [high for _, high in pairs]
