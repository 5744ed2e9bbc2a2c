"""Runs on disk, made up: what ``kmdp run`` leaves, without an agent."""

import json

import numpy as np

from kernelmdp.experiments.toml_writer import to_toml
from kernelmdp.settings import nest
from tests.columns import COLUMNS


def store(
    place,
    *,
    env="line",
    agent="psrl",
    seed=0,
    episodes=6,
    words=None,
    options=None,
    known=True,
    bound=None,
    size=1.0,
):
    """A run whose cumulative regret is ``size``·(1 + seed)·√episode, and the columns it has."""
    place.mkdir(parents=True)
    number = np.arange(1, episodes + 1)
    total = size * (1 + seed) * np.sqrt(number)
    columns = {name: np.full(episodes, np.nan) for name in COLUMNS}
    columns |= {
        "episode": number,
        "return": 10 - np.diff(total, prepend=0),
        "gain_reward": np.log1p(number),
        "gain_transition": 2 * np.log1p(number),
        "width_reward": 1 / number,
        "width_transition": 2 / number,
        "plan_seconds": np.full(episodes, 0.002),
        "update_seconds": np.full(episodes, 0.001),
    }
    if known:
        columns |= {
            "optimal_value": np.full(episodes, 10.0),
            "regret": np.diff(total, prepend=0),
            "cumulative_regret": total,
            "covered_reward": np.ones(episodes),
            "covered_transition": (number > 1).astype(float),
        }
    rows = [",".join(repr(float(columns[name][i])) for name in COLUMNS) for i in range(episodes)]
    (place / "episodes.csv").write_text("\r\n".join([",".join(COLUMNS), *rows, ""]), newline="")
    theorem = "not covered: made up" if bound is None else "Theorem 1, improved, for all T"
    lines = [
        "[run]",
        f"env = {json.dumps(env)}",
        f"agent = {json.dumps(agent)}",
        f"seed = {seed}",
        to_toml({"run": {"env_options": options or {}, "settings": nest(words or {})}}),
        "[theory]",
        f"bound = {json.dumps(theorem)}",
        f"bounded = {json.dumps(bound is not None)}",
        "[versions]",
        'kernelmdp = "0.0.9"',
    ]
    (place / "config.toml").write_text("\n".join(lines) + "\n")
    if bound is not None:
        names = "episode,bound,trivial,maximum_gain_reward,maximum_gain_transition"
        text = "\n".join([names, f"1,{bound},9,3,4", f"{episodes},{2 * bound},99,30,40", ""])
        (place / "bound.csv").write_text(text)
    return columns


def store_maps(place, dimension=1, **names):
    """Maps after 0, 2 and 6 episodes; the value is the state's number plus ten a frame."""
    axes = [np.linspace(-1, 1, 5)] * dimension
    states = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dimension)
    layers = np.arange(len(states))[None, :] + 10.0 * np.arange(3)[:, None]
    np.savez(
        place / "maps.npz",
        episodes=[0, 2, 6],
        states=states,
        names=["planned value", "mean reward"],
        layers=np.stack([layers, -layers], axis=1),
        visited=states[:4] / 2,
        visited_episode=[1, 2, 3, 4],
        **names,
    )
