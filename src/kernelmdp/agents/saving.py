"""How an agent's settings go into a file, and come out of it again.

A file holds text and numbers. A setting that is neither, such as a function or a planner of your
own class, is named in the file and has to be given when the agent is loaded.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from kernelmdp import archive
from kernelmdp.agents.config import AgentConfig
from kernelmdp.agents.system import as_system
from kernelmdp.confidence import Confidence, ConfidenceRule
from kernelmdp.errors import ArgumentError, CheckpointError, KernelMDPError
from kernelmdp.kernels import kernel
from kernelmdp.learners import FittedKernels, FittedSettings, Learner
from kernelmdp.mdp.episode import as_arrays, from_arrays
from kernelmdp.planners import PLANNERS, Planner
from kernelmdp.priors import Prior
from kernelmdp.registry import Registry, is_reference
from kernelmdp.settings import is_plain, plain

#: Classes of agents by name.
AGENTS = Registry[Any]("agent")


def description_of(agent: Any) -> dict[str, Any]:
    """How an agent was made, and for which problem, in text and numbers."""
    settings, given = saved_settings(agent.config)
    kind = type(agent)
    return {
        "agent": agent.name,
        "class": None if AGENTS.get(agent.name) is kind else f"{kind.__module__}:{kind.__name__}",
        "seed": agent.seed,
        "task": agent.system.spec,
        "settings": settings,
        "given": given,
        "problem": agent.problem.summary(),
        "totals": agent.totals,
    }


def save_agent(agent: Any, path: object) -> None:
    """Write an agent to a file; see ``Agent.save``."""
    problem = agent.problem
    arrays = as_arrays(
        agent.history,
        states=problem.states.dimension,
        actions=problem.actions.dimension,
        horizon=problem.horizon,
    )
    archive.write(path, description_of(agent), arrays)


def load_agent(
    kind: type[Any], path: object, *, task: object, agent: type[Any] | None, given: dict[str, Any]
) -> Any:
    """The agent of a file; see ``Agent.load``."""
    description, arrays = archive.read(path)
    try:
        kind = _class_of(kind, path, description, agent)
        settings, missing = dict(description["settings"]), dict(description["given"])
        spec, seed = description["task"], int(description["seed"])
        saved = dict(description["problem"])
        totals = {name: float(value) for name, value in description["totals"].items()}
    except ArgumentError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: the description is incomplete ({error})") from None
    if task is None and spec is None:
        raise ArgumentError("task", f"the task the agent was made for ({saved['name']})", None)
    _require_given(path, missing, given)
    config = kind.Config.of(settings | given)
    # A checkpoint's horizon may be shorter than the environment's limit.
    system = as_system(spec if task is None else task, default_horizon=saved["horizon"])
    # Before the agent is made, which may fail for reasons that only follow from this one.
    for name, value in config.problem_for(system).summary().items():
        if value != saved.get(name):
            raise CheckpointError(
                f"{path}: saved for another problem: {name} was {saved.get(name)!r}, "
                f"here it is {value!r}"
            )
    loaded = kind(system, seed=seed, config=config)
    for episode in from_arrays(arrays):
        loaded.replay(episode)
    loaded.totals = totals
    return loaded


def _class_of(
    kind: type[Any], path: object, description: dict[str, Any], given: type[Any] | None
) -> type[Any]:
    """The class of a saved agent: this one, the one that is given, or a registered one."""
    name, reference = description["agent"], description["class"]
    if given is not None:
        kind = given
    elif inspect.isabstract(kind):
        if reference is not None:
            expected = f"the class that {path} was saved with, {reference}"
            raise ArgumentError("agent", expected, None)
        kind = AGENTS[name]
    if kind.name != name:
        raise CheckpointError(f"{path}: holds {name}, not {kind.name}")
    return kind


def saved_settings(config: AgentConfig) -> tuple[dict[str, Any], dict[str, str]]:
    """Settings in text and numbers, and the names of those that have to be given again.

    Args:
        config: The settings.

    Returns:
        Settings that a file can hold, and a description of each that it cannot.
    """
    settings: dict[str, Any] = {}
    given: dict[str, str] = {}
    for name in config.meanings():
        value = getattr(config, name)
        written = WRITERS.get(name, _plain_or_none)(value)
        if (written is None and value is not None) or _imports(written):
            given[name] = (
                f"the function {value.__name__}" if inspect.isfunction(value) else repr(value)
            )
        else:
            settings[name] = written
    return settings, given


def _require_given(path: object, missing: Mapping[str, str], given: Mapping[str, object]) -> None:
    """ArgumentError that names what has to be given to load an agent, and is not."""
    for name, what in missing.items():
        if name not in given:
            expected = f"the {name.replace('_', ' ')} that {path} was saved with, {what}"
            raise ArgumentError(name, expected, None)


def _imports(written: Any) -> bool:
    """Whether a setting names a module to import: a file must not make its reader run that."""
    name = written.get("name") if isinstance(written, Mapping) else written
    return isinstance(name, str) and is_reference(name)


def _plain_or_none(value: Any) -> Any:
    written = plain(value)
    return written if is_plain(written) else None


def _kernel(value: Any) -> str | None:
    """The kernel's text, if that parses to the same kernel."""
    if value is None:
        return None
    try:
        return str(value) if str(kernel(str(value))) == str(value) else None
    except KernelMDPError:
        return None


def _confidence(value: Any) -> Any:
    if isinstance(value, Confidence):
        return {"name": "valid"} | plain(value)
    return None if isinstance(value, ConfidenceRule) else _plain_or_none(value)


def _planner(value: Any) -> Any:
    """Name and fields of a registered planner, if the fields are text and numbers."""
    if not isinstance(value, Planner):
        return _plain_or_none(value)
    name = PLANNERS.name_of(type(value))
    if name is None:
        return None
    fields = {"name": name} | plain(value)
    return fields if is_plain(fields) and _flat_fields(fields) else None


def _flat_fields(fields: Mapping[str, Any]) -> bool:
    """Whether no field is an object with fields of its own, which a name does not make again."""
    return not any(isinstance(field, Mapping) for field in fields.values())


def _learner(value: Any) -> Any:
    """Name and changed settings of the fitted learner, if they are text and numbers."""
    if not isinstance(value, Learner):
        return _plain_or_none(value)
    if not isinstance(value, FittedKernels):
        return None
    default = FittedSettings()
    changed = {
        name: _kernel(part) if name.endswith("_kernel") else plain(part)
        for name in default.meanings()
        if (part := getattr(value.settings, name)) is not getattr(default, name)
        and part != getattr(default, name)
    }
    return {"name": "fitted"} | changed if is_plain(changed) else None


def _prior(value: Any) -> Any:
    """The name of a prior, or its description unless a part of it is a function."""
    if not isinstance(value, Prior):
        return _plain_or_none(value)
    written = plain(value.description())
    return None if "a function" in written.values() else written


#: How settings are written that are more than text and numbers.
WRITERS: dict[str, Callable[[Any], Any]] = {
    "reward": lambda value: value if isinstance(value, str) else None,
    "reward_kernel": _kernel,
    "transition_kernel": _kernel,
    "confidence": _confidence,
    "planner": _planner,
    "learner": _learner,
    "prior": _prior,
}
