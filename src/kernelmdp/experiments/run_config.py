"""What a run is: an agent, an environment, a seed, and their settings."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium

from kernelmdp.agents import AGENTS, Agent
from kernelmdp.agents.saving import WRITERS
from kernelmdp.envs import ENVIRONMENTS
from kernelmdp.envs.registry import require_known
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.systems import (
    PlayableSystem,
    as_playable,
    gymnasium_errors,
    is_gymnasium_id,
    is_module_reference,
)
from kernelmdp.numerics.checks import suggested
from kernelmdp.registry import reference_to
from kernelmdp.settings import is_plain, nested, plain


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """What a run is: enough to repeat it.

    Args:
        env: The name of an environment, an id of Gymnasium's, ``module:Id`` or ``module:Name``, or
            a class or function that makes an environment.
        agent: The name of an agent, ``module:Class``, or the class.
        seed: Of all that is random.
        env_options: Options of the environment.
        settings: Settings of the agent; dotted names are settings of a part.

    >>> RunConfig("riverswim", "psrl", seed=3).agent
    'psrl'
    >>> RunConfig("riverswim", settings={"confidence.delta": 0.2}).settings
    {'confidence': {'delta': 0.2}}
    """

    env: Any
    agent: Any = "gp-ucrl"
    seed: int = 0
    env_options: dict[str, Any] = dataclasses.field(default_factory=dict)
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        spec: dict[str, Any] = dict(getattr(self.env, "spec", None) or {})
        if "name" in spec:  # an environment that ``make`` made
            object.__setattr__(self, "env_options", _options(spec) | self.env_options)
            object.__setattr__(self, "env", spec["name"])
        for name in ("env", "agent"):
            object.__setattr__(self, name, _named(name, getattr(self, name)))
        settings = nested(self.settings)
        names = list(self.agent_class.Config.meanings())
        for name in settings:
            if name not in names:
                expected = f"settings of {self.agent}: " + ", ".join(names)
                raise ArgumentError("set", expected, suggested(name, names))
        # As they will be read from config.toml, so that a run knows itself again.
        object.__setattr__(self, "settings", _stored("set", settings))
        object.__setattr__(self, "env_options", _stored("env_options", self.env_options))

    @property
    def agent_class(self) -> type[Agent]:
        """The class of the agent."""
        return AGENTS.find(self.agent)

    @property
    def registered_env(self) -> bool:
        """Whether the environment is made by this library's ``make``, not by Gymnasium."""
        name = self.env
        return name in ENVIRONMENTS or is_module_reference(name) or not is_gymnasium_id(name)

    def require_environment(self) -> None:
        """Complain of an environment or an option that there is not; nothing is made."""
        if self.registered_env:
            if "name" in self.env_options:
                raise ArgumentError("options", "no other name of the environment", self.env_options)
            return require_known(self.env, self.env_options)
        unknown = sorted(set(self.env_options) - {"horizon", "angles"})
        if unknown:
            raise ArgumentError("options", f"for {self.env}: horizon, angles", ", ".join(unknown))
        with gymnasium_errors():
            gymnasium.spec(self.env)

    def system(self) -> PlayableSystem:
        """The system of this run; the seed draws the instance where there is one to draw."""
        self.require_environment()
        seed = {"seed": self.seed} if self.registered_env else {}
        return as_playable({"name": self.env, **seed, **self.env_options})

    def make_agent(self) -> Agent:
        """The agent, new."""
        return self.agent_class(self.system(), seed=self.seed, **self.settings)


def _named(kind: str, given: str | Callable[..., Any]) -> str:
    """A name, or ``module:Name`` of a class or function."""
    if isinstance(given, str):
        return given
    registry = AGENTS if kind == "agent" else ENVIRONMENTS
    known = registry.name_of(given)
    if known is None and not callable(given):
        raise ArgumentError(kind, "a name, a class, or a function that makes it", repr(given))
    return known or reference_to(given, kind)


def _options(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name != "name"}


def _stored(argument: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a file holds them: objects by their name and fields, and no None."""
    stored = {}
    for name, value in settings.items():
        writer = WRITERS.get(name)
        written = plain(value)
        if not is_plain(written) and writer is not None:
            written = writer(value)
        if not is_plain(written) or (written is None and value is not None):
            raise ArgumentError(argument, f"text and numbers for {name}", repr(value))
        if written is not None:
            stored[name] = written
    return json.loads(json.dumps(stored))
