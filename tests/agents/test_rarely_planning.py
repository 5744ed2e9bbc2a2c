"""Plans that are kept: the rule, its effects on deviations, files, and what is refused."""

import itertools

import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.agents.rarely_planning import RarelyPlanning
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments import RunConfig, audit, run, run_bound
from kernelmdp.experiments.vectorised import play_together
from kernelmdp.learners.stale_beliefs import advanced, deviation_gains
from kernelmdp.theory.few_plans import most_plans, with_few_plans
from tests.agents import tiny

AGENTS = [km.GPUCRL, km.PSRL]
NAMES = [kind.name for kind in AGENTS]


def make(kind=km.GPUCRL, c=2.0, **settings):
    return tiny.make(kind, seed=3, replan_gain=c, **settings)


@pytest.mark.parametrize("kind", AGENTS, ids=NAMES)
def test_a_plan_is_kept_until_a_gain_has_grown_by_c(kind):
    agent, c = make(kind), 2.0
    plans, gains, last = [], [], 0
    for _ in range(8):
        gains.append(deviation_gains(agent.beliefs))
        agent.learn(1, progress=False)
        plans.append(agent._kept[1])
    for number, (before, after) in enumerate(itertools.pairwise(plans), start=1):
        grown = max(np.subtract(gains[number], gains[last])) > c
        assert (after is not before) == grown
        last = number if grown else last
    made = 1 + sum(a is not b for a, b in itertools.pairwise(plans))
    assert 1 < made < 8
    assert made <= most_plans(deviation_gains(agent.beliefs), c)


def test_stale_deviations_are_at_most_a_factor_larger():
    """The step of the proof: σ before the plan ≤ e^c σ before the episode, at every point."""
    agent, c = make(c=2.0), 2.0
    points = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    ratios = []
    for _ in range(8):
        agent.learn(1, progress=False)
        stale = agent.learner.beliefs(agent._found().state)
        for role, posterior in agent.beliefs.learned.items():
            newest = posterior.predict(points)[1]
            ratios.append(float(np.max(stale.learned[role].predict(points)[1] / newest)))
    assert 1.01 < max(ratios) <= np.exp(c) * (1 + 1e-6)


def test_a_smaller_gain_makes_more_plans_and_none_makes_all():
    made = []
    for c in (1e-9, 1.0, 4.0):
        agent = make(c=c)
        agent.learn(6, progress=False)
        made.append(agent.plans_made)
    assert made[0] == 7  # with that of the next episode
    assert made[0] > made[1] >= made[2] >= 1
    every, none = make(c=1e-9), make(c=None)
    rows = [agent.learn(6, progress=False).episodes["return"] for agent in (every, none)]
    np.testing.assert_array_equal(*rows)
    assert none.plans_made is None


def test_the_column_counts_plans(tmp_path):
    config = RunConfig("riverswim", "gp-ucrl", 0, {}, {"replan_gain": 1.0, "confidence": "valid"})
    run(config, tmp_path, episodes=6)
    counts = km.experiments.replay.read_run(tmp_path).columns["plans"]
    assert counts[0] == 1
    assert set(np.diff(counts)) <= {0.0, 1.0}
    report = audit(tmp_path)
    assert not [check.name for check in report.checks if check.holds is False]


@pytest.mark.parametrize("kind", AGENTS, ids=NAMES)
@pytest.mark.parametrize("asked", [False, True])
def test_a_loaded_agent_keeps_the_same_plan(tmp_path, kind, asked):
    whole, stopped = make(kind, 6.0), make(kind, 6.0)
    whole.learn(7, progress=False)
    stopped.learn(4, progress=False)
    kept = stopped._found().episode
    if asked:
        stopped.ask(stopped.history[0].states[0])
    stopped.save(tmp_path / "agent")
    loaded = km.load(tmp_path / "agent", task=tiny.environment())
    assert loaded._found().episode == kept
    assert kept < 4  # the plan that goes on is an old one
    loaded.learn(3, progress=False)
    assert tiny.same(loaded, whole)
    assert loaded.plans_made == whole.plans_made


def test_a_resumed_run_is_the_same(tmp_path):
    config = RunConfig("riverswim", "gp-ucrl", 1, {}, {"replan_gain": 1.0})
    for name, parts in (("whole", (8,)), ("parts", (3, 8))):
        for episodes in parts:
            run(config, tmp_path / name, episodes=episodes)
    tables = [
        km.experiments.replay.read_run(tmp_path / name).columns for name in ("whole", "parts")
    ]
    for name in ("return", "plans", "planned_value", "width_transition"):
        np.testing.assert_array_equal(tables[0][name], tables[1][name])


def test_random_actions_are_not_kept():
    agent = make(c=100.0, first_episode="random")
    agent.learn(3, progress=False)
    assert agent._found().episode == 1


def test_draws_of_processes_are_planned_anew_when_episodes_double():
    """Nets shrink with the episode of the plan, which must not stay behind."""
    stale = km.learners.stale_beliefs.StaleBeliefs(0, None, (0.0,), 1)
    made = [1]
    for episode in range(1, 40):
        stale = advanced(
            stale, episode=episode, state=None, gains=(0.0,), allowed=1.0, doubles=True
        )
        assert 2 * (stale.episode + 1) > episode + 1
        made.append(stale.plans)
    assert made[-1] <= 1 + np.log2(40)


def test_theorem_1_covers_it_with_the_factor():
    once, kept = (km.GPUCRL("riverswim", confidence="valid", replan_gain=c) for c in (None, 0.5))
    bounds = [run_bound(agent) for agent in (once, kept)]
    assert "Theorem 10" in bounds[1].text
    parts = [bound.at(100).parts for bound in bounds]
    for name in parts[0]:
        factor = np.exp(0.5) if name in ("reward", "transition") else 1.0
        assert parts[1][name] == pytest.approx(factor * parts[0][name])
    assert bounds[1].at(100).at(200).value == pytest.approx(bounds[1].at(200).value)


def test_theorem_3_counts_nets_four_times():
    box = km.join(state=km.Box([0.0], [1.0]), action=km.Box([0.0], [1.0]))
    once = km.theory.theorem3(
        horizon=2, episodes=100, reward_noise=0.1, transition_noise=0.1,
        reward_kernel="se(0.5)", transition_kernel="se(0.5)", domain=box,
    )  # fmt: skip
    few = with_few_plans(once, 0.1)
    assert few.parts["slack"] == pytest.approx(4 * once.parts["slack"])
    assert few.parts["net"] == pytest.approx(4 * once.parts["net"])
    assert few.parts["martingale"] == once.parts["martingale"]
    assert with_few_plans(once, None) is once


def test_posterior_sampling_is_not_covered():
    agent = km.PSRL("gp-prior", replan_gain=0.5)
    assert "kept for several episodes" in str(agent.coverage)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"replan_gain": 0.0}, "replan_gain"),
        ({"replan_gain": 0.5, "update": "step"}, "update='step'"),
        ({"replan_gain": 0.5, "forgetting": 5}, "forgetting"),
        ({"replan_gain": 0.5, "planner": "mpc"}, "plans of all states"),
        ({"replan_gain": 0.5, "planner": "paper"}, "plans of all states"),
    ],
)
def test_what_keeps_no_plans_is_refused(settings, words):
    with pytest.raises(ArgumentError, match=words):
        km.GPUCRL("rkhs", **settings)


def test_fitted_kernels_are_refused():
    with pytest.raises(ArgumentError, match="kernels are fixed"):
        km.GPUCRL("Pendulum-v1", replan_gain=0.5)


def test_vectorised_studies_are_refused():
    with pytest.raises(ArgumentError, match="a plan for every episode"):
        play_together([make()], 2)


def test_the_classes_are_those_of_the_paper():
    assert all(issubclass(kind, RarelyPlanning) for kind in AGENTS)


def test_gaussian_noise_bounds_kept_plans_by_theorem_10_only():
    """Theorem 16 counts gains from the episode of a plan, so every episode needs one of its own."""
    texts = [
        run_bound(km.GPUCRL("rkhs", confidence="valid", replan_gain=c, seed=0)).text
        for c in (None, 0.5)
    ]
    assert texts[0].startswith("Theorem 16")
    assert texts[1].startswith("Theorem 1, improved")
    assert texts[1].endswith("(Theorem 10)")
