"""Saving agents to files, and loading them.

A file holds text and numbers. A setting that is neither, such as a function or a planner of your
own class, is only named in the file. You pass it again when you load the agent.
"""

import inspect
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kernelmdp import archive
from kernelmdp.agents.config import AgentConfig
from kernelmdp.agents.evaluation import Evaluation
from kernelmdp.agents.system import as_system
from kernelmdp.confidence import Confidence, ConfidenceRule
from kernelmdp.domains import Box
from kernelmdp.errors import ArgumentError, CheckpointError, KernelMDPError
from kernelmdp.kernels import kernel
from kernelmdp.learners import FittedKernels, FittedSettings, Learner
from kernelmdp.mdp.episode import Episode, as_arrays, from_arrays
from kernelmdp.planners import PLANNERS, Planner
from kernelmdp.priors import Prior
from kernelmdp.registry import Registry, is_reference
from kernelmdp.settings import is_plain, to_plain

#: Classes of agents by name.
AGENTS = Registry[Any]("agent")
#: Functions that write the controller of an agent to a file, by the ending of its name. The package
#: ``export`` registers them, so that no agent imports it.
EXPORTERS = Registry[Callable[..., Any]]("format")


def description_of(agent: Any) -> dict[str, Any]:
    """Describe how an agent was made, and for which problem.

    Args:
        agent: The agent.

    Returns:
        The description as text and numbers.
    """
    settings, not_saved = settings_to_save(agent.config)
    kind, best = type(agent), agent.best
    return {
        "agent": agent.name,
        "class": None if AGENTS.get(agent.name) is kind else f"{kind.__module__}:{kind.__name__}",
        "seed": agent.seed,
        "task": agent.system.spec,
        "settings": settings,
        "given": not_saved,
        "problem": agent.problem.summary(),
        "totals": agent.totals,
        "best": best and {"episode": best.episode, "returns": best.returns.tolist()},
        "follows_best": agent.follows_best,
    }


def save_agent(agent: Any, path: object) -> None:
    """Write an agent to a file; see ``Agent.save``.

    Args:
        agent: The agent.
        path: The file.
    """
    problem = agent.problem
    arrays = as_arrays(
        agent.history,
        state_dimension=problem.states.dimension,
        action_dimension=problem.actions.dimension,
        horizon=problem.horizon,
    )
    saved = {"newest": agent.state} | ({} if agent.best is None else {"best": agent.best_state})
    # The state of an agent that does not learn knows nothing of its episodes.
    states = {n: agent.learner.saved_arrays(s) for n, s in saved.items() if agent.learns}
    archive.write(path, description_of(agent), arrays, states)


def export_agent(agent: Any, path: object, options: Mapping[str, Any]) -> Any:
    """Write the controller of an agent to a file; see ``Agent.export``.

    Args:
        agent: The agent.
        path: The file.
        options: Options of the format.

    Returns:
        What was exported.
    """
    return EXPORTERS.find(pathlib.Path(str(path)).suffix)(agent, path, **options)


def load_agent(
    kind: type[Any],
    path: object,
    *,
    task: object,
    agent: type[Any] | None,
    settings: dict[str, Any],
) -> Any:
    """Load an agent from a file; see ``Agent.load``.

    Args:
        kind: The class on which ``load`` was called.
        path: The file, or the folder of a run.
        task: The task, or None to make it again from the file.
        agent: The agent's class, or None to take it from the file.
        settings: Settings that the file does not hold.

    Returns:
        The agent, which has learned from all saved episodes.

    Raises:
        CheckpointError: If the file is not a saved agent, or one for another problem.
        ArgumentError: If the task, the class or a setting is missing.
    """
    description, arrays, states = archive.read(path)
    try:
        kind = _class_of(kind, path, description, agent)
        saved_settings, missing = dict(description["settings"]), dict(description["given"])
        spec, seed = description["task"], int(description["seed"])
        saved_problem = dict(description["problem"])
        totals = {name: float(value) for name, value in description["totals"].items()}
        best, follows_best = description.get("best"), bool(description.get("follows_best"))
        best = best and Evaluation(int(best["episode"]), np.array(best["returns"], float))
    except ArgumentError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: the description is incomplete ({error})") from None
    if task is None and spec is None:
        expected = f"the task the agent was made for ({saved_problem['name']})"
        raise ArgumentError("task", expected, None)
    _require_settings(path, missing, settings)
    config = kind.Config.of(saved_settings | settings)
    # A checkpoint's horizon may be shorter than the environment's limit.
    system = as_system(spec if task is None else task, default_horizon=saved_problem["horizon"])
    # Compare the problems before the agent is made: with another problem, making it may fail with
    # an error that does not name the cause.
    for name, value in config.problem_for(system).summary().items():
        if value != saved_problem.get(name):
            raise CheckpointError(
                f"{path}: saved for another problem: {name} was {saved_problem.get(name)!r}, "
                f"here it is {value!r}"
            )
    loaded = kind(system, seed=seed, config=config)
    loaded.best = best
    learn_again(loaded, path, from_arrays(arrays), states)
    loaded.totals, loaded.follows_best = totals, follows_best
    return loaded


def learn_again(
    agent: Any,
    path: object,
    episodes: list[Episode],
    states: Mapping[str, Mapping[str, np.ndarray]],
) -> None:
    """Give an agent the episodes of a file, and the learner's states if the file holds them.

    Args:
        agent: The agent, before its first episode.
        path: The file.
        episodes: Its episodes.
        states: Arrays of the learner's states, "newest" and "best". If they are empty, the agent
            learns from the episodes again.

    Raises:
        CheckpointError: If the states are damaged.
    """
    restored, initial = agent.learner.restored, agent.state
    try:
        best = newest = restored(initial, episodes, states["newest"])
        if agent.best is not None:
            best = restored(initial, episodes[: agent.best.episode], states["best"])
    except ValueError as error:
        raise CheckpointError(f"{path}: the learner's state is damaged ({error})") from None
    except KeyError:  # The file holds no states, or those of another version.
        for episode in episodes:
            agent.replay(episode)
        return
    agent.restore(episodes, newest, best)


def _class_of(
    kind: type[Any], path: object, description: dict[str, Any], agent: type[Any] | None
) -> type[Any]:
    """The class of a saved agent: ``agent`` if passed, a registered one, or ``kind``."""
    name, reference = description["agent"], description["class"]
    if agent is not None:
        kind = agent
    elif inspect.isabstract(kind):
        if reference is not None:
            expected = f"the class that {path} was saved with, {reference}"
            raise ArgumentError("agent", expected, None)
        kind = AGENTS[name]
    if kind.name != name:
        raise CheckpointError(f"{path}: holds {name}, not {kind.name}")
    return kind


def settings_to_save(config: AgentConfig) -> tuple[dict[str, Any], dict[str, str]]:
    """Split settings into those that a file can hold and those to be passed again.

    Args:
        config: The settings.

    Returns:
        Settings as text and numbers, and a description of each that a file cannot hold.
    """
    settings: dict[str, Any] = {}
    not_saved: dict[str, str] = {}
    for name in config.meanings():
        value = getattr(config, name)
        written = WRITERS.get(name, _plain_or_none)(value)
        if (written is None and value is not None) or _imports(written):
            not_saved[name] = (
                f"the function {value.__name__}" if inspect.isfunction(value) else repr(value)
            )
        else:
            settings[name] = written
    return settings, not_saved


def _require_settings(
    path: object, missing: Mapping[str, str], settings: Mapping[str, object]
) -> None:
    """Raise ArgumentError if a setting that the file does not hold was not passed."""
    for name, description in missing.items():
        if name not in settings:
            expected = f"the {name.replace('_', ' ')} that {path} was saved with, {description}"
            raise ArgumentError(name, expected, None)


def _imports(written: Any) -> bool:
    """Whether a setting names a module to import. Loading a file must not run such code."""
    name = written.get("name") if isinstance(written, Mapping) else written
    return isinstance(name, str) and is_reference(name)


def _plain_or_none(value: Any) -> Any:
    written = to_plain(value)
    return written if is_plain(written) else None


def _kernel(value: Any) -> str | None:
    """The kernel's text, if it parses to the same kernel; else None."""
    if value is None:
        return None
    try:
        return str(value) if str(kernel(str(value))) == str(value) else None
    except KernelMDPError:
        return None


def _confidence(value: Any) -> Any:
    if isinstance(value, Confidence):
        return {"name": value.preset} | to_plain(value)
    return None if isinstance(value, ConfidenceRule) else _plain_or_none(value)


def _planner(value: Any) -> Any:
    """Name and fields of a registered planner, if all fields are text and numbers."""
    if not isinstance(value, Planner):
        return _plain_or_none(value)
    name = PLANNERS.name_of(type(value))
    if name is None:
        return None
    fields = {"name": name} | to_plain(value)
    return fields if is_plain(fields) and _flat_fields(fields) else None


def _flat_fields(fields: Mapping[str, Any]) -> bool:
    """Whether no field is an object with fields, which could not be made again from its name."""
    return not any(isinstance(field, Mapping) for field in fields.values())


def _learner(value: Any) -> Any:
    """Name and changed settings of the fitted learner, if they are text and numbers."""
    if not isinstance(value, Learner):
        return _plain_or_none(value)
    if not isinstance(value, FittedKernels):
        return None
    default = FittedSettings()
    changed = {
        name: _kernel(part) if name.endswith("_kernel") else to_plain(part)
        for name in default.meanings()
        if (part := getattr(value.settings, name)) is not getattr(default, name)
        and part != getattr(default, name)
    }
    return {"name": "fitted"} | changed if is_plain(changed) else None


def _prior(value: Any) -> Any:
    """The name of a prior, or its description unless a part of it is a function."""
    if not isinstance(value, Prior):
        return _plain_or_none(value)
    written = to_plain(value.description())
    return None if "a function" in written.values() else written


def _constraints(value: Any) -> Any:
    """Text and limits by name; None if a part is a function."""
    if isinstance(value, Box):
        limits = enumerate(zip(value.low, value.high, strict=True))
        return {f"state[{j}]": list(pair) for j, pair in limits}
    if isinstance(value, list | tuple):
        parts = [_constraints(part) for part in value]
        return None if None in parts else parts
    return value if isinstance(value, str) else to_plain(value) if is_limits(value) else None


def is_limits(value: object) -> bool:
    """Return whether constraints are a mapping from names to pairs of numbers.

    Args:
        value: The constraints.

    Returns:
        Whether a file can hold them.
    """
    return isinstance(value, Mapping) and is_plain(to_plain(value))


#: Functions that convert settings to text and numbers; None if that is impossible.
WRITERS: dict[str, Callable[[Any], Any]] = {
    "reward": lambda value: value if isinstance(value, str) else None,
    "reward_kernel": _kernel,
    "transition_kernel": _kernel,
    "confidence": _confidence,
    "planner": _planner,
    "learner": _learner,
    "prior": _prior,
    "constraints": _constraints,
    "fallback": lambda value: value if isinstance(value, str) else None,
}
