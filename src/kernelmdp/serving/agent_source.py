"""Where the agent of a server comes from: a plant's description, a saved agent, or a run."""

import json
import pathlib

from kernelmdp import archive
from kernelmdp.agents import Agent
from kernelmdp.agents.saving import settings_to_save
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.run import load_agent_of_run
from kernelmdp.experiments.run_files import read_config
from kernelmdp.serving.plant import Plant


def open_agent(source: pathlib.Path) -> Agent:
    """Make or load the agent of a server.

    Args:
        source: A TOML file that describes a plant, the folder of a run, or a saved agent whose file
            names its task.

    Returns:
        The agent.

    Raises:
        ArgumentError: If there is no such file or folder.

    >>> open_agent(pathlib.Path("plant.toml"))
    Traceback (most recent call last):
    kernelmdp.errors.ArgumentError: source: expected a TOML file, a saved agent or a run, got
    plant.toml, which is not there
    """
    if not source.exists():
        expected = "a TOML file, a saved agent or a run"
        raise ArgumentError("source", expected, f"{source}, which is not there")
    if source.is_dir():
        return load_agent_of_run(read_config(source), source)
    if source.suffix == ".toml":
        return Plant.read(source).make_agent()
    return Agent.load(source)


def reopened(agent: Agent, path: pathlib.Path) -> Agent:
    """Load an agent from the file that a server has saved.

    Args:
        agent: An agent of the same problem and settings.
        path: The file. It may be missing.

    Returns:
        The agent of the file, or the given one if there is no file.

    Raises:
        ArgumentError: If the file is of an agent with another seed or other settings.
    """
    if not path.exists():
        return agent
    saved, asked = archive.read(path)[0], json.loads(json.dumps(agent.description()))
    for name in ("agent", "seed", "settings"):
        if saved.get(name) != asked[name]:
            expected = f"a new folder, or the {name} of {path}, {saved.get(name)}"
            raise ArgumentError("out", expected, asked[name])
    kind, given = type(agent), settings_to_save(agent.config)[1]
    settings = {name: getattr(agent.config, name) for name in given}
    return kind.load(path, task=agent.system.task, agent=kind, **settings)
