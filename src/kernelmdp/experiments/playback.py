"""What a saved agent has learned, played: returns, and a moving picture."""

import dataclasses
import pathlib
from typing import Any

import gymnasium
import numpy as np
from PIL import Image

from kernelmdp.agents import Agent, episode_key
from kernelmdp.errors import ArgumentError, KernelMDPError
from kernelmdp.experiments.run import load_run
from kernelmdp.experiments.run_files import read_config
from kernelmdp.mdp import Episode

#: Frames a second, and the most of them that are kept.
RATE, FRAMES = 30, 600


def play_saved(folder: Any, *, episodes: int, seed: int) -> tuple[Agent, list[Episode]]:
    """The agent of a run's folder, and episodes of its best policy, exploration aside."""
    agent = load_run(read_config(folder), pathlib.Path(folder))
    return agent, [play_best(agent, seed=seed + number) for number in range(episodes)]


def play_best(agent: Agent, *, seed: int) -> Episode:
    """One episode of what the agent holds for best; nothing is learned from it."""
    policy = agent.plan_greedy(key=episode_key(agent.seed, agent.episode)).policy
    system: Any = agent.system
    return system.play_seeded(policy, seed=seed)


def draw_episode(agent: Agent, path: Any, *, seed: int) -> Episode:
    """One episode of the best policy as a GIF."""
    place = pathlib.Path(path)
    if place.suffix.lower() != ".gif":
        raise ArgumentError("render", "a file that ends in .gif", str(path))
    task: Any = agent.task
    if hasattr(task, "drawing"):
        if task.drawing is None:
            raise ArgumentError("render", "an environment that has a picture", task.name)
        episode = play_best(agent, seed=seed)
        frames = [task.drawing(state) for state in np.asarray(episode.states)]
    else:
        episode, frames = _rendered(agent, seed)
    _write(frames, place)
    return episode


def _rendered(agent: Agent, seed: int) -> tuple[Episode, list[np.ndarray]]:
    """Frames of Gymnasium's own, from an environment made again so that it draws."""
    task: Any = agent.task
    if task.env.spec is None:
        raise ArgumentError("render", "an environment with an id", task.name)
    try:
        env = gymnasium.make(task.env.spec.id, render_mode="rgb_array")
    except (gymnasium.error.Error, TypeError) as error:
        raise KernelMDPError(f"render: {task.name} does not draw ({error})") from None
    frames: list[np.ndarray] = []
    policy = agent.plan_greedy(key=episode_key(agent.seed, agent.episode)).policy.player()

    def watched(state: np.ndarray, period: int) -> Any:
        frames.append(np.asarray(env.render()))
        return policy(state, period)

    episode = dataclasses.replace(task, env=env).play(watched, seed=seed)
    frames.append(np.asarray(env.render()))
    env.close()
    return episode, frames


def _write(frames: list[np.ndarray], place: pathlib.Path) -> None:
    every = -(-len(frames) // FRAMES)
    images = [Image.fromarray(frame).convert("P") for frame in frames[::every]]
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        images[0].save(
            place, save_all=True, append_images=images[1:], duration=1000 // RATE, loop=0
        )
    except OSError as error:
        raise ArgumentError("render", "a file that can be written", f"{place} ({error})") from None
