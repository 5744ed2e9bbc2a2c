"""Maps of a stored run: what the agent of that time believed and planned."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp.confidence import NO_THEOREM
from kernelmdp.experiments import Result, RunConfig, Table
from kernelmdp.experiments.state_maps import write_maps
from kernelmdp.experiments.toml_writer import to_toml
from kernelmdp.report.maps import read_maps

SEEN = 3


def store(config, place):
    """The agent, told some episodes, and what a run of them would have left."""
    agent, rng = config.make_agent(), np.random.default_rng(0)
    problem = agent.problem
    H, m, q = problem.horizon, problem.states.dimension, problem.actions.dimension
    for _ in range(SEEN):
        states, actions = rng.uniform(-1, 1, (H + 1, m)), rng.uniform(-1, 1, (H, q))
        agent.tell(states, actions, rng.normal(size=H), states[1:] + 0.01)
    place.mkdir()
    agent.save(place / "checkpoint")
    rows = [{"episode": number, "plan_seconds": 0.01} for number in range(1, SEEN + 1)]
    Result("", "", NO_THEOREM, Table(rows)).save(place / "episodes.csv")
    words = [f"env = {json.dumps(config.env)}", f"agent = {json.dumps(config.agent)}"]
    words += [f"seed = {config.seed}", to_toml({"run": {"env_options": config.env_options}})]
    (place / "config.toml").write_text("\n".join(["[run]", *words, ""]))
    return agent


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs") / "greedy"
    agent = store(RunConfig("rkhs", "greedy", 0, {"horizon": 3}), place)
    assert write_maps(place) is None
    return place, agent


def test_the_last_map_is_that_of_the_agent(run):
    place, agent = run
    maps = read_maps(place)
    assert maps.episodes.tolist() == [0, 1, 2, 3]
    policy, state = agent.ask(agent.history[-1].states[0]), maps.states[20]
    found = dict(zip(maps.names, maps.layers[-1, :, 20], strict=True))
    action = policy(state, 0)
    assert found["policy, action"] == pytest.approx(action[0])
    assert maps.axis_names == ("state",)
    assert "mean change of state" in found
    assert found["planned value"] == pytest.approx(agent.planned.value(state))
    point = jnp.asarray(np.concatenate([state, action])[None, :])
    mean, deviation = agent.beliefs.predict_reward(point)
    assert found["mean reward"] == pytest.approx(float(mean[0]))
    assert found["standard deviation of the reward"] == pytest.approx(float(deviation[0]))


def test_what_was_visited(run):
    place, agent = run
    maps = read_maps(place)
    seen = np.concatenate([told.states[:-1] for told in agent.history])
    np.testing.assert_array_equal(maps.visited, seen)
    assert maps.visited_episode.tolist() == [1] * 3 + [2] * 3 + [3] * 3


def test_maps_are_made_once_and_again_when_broken(run):
    path = run[0] / "maps.npz"
    before, maps = path.stat().st_mtime_ns, read_maps(run[0])
    assert write_maps(run[0]) is None
    assert path.stat().st_mtime_ns == before
    path.write_bytes(path.read_bytes()[:100])
    assert write_maps(run[0]) is None
    np.testing.assert_array_equal(read_maps(run[0]).layers, maps.layers)


def test_two_coordinates_without_posteriors(tmp_path):
    store(RunConfig("lqr-2d", "certainty-equivalence"), tmp_path / "run")
    assert write_maps(tmp_path / "run") is None
    maps = read_maps(tmp_path / "run")
    assert maps.shape == (31, 31)
    assert maps.names[0] == "planned value"
    assert np.isfinite(maps.layers).all()


def test_why_there_are_none(tmp_path):
    store(RunConfig("rkhs", "random", 0, {"horizon": 3}), tmp_path / "run")
    assert write_maps(tmp_path / "run") == "random neither learns nor plans"
    (tmp_path / "run" / "checkpoint").unlink()
    assert write_maps(tmp_path / "run") == "no checkpoint"
