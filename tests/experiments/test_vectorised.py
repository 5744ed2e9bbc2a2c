"""Many runs in one program have the numbers of runs that are played one by one."""

import dataclasses
import sys
from concurrent.futures import Future

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
import kmdp as cli
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments import RunConfig, local_backend, vectorised
from kernelmdp.experiments.run import run as play_run
from kernelmdp.experiments.study_file import read_plan
from kernelmdp.experiments.varying_numbers import VaryingNumbers
from kernelmdp.experiments.vectorised import play_together
from kernelmdp.experiments.vectorised_trials import groups_of
from kernelmdp.mdp import Categorical, Gaussian
from kernelmdp.numerics.unchanged_leaves import changed_leaves

# Types promise Python numbers. Inside compiled programs these are arrays.
pytestmark = pytest.mark.usefixtures("unchecked")
#: Columns that depend on the clock.
SECONDS = ("plan_seconds", "update_seconds")


def agents_of(name, agent, seeds, **settings):
    return [RunConfig(name, agent, seed=seed, settings=settings).make_agent() for seed in seeds]


def assert_same_numbers(run, result, tolerance):
    for column in set(result.episodes.columns) - set(SECONDS):
        numbers = [row.get(column, np.nan) for row in run.rows]
        np.testing.assert_allclose(
            numbers, result.episodes[column], rtol=tolerance, atol=tolerance, err_msg=column
        )


# In ``rkhs`` and ``tabular-random``, the seed also draws the environment: rewards, transitions,
# norms, Lipschitz constant and reward range differ from run to run.
@pytest.mark.parametrize(
    ("name", "agent"),
    [
        ("rkhs", "gp-ucrl"),
        ("tabular-random", "gp-ucrl"),
        ("tabular-random", "psrl"),
        ("bandit-rkhs", "gp-ucrl"),
        ("lqr-1d", "psrl"),
        ("riverswim", "random"),
    ],
)
def test_every_column_is_that_of_a_run_of_its_own(name, agent):
    seeds, episodes = (0, 3), 12
    runs = play_together(agents_of(name, agent, seeds), episodes)
    for run, alone in zip(runs, agents_of(name, agent, seeds), strict=True):
        result = alone.learn(episodes=episodes, progress=False)
        assert_same_numbers(run, result, 1e-6)
        assert run.totals["regret"] == pytest.approx(result.regret, abs=1e-6)
        states = np.stack([episode.states for episode in run.history])
        np.testing.assert_allclose(states, [each.states for each in alone.history], atol=1e-6)
        leaves, own = jax.tree.leaves(run.state), jax.tree.leaves(alone.state)
        for leaf, expected in zip(leaves, own, strict=True):
            np.testing.assert_allclose(leaf, expected, atol=1e-6)


@pytest.mark.parametrize("episodes", [3, 5])
def test_the_last_state_is_that_after_the_last_episode(monkeypatch, episodes):
    """Segments of two episodes do not fit an odd number of them."""
    monkeypatch.setattr(vectorised, "SEGMENT", 2)
    (run,) = play_together(agents_of("riverswim", "greedy", (0,)), episodes)
    (alone,) = agents_of("riverswim", "greedy", (0,))
    alone.learn(episodes=episodes, progress=False)
    assert len(run.rows) == len(run.history) == episodes
    pairs = zip(jax.tree.leaves(run.state), jax.tree.leaves(alone.state), strict=True)
    for leaf, expected in pairs:
        np.testing.assert_allclose(leaf, expected, atol=1e-9)


def test_starts_that_differ_are_taken_from_each_run():
    starts, result = ([0.5], [-0.5]), []
    agents = []
    for start in starts:
        environment = km.make("rkhs", seed=0)
        agents.append(km.Random(dataclasses.replace(environment, start=start), seed=0))
    for run, start in zip(play_together(agents, 2), starts, strict=True):
        result.append(run.history[0].states[0].tolist() == start)
    assert all(result)


def started_at(position):
    """An environment whose start is a function, with its number in a default value."""
    environment = km.make("rkhs", seed=0)
    start = lambda key, x=position: jnp.full(1, x) + 0 * jax.random.uniform(key)  # noqa: E731
    return dataclasses.replace(environment, start=start)


def test_starts_may_be_drawn_and_may_be_whole_numbers():
    def drawn(key):
        return jax.random.randint(key, (1,), 0, 6)

    environment = dataclasses.replace(km.make("riverswim"), start=drawn)
    runs = play_together([km.Random(environment, seed=seed) for seed in (0, 1)], 4)
    for seed, run in enumerate(runs):
        result = km.Random(environment, seed=seed).learn(episodes=4, progress=False)
        assert_same_numbers(run, result, 1e-9)


class Counting(km.Greedy):
    """Remembers how many plans it made."""

    name = "counting"
    plans = None

    def plan(self, *, key):
        self.plans = [self.plans]
        return super().plan(key=key)


def test_an_agent_that_remembers_plans_is_refused():
    agent = Counting("riverswim", seed=0)
    with pytest.raises(ArgumentError, match="without a memory"):
        play_together([agent], 2)


def test_settings_that_are_numbers_share_a_program():
    settings = [{"scale": 0.1, "delta": 0.1}, {"scale": 0.3, "delta": 0.01}]

    def agents():
        return [
            km.GPUCRL("riverswim", seed=seed, confidence={"name": "valid", **each})
            for seed, each in enumerate(settings)
        ]

    runs = play_together(agents(), 8)
    for run, alone in zip(runs, agents(), strict=True):
        assert_same_numbers(run, alone.learn(episodes=8, progress=False), 1e-9)


def test_the_agents_stay_as_they_are():
    agents = agents_of("riverswim", "random", (0, 1))
    systems = [agent.system for agent in agents]
    play_together(agents, 3)
    assert [agent.episode for agent in agents] == [0, 0]
    assert [agent.system for agent in agents] == systems


@pytest.mark.parametrize(
    ("agents", "reason"),
    [
        (lambda: [km.Frugal("riverswim")], "without a memory"),
        (lambda: [km.PSRL("rkhs", kernel="auto")], "before the first data"),
        (lambda: [km.PSRL("Pendulum-v1")], "environments of this library"),
        (lambda: [km.GPUCRL("riverswim", confidence="paper")], "'realised'"),
        (lambda: [km.PSRL("riverswim", planner="paper")], "one planner"),
        (lambda: [km.PSRL("riverswim", update="step")], "by the episode"),
        (lambda: [km.PSRL("riverswim"), km.PSRL("rkhs")], "numbers only"),
        (lambda: [km.PSRL("rkhs", noise=noise) for noise in (0.1, 0.1001)], "numbers only"),
        (lambda: [km.PSRL("rkhs", prior="student-t")], "can be compiled"),
        (lambda: [km.Random(started_at(x)) for x in (0.2, 0.8)], "numbers only"),
    ],
)
def test_what_cannot_be_compiled_is_refused_with_a_reason(agents, reason):
    with pytest.raises(ArgumentError, match=reason):
        play_together(agents(), 2)


STUDY = {
    "name": "small",
    "episodes": 6,
    "seeds": 3,
    "environments": [{"name": "riverswim", "options": {"horizon": 4}}],
    "agents": [{"name": "psrl"}],
}


def test_a_vectorised_study_has_the_folders_of_a_study(tmp_path):
    together = km.study(STUDY, out=tmp_path / "a", vectorise=True, progress=False)
    alone = km.study(STUDY, out=tmp_path / "b", progress=False)
    assert not together.failed
    for folder, expected in zip(together.trials, alone.trials, strict=True):
        assert folder.name == expected.name
        assert {path.name for path in folder.iterdir()} == {
            path.name for path in expected.iterdir()
        }
        tables = [
            np.genfromtxt(each / "episodes.csv", delimiter=",") for each in (folder, expected)
        ]
        clock = [name in SECONDS for name in header_of(folder)]
        np.testing.assert_allclose(*(table[:, ~np.array(clock)] for table in tables), atol=1e-9)
        assert (folder / "config.toml").read_text() == (expected / "config.toml").read_text()
    # More episodes continue runs that were played together, with the same numbers.
    longer = STUDY | {"episodes": 8}
    for folder in ("a", "b"):
        config = RunConfig("riverswim", "psrl", seed=1, env_options={"horizon": 4})
        trial = tmp_path / folder / "trials" / together.trials[1].name
        play_run(config, trial, episodes=longer["episodes"])
    last = [
        (tmp_path / each / "trials" / together.trials[1].name / "episodes.csv").read_text()
        for each in ("a", "b")
    ]
    numbers = [[float(x) for x in text.strip().splitlines()[-1].split(",")[:7]] for text in last]
    np.testing.assert_allclose(*numbers, atol=1e-9)


def header_of(folder):
    return (folder / "episodes.csv").read_text().splitlines()[0].split(",")


class ThisProcess:
    """In place of the pool of workers: plays at once. Workers would import and compile anew."""

    def __init__(self, **_):
        pass

    def submit(self, play, *words):
        future = Future()
        future.set_result(play(*words))
        return future

    def shutdown(self, **_):
        pass


@pytest.fixture
def without_workers(monkeypatch):
    monkeypatch.setattr(local_backend, "ProcessPoolExecutor", ThisProcess)


@pytest.mark.usefixtures("without_workers")
def test_trials_that_need_different_programs_are_played_in_parts(tmp_path):
    grid = {"name": "random", "grid": {"confidence.shape": ["trace", "box"]}}
    result = km.study(
        STUDY | {"agents": [grid], "seeds": 2}, out=tmp_path, vectorise=True, progress=False
    )
    assert len(result.trials) == 4
    assert not result.failed


@pytest.mark.usefixtures("without_workers")
def test_a_trial_that_cannot_be_compiled_fails_with_one_sentence(tmp_path, capsys, monkeypatch):
    study = STUDY | {"agents": [{"name": "frugal"}], "seeds": 1}
    text = tmp_path / "study.toml"
    text.write_text(
        'name = "s"\nepisodes = 2\nseeds = 1\n[[environments]]\nname = "riverswim"\n'
        '[[agents]]\nname = "frugal"\n'
    )
    result = km.study(study, out=tmp_path / "a", vectorise=True, progress=False)
    (failed,) = result.failed.values()
    assert "without a memory" in failed.error
    assert not failed.details
    words = ["kmdp", "study", str(text), "--vectorised", "--out", str(tmp_path / "b")]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as exit_info:
        cli.main()
    assert exit_info.value.code == 2
    assert "without a memory" in capsys.readouterr().err


def test_groups_have_one_kind_and_there_is_one_for_each_worker():
    plan = read_plan(STUDY | {"seeds": 5, "agents": [{"name": "psrl"}, {"name": "random"}]})
    groups = groups_of(plan.trials, 2)
    assert sorted(len(group) for group in groups) == [2, 2, 3, 3]
    assert all(len({trial.config.agent for trial in group}) == 1 for group in groups)


def test_varying_numbers_are_found_and_filled():
    states = km.FiniteSet([[0.0], [1.0]])
    tables = [Categorical(states, variance=variance) for variance in (0.1, 0.2)]
    first = {"noise": tables[0], "x": (jnp.ones(2), [1.0]), "name": "a"}
    second = {"noise": tables[1], "x": (jnp.zeros(2), [1.0]), "name": "a"}
    numbers = VaryingNumbers([first, second])
    assert [path[0] for path in numbers.paths] == ["noise", "x"]
    filled = numbers.filled([0.3, jnp.full(2, 7.0)])
    assert np.isnan(filled["noise"].variance)  # noise is a constant of programs
    np.testing.assert_array_equal(filled["x"][0], [7.0, 7.0])
    assert first["x"][0][0] == 1.0
    others = (
        first | {"x": (jnp.ones(3), [1.0])},
        first | {"name": "b"},
        first | {"noise": Gaussian(0.1)},
    )
    for other in others:
        with pytest.raises(ArgumentError, match="numbers only"):
            VaryingNumbers([first, other])


def test_unchanged_leaves_are_seen_through_compiled_functions():
    @jax.jit
    def inner(tree):
        return {"same": tree["same"], "new": tree["new"] * 1.0, "swapped": tree["same"]}

    tree = {name: jnp.ones(2) for name in ("same", "new", "swapped")}
    assert changed_leaves(inner, tree) == [True, False, True]
    assert changed_leaves(lambda tree: jax.jit(inner)(tree), tree) == [True, False, True]
