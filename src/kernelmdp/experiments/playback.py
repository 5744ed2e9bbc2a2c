"""Play what a saved agent has learned: returns, and an animation."""

import dataclasses
import pathlib
from typing import Any

import gymnasium
import numpy as np
from PIL import Image

from kernelmdp.agents import Agent, episode_key
from kernelmdp.errors import ArgumentError, KernelMDPError
from kernelmdp.experiments.run import load_agent_of_run
from kernelmdp.experiments.run_files import read_config
from kernelmdp.mdp import Episode

#: Speed of an animation. A higher rate plays the same episode faster.
FRAMES_PER_SECOND = 30
#: Most frames of an animation: 20 seconds. Of a longer episode, every n-th frame is used.
MAX_FRAMES = 600


def play_saved(folder: Any, *, episodes: int, seed: int) -> tuple[Agent, list[Episode]]:
    """Load the agent of a run and play episodes of its greedy policy.

    Args:
        folder: The run's folder.
        episodes: The number of episodes.
        seed: The seed of the first episode. Each further episode adds 1.

    Returns:
        The agent and the episodes. The agent does not learn from them.
    """
    agent = load_agent_of_run(read_config(folder), pathlib.Path(folder))
    return agent, [play_greedy(agent, seed=seed + number) for number in range(episodes)]


def play_greedy(agent: Agent, *, seed: int) -> Episode:
    """Play one episode of the agent's greedy policy, without exploration.

    Args:
        agent: The agent. It does not learn from the episode.
        seed: Decides the start and the noise.

    Returns:
        The episode.
    """
    policy = agent.plan_greedy(key=episode_key(agent.seed, agent.episode)).policy
    system: Any = agent.system
    return system.play_seeded(policy, seed=seed)


def draw_episode(agent: Agent, path: Any, *, seed: int) -> Episode:
    """Play one episode of the agent's greedy policy and draw it as a GIF.

    Args:
        agent: The agent. It does not learn from the episode.
        path: The file to write. Its name ends in ``.gif``.
        seed: Decides the start and the noise.

    Returns:
        The episode.

    Raises:
        ArgumentError: If the file's name does not end in ``.gif``, the file cannot be written, or
            the environment has no picture.
    """
    target = pathlib.Path(path)
    if target.suffix.lower() != ".gif":
        raise ArgumentError("render", "a file that ends in .gif", str(path))
    task: Any = agent.task
    if hasattr(task, "drawing"):
        if task.drawing is None:
            raise ArgumentError("render", "an environment that has a picture", task.name)
        episode = play_greedy(agent, seed=seed)
        frames = [task.drawing(state) for state in np.asarray(episode.states)]
    else:
        episode, frames = _gymnasium_frames(agent, seed)
    _write_gif(frames, target)
    return episode


def _gymnasium_frames(agent: Agent, seed: int) -> tuple[Episode, list[np.ndarray]]:
    """Play in a copy of a Gymnasium environment that renders its frames."""
    task: Any = agent.task
    if task.env.spec is None:
        raise ArgumentError("render", "an environment with an id", task.name)
    try:
        env = gymnasium.make(task.env.spec.id, render_mode="rgb_array")
    except (gymnasium.error.Error, TypeError) as error:
        raise KernelMDPError(f"render: {task.name} does not draw ({error})") from None
    frames: list[np.ndarray] = []
    policy = agent.plan_greedy(key=episode_key(agent.seed, agent.episode)).policy.player()

    def rendering_policy(state: np.ndarray, period: int) -> Any:
        frames.append(np.asarray(env.render()))
        return policy(state, period)

    episode = dataclasses.replace(task, env=env).play(rendering_policy, seed=seed)
    frames.append(np.asarray(env.render()))
    env.close()
    return episode, frames


def _write_gif(frames: list[np.ndarray], path: pathlib.Path) -> None:
    every = -(-len(frames) // MAX_FRAMES)
    images = [Image.fromarray(frame).convert("P") for frame in frames[::every]]
    duration = 1000 // FRAMES_PER_SECOND
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        images[0].save(path, save_all=True, append_images=images[1:], duration=duration, loop=0)
    except OSError as error:
        raise ArgumentError("render", "a file that can be written", f"{path} ({error})") from None
