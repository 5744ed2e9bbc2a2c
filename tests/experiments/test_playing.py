"""Playing what was learned, and drawing it."""

import numpy as np
import pytest
from PIL import Image

import kernelmdp as km
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments import RunConfig, read_config, run
from kernelmdp.experiments.playback import draw_episode, play_saved
from kernelmdp.experiments.run import load_agent_of_run
from kernelmdp.planners import MPCPlanner


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("run") / "pendulum"
    run(RunConfig("Pendulum-v1", "random", env_options={"horizon": 5}), place, episodes=1)
    return place


def test_a_saved_agent_plays(folder):
    agent, episodes = play_saved(folder, episodes=2, seed=0)
    assert agent.name == "random"
    assert [len(episode.rewards) for episode in episodes] == [5, 5]
    again = play_saved(folder, episodes=2, seed=0)[1]
    np.testing.assert_array_equal(episodes[1].states, again[1].states)


def test_it_is_drawn(folder, tmp_path):
    agent = load_agent_of_run(read_config(folder), folder)
    draw_episode(agent, tmp_path / "seen" / "it.gif", seed=0)
    with Image.open(tmp_path / "seen" / "it.gif") as picture:
        assert picture.n_frames >= 2
    with pytest.raises(ArgumentError, match=r"ends in \.gif"):
        draw_episode(agent, tmp_path / "it.png", seed=0)


def test_ours_are_drawn_too(tmp_path):
    planner = MPCPlanner(
        horizon=3, samples=12, elites=3, iterations=1, first_rounds=1, ilqr_iterations=1
    )
    agent = km.Random(km.make("cartpole-swingup", horizon=5), kernel="auto", planner=planner)
    draw_episode(agent, tmp_path / "it.gif", seed=0)
    assert (tmp_path / "it.gif").stat().st_size > 0


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(ArgumentError, match=r"config\.toml"):
        play_saved(tmp_path, episodes=1, seed=0)
