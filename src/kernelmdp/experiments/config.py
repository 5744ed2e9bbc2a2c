"""What a run is: an agent, an environment, a seed, and their settings; its ``config.toml``."""

import dataclasses
import json
import pathlib
import tomllib
from typing import Any

import jax
import numpy as np

from kernelmdp.agents import AGENTS, Agent, checkpoint
from kernelmdp.agents.problem import gymnasium_task, require_gymnasium
from kernelmdp.envs import make, names
from kernelmdp.envs.registry import require_known
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.bounds import run_bound
from kernelmdp.numerics.checks import suggested
from kernelmdp.version import __version__

WORDS = (
    "reward",
    "reward_kernel",
    "transition_kernel",
    "noise",
    "confidence",
    "planner",
    "prior",
    "inflate",
    "scale",
    "delta",
    "concentration",
    "reward_bounds",
    "kernel",
    "update",
    "first",
)


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """What a run is: enough to repeat it.

    >>> RunConfig("riverswim", "psrl", seed=3).agent
    'psrl'
    """

    env: str
    agent: str = "gp-ucrl"
    seed: int = 0
    env_options: dict[str, Any] = dataclasses.field(default_factory=dict)
    words: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.agent not in AGENTS:
            raise ArgumentError(
                "agent", "one of " + ", ".join(AGENTS), suggested(self.agent, AGENTS)
            )
        for word in self.words:
            if word not in WORDS and not word.startswith("confidence."):
                expected = "one of " + ", ".join(WORDS) + ", or confidence.NAME"
                raise ArgumentError("set", expected, suggested(word, WORDS))
        for argument in ("env_options", "words"):
            # As they will be read from config.toml, so that a run knows itself again.
            object.__setattr__(self, argument, _through_json(argument, getattr(self, argument)))

    @property
    def ours(self) -> bool:
        """Whether the environment is one of this library's, by its name."""
        return self.env in names() or "-v" not in self.env

    def require_environment(self) -> None:
        """Complain of an environment or an option that there is not; nothing is made."""
        if self.ours:
            if "name" in self.env_options:
                raise ArgumentError("options", "no other name of the environment", self.env_options)
            return require_known(self.env, self.env_options)
        unknown = sorted(set(self.env_options) - {"horizon"})
        if unknown:
            raise ArgumentError("options", f"for {self.env}: horizon", ", ".join(unknown))
        require_gymnasium(self.env)

    def task(self) -> Any:
        """The environment of this run; the seed draws the instance where there is one to draw."""
        self.require_environment()
        if self.ours:
            return make(self.env, **{"seed": self.seed, **self.env_options})
        return gymnasium_task(self.env, **self.env_options)

    def make_agent(self) -> Agent:
        """The agent, new."""
        words = {k: v for k, v in self.words.items() if "." not in k}
        details = {
            k.partition(".")[2]: v for k, v in self.words.items() if k.startswith("confidence.")
        }
        if details:
            words["confidence"] = {"preset": words.get("confidence"), **details}
        return AGENTS[self.agent](self.task(), seed=self.seed, **words)


def read_config(folder: Any) -> RunConfig:
    """The configuration of a run's folder.

    >>> import tempfile
    >>> from kernelmdp.experiments import run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = run(RunConfig("riverswim", "random"), folder, episodes=1)
    ...     read_config(folder).env
    'riverswim'
    """
    path = pathlib.Path(folder) / "config.toml"
    if not path.is_file():
        raise ArgumentError("folder", "the folder of a run, with config.toml", str(folder))
    try:
        found = tomllib.loads(path.read_text())["run"]
        return RunConfig(
            env=found["env"],
            agent=found["agent"],
            seed=found["seed"],
            env_options=json.loads(found["env_options"]),
            words=json.loads(found["words"]),
        )
    except (tomllib.TOMLDecodeError, KeyError, ValueError) as error:
        raise ArgumentError("folder", f"a config.toml that can be read ({error})", path) from None


def write_config(config: RunConfig, place: pathlib.Path, agent: Agent) -> None:
    """Into a run's folder, with what was found about the problem."""

    def text(value: Any) -> str:
        return json.dumps(value)  # a TOML string is a JSON string

    lines = [
        "[run]",
        *(f"{name} = {text(getattr(config, name))}" for name in ("env", "agent", "seed")),
        # As JSON inside strings, since values may be of any kind.
        f"env_options = {text(json.dumps(config.env_options))}",
        f"words = {text(json.dumps(config.words))}",
        "",
        "[found]",
        f"covered = {text(agent.covered)}",
        f"bound = {text(run_bound(agent).text)}",
        f"lipschitz = {text(f'{agent.problem.lipschitz:g} ({agent.problem.lipschitz_rule})')}",
        *(f"{key} = {text(value)}" for key, value in agent.problem.summary().items()),
        "",
        "[versions]",
        f"kernelmdp = {text(__version__)}",
        f"jax = {text(jax.__version__)}",
        f"numpy = {text(np.__version__)}",
    ]
    checkpoint.put(place / "config.toml", ("\n".join(lines) + "\n").encode())


def _through_json(argument: str, value: Any) -> Any:
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError) as error:
        raise ArgumentError(argument, "what JSON can hold", f"{value} ({error})") from None
