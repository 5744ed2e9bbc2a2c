"""Agents on disk: they go on bit for bit, and what is no saved agent of this problem is refused."""

import io
import json
import pickle
import zipfile

import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.archive import ARRAYS
from kernelmdp.errors import ArgumentError, CheckpointError
from tests.agents import tiny


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A greedy agent after two episodes, and its file."""
    agent = tiny.make(seed=4)
    agent.learn(2, progress=False)
    place = tmp_path_factory.mktemp("saved") / "agent"
    agent.save(place)
    return agent, place


def rewritten(source, target, *, words=None, arrays=None):
    """A copy of a saved agent with some of it changed."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "agent.json" and words is not None:
                content = json.dumps(words(json.loads(content)))
            if name in (arrays or {}):
                content = arrays[name]
            if content is not None:
                new.writestr(name, content)
    return target


def npy(array, **words):
    buffer = io.BytesIO()
    np.save(buffer, array, **words)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", [km.GPUCRL, km.PSRL], ids=lambda kind: kind.name)
def test_a_loaded_agent_goes_on_as_if_it_had_never_stopped(tmp_path, kind):
    whole, stopped = (tiny.make(kind, seed=2) for _ in range(2))
    whole.learn(4, progress=False)
    stopped.learn(2, progress=False)
    stopped.save(tmp_path / "agent")
    loaded = km.load(tmp_path / "agent")  # the environment is made anew from its name
    assert type(loaded) is kind
    assert loaded.task is not tiny.environment()
    loaded = km.load(tmp_path / "agent", task=tiny.environment())
    loaded.learn(2, progress=False)
    assert tiny.same(loaded, whole)
    assert not list(tmp_path.glob("*.part"))


def test_words_are_kept(tmp_path):
    agent = tiny.make(
        km.GPUCRL,
        reward="known",
        transition_kernel="se(0.5)",
        confidence=km.Confidence(delta=0.3, scale=0.5),
        planner=km.GridPlanner(state_points=(9,), action_points=3, optimism="bonus"),
    )
    agent.save(tmp_path / "agent")
    loaded = km.load(tmp_path / "agent", task=tiny.environment())
    assert loaded.episode == 0
    assert loaded.description() == agent.description()
    assert loaded.planner == agent.planner
    assert loaded.confidence == agent.confidence


def test_the_file_is_json_and_arrays(saved):
    _, place = saved
    with zipfile.ZipFile(place) as file:
        observations = [f"{name}.npy" for name in ARRAYS]
        states = [name for name in file.namelist() if name.startswith("newest/")]
        assert sorted(file.namelist()) == sorted(["agent.json", *observations, *states])
        assert "newest/transition0_root.npy" in states
        assert json.loads(file.read("agent.json"))["agent"] == "greedy"
        for name in file.namelist():
            if name in observations:
                assert len(np.load(io.BytesIO(file.read(name)), allow_pickle=False)) == 2


class Trap:
    """Code that would run if the file were unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("the file was unpickled",))


def test_nothing_in_a_file_is_run(saved, tmp_path):
    trap = np.array([Trap()], dtype=object)
    bad = rewritten(saved[1], tmp_path / "bad", arrays={"states.npy": npy(trap, allow_pickle=True)})
    with pytest.raises(CheckpointError, match=r"not a saved agent.*allow_pickle=False"):
        km.load(bad)
    (tmp_path / "pickle").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(CheckpointError, match="not a saved agent"):
        km.load(tmp_path / "pickle")


def test_files_that_are_no_agents(saved, tmp_path):
    with pytest.raises(CheckpointError, match="a folder without a file 'checkpoint'"):
        km.load(tmp_path)
    with pytest.raises(CheckpointError, match="there is no such file"):
        km.load(tmp_path / "nothing")
    whole = saved[1].read_bytes()
    foreign = {"text": b"a,b\n1,2\n", "empty": b""}
    foreign |= {f"cut at {share}": whole[: int(share * len(whole))] for share in (0.1, 0.5, 0.99)}
    for name, content in foreign.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CheckpointError, match=f"{name}: not a saved agent of kernelmdp"):
            km.load(tmp_path / name)
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("letter.txt", "hello")
    with pytest.raises(CheckpointError, match=r"not a saved agent.*agent\.json"):
        km.load(tmp_path / "zip")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (lambda d: d | {"version": 1}, "saved in format 1, this library reads 3"),
        (lambda d: d | {"format": "cake"}, "not a saved agent"),
        (lambda d: [d], "not a saved agent"),
        (lambda d: d | {"agent": "genius"}, "the description is incomplete.*genius"),
        (lambda d: {k: v for k, v in d.items() if k != "seed"}, "incomplete.*seed"),
        (lambda d: d | {"settings": None}, "incomplete"),
        (lambda d: d | {"totals": {"regret": "cake"}}, "incomplete.*cake"),
    ],
    ids=["version", "format", "list", "agent", "seed", "settings", "totals"],
)
def test_descriptions_that_do_not_fit(saved, tmp_path, words, message):
    bad = rewritten(saved[1], tmp_path / "bad", words=words)
    with pytest.raises(CheckpointError, match=message):
        km.load(bad, task=tiny.environment())


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (npy(np.zeros((2, tiny.H + 1))), "rewards: expected shape"),
        (npy(np.zeros((1, tiny.H))), "arrays of different numbers of episodes"),
        (b"", "not a saved agent"),
    ],
    ids=["shape", "count", "empty"],
)
def test_arrays_that_do_not_fit(saved, tmp_path, array, message):
    bad = rewritten(saved[1], tmp_path / "bad", arrays={"rewards.npy": array})
    with pytest.raises((CheckpointError, ArgumentError), match=message):
        km.load(bad, task=tiny.environment())


def test_another_problem_is_refused(saved, tmp_path):
    with pytest.raises(CheckpointError, match=r"another problem: name was 'rkhs', here.*'angle"):
        km.load(saved[1], task=tiny.problem())
    other = rewritten(
        saved[1], tmp_path / "h", words=lambda d: d | {"problem": d["problem"] | {"horizon": 7}}
    )
    with pytest.raises(CheckpointError, match="another problem: horizon was 7, here it is 3"):
        km.load(other, task=tiny.environment())

    def kernel(d):
        return d | {"settings": d["settings"] | {"reward_kernel": "linear"}}

    other = rewritten(saved[1], tmp_path / "k", words=kernel)
    with pytest.raises(
        CheckpointError, match=r"reward_kernel was 'se\(0\.5\)', here it is 'linear"
    ):
        km.load(other, task=tiny.environment())


def test_what_a_file_cannot_hold_has_to_be_given(tmp_path):
    def reward(z):
        return jnp.cos(z[:, 0])

    agent = tiny.make(km.Random, reward=reward, noise=0.1)
    agent.save(tmp_path / "agent")
    with pytest.raises(ArgumentError, match=r"reward: expected .*the function reward"):
        km.load(tmp_path / "agent", task=tiny.environment())
    loaded = km.load(tmp_path / "agent", task=tiny.environment(), reward=reward)
    assert loaded.description() == agent.description()


def test_a_task_that_has_no_name_has_to_be_given(saved, tmp_path):
    unnamed = rewritten(saved[1], tmp_path / "bad", words=lambda d: d | {"task": None})
    with pytest.raises(ArgumentError, match=r"task: expected the task .*rkhs"):
        km.load(unnamed)
    assert tiny.same(km.load(unnamed, task=tiny.environment()), saved[0])
