"""The configuration of a run: an agent, an environment, a seed, and their settings."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium

from kernelmdp.agents import AGENTS, Agent
from kernelmdp.agents.saving import WRITERS
from kernelmdp.envs import ENVIRONMENTS
from kernelmdp.envs.registry import BORDER_OPTIONS, require_known
from kernelmdp.envs.task_construction import import_namespace
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.systems import (
    PlayableSystem,
    as_playable,
    border_options,
    gymnasium_errors,
    is_module_reference,
    looks_like_gymnasium_id,
)
from kernelmdp.numerics.checks import with_suggestion
from kernelmdp.registry import reference_to
from kernelmdp.settings import is_plain, nest, to_plain

#: Options of ``from_gymnasium`` that a file can hold.
GYMNASIUM_OPTIONS = ("horizon", *BORDER_OPTIONS)


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """The configuration of a run. It is enough to repeat the run.

    Classes and objects are replaced by their names, so that a file can hold the configuration.

    Attributes:
        env: The name of an environment, a Gymnasium id, ``module:Id`` or ``module:Name``, a class
            or function that makes an environment, or an environment that ``make`` made.
        agent: The name of an agent, ``module:Class``, or the class.
        seed: The seed of everything random.
        env_options: Options of the environment.
        settings: Settings of the agent. A dotted name sets a setting of a component.

    Raises:
        ArgumentError: If an agent or a setting is unknown, or a file cannot hold a setting.

    >>> RunConfig("riverswim", "psrl", seed=3).agent
    'psrl'
    >>> RunConfig("riverswim", settings={"confidence.delta": 0.2}).settings
    {'confidence': {'delta': 0.2}}
    """

    env: Any
    agent: Any = "psrl"
    seed: int = 0
    env_options: dict[str, Any] = dataclasses.field(default_factory=dict)
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        spec: dict[str, Any] = dict(getattr(self.env, "spec", None) or {})
        if "name" in spec:  # ``make`` made the environment
            object.__setattr__(self, "env_options", _options(spec) | self.env_options)
            object.__setattr__(self, "env", spec["name"])
        for name in ("env", "agent"):
            object.__setattr__(self, name, _name_of(name, getattr(self, name)))
        settings = nest(self.settings)
        names = list(self.agent_class.Config.meanings())
        for name in settings:
            if name not in names:
                expected = f"settings of {self.agent}: " + ", ".join(names)
                raise ArgumentError("set", expected, with_suggestion(name, names))
        # Settings are kept as config.toml holds them: then a run equals its stored configuration.
        object.__setattr__(self, "settings", _as_stored("set", settings))
        object.__setattr__(self, "env_options", _as_stored("env_options", self.env_options))

    @property
    def agent_class(self) -> type[Agent]:
        """The class of the agent."""
        return AGENTS.find(self.agent)

    @property
    def registered_env(self) -> bool:
        """Whether this library's ``make`` makes the environment, and not Gymnasium."""
        name = self.env
        return (
            name in ENVIRONMENTS or is_module_reference(name) or not looks_like_gymnasium_id(name)
        )

    def require_environment(self) -> None:
        """Check that the environment and its options exist, without making it.

        Raises:
            ArgumentError: If the environment or an option is unknown.
        """
        if self.registered_env:
            if "name" in self.env_options:
                raise ArgumentError("options", "no other name of the environment", self.env_options)
            return require_known(self.env, set(self.env_options) - set(border_options(self.env)))
        unknown = sorted(set(self.env_options) - set(GYMNASIUM_OPTIONS))
        if unknown:
            expected = f"for {self.env}: " + ", ".join(GYMNASIUM_OPTIONS)
            got = with_suggestion(unknown[0], GYMNASIUM_OPTIONS)
            raise ArgumentError("options", expected, got)
        import_namespace(self.env)
        with gymnasium_errors():
            gymnasium.spec(self.env.rpartition(":")[2])

    def system(self) -> PlayableSystem:
        """Make the system of this run.

        Returns:
            The system. If the environment is drawn at random, the run's seed decides the draw.
        """
        self.require_environment()
        seed = {"seed": self.seed} if self.registered_env else {}
        return as_playable({"name": self.env, **seed, **self.env_options})

    def make_agent(self) -> Agent:
        """Make the agent of this run.

        Returns:
            The agent, before any episode.
        """
        return self.agent_class(self.system(), seed=self.seed, **self.settings)


def _name_of(kind: str, value: str | Callable[..., Any]) -> str:
    """Return the registered name of a class or function, or its ``module:Name``."""
    if isinstance(value, str):
        return value
    registry = AGENTS if kind == "agent" else ENVIRONMENTS
    known = registry.name_of(value)
    if known is None and not callable(value):
        raise ArgumentError(kind, "a name, a class, or a function that makes it", repr(value))
    return known or reference_to(value, kind)


def _options(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name != "name"}


def _as_stored(argument: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as a file holds them: objects by name and fields, without None."""
    stored = {}
    for name, value in settings.items():
        writer = WRITERS.get(name)
        written = to_plain(value)
        if not is_plain(written) and writer is not None:
            written = writer(value)
        if not is_plain(written) or (written is None and value is not None):
            raise ArgumentError(argument, f"text and numbers for {name}", repr(value))
        if written is not None:
            stored[name] = written
    return json.loads(json.dumps(stored))
