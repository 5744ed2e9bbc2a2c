"""Which theorem bounds the regret of a run, with what curve, or why none does."""

import dataclasses
import math

import numpy as np
import pytest

import kernelmdp as km
from kernelmdp import Box, Confidence, FiniteSet, Problem, kernels
from kernelmdp.confidence import NO_THEOREM, supremum
from kernelmdp.experiments import Result, Table, run_bound
from kernelmdp.experiments.guarantee_checks import plans_not_optimistic
from kernelmdp.experiments.run_bounds import write_curve
from kernelmdp.experiments.theorem_inputs import regularisers_of
from kernelmdp.mdp import Gaussian, Uniform
from kernelmdp.report import draw_regret, read, read_bound
from kernelmdp.theory import gain_bound, theorem16
from tests.columns import COLUMNS

H, NOISE = 3, 0.1
OTHER = Uniform(0.1)
KERNEL = 0.3 * kernels.Linear()


def problem(outputs=1, **words):
    """Linear means: all gains are closed forms of rank 3 or less."""
    given = {
        "name": "line",
        "states": Box([-1.0] * outputs, [1.0] * outputs),
        "actions": FiniteSet([[-1.0], [1.0]]),
        "horizon": H,
        "reward_kernel": KERNEL,
        "transition_kernel": KERNEL @ kernels.Index(outputs),
        "reward": None,
        "reward_noise": Gaussian(NOISE),
        "transition_noise": Gaussian(NOISE),
        "norm_reward": 1.0,
        "norm_transition": 1.5,
        "lipschitz": 2.0,
        "lipschitz_rule": "exact: by hand",
    }
    return Problem(**(given | words))


LINE = problem()


def bound(task=LINE, kind=km.GPUCRL, **words):
    if kind is km.GPUCRL:
        words = {"confidence": "valid"} | words
    return run_bound(kind(task, **words))


def test_valid_sets_have_the_theorem_of_gaussian_noise():
    found = bound()
    assert found.text == "Theorem 16, for all T at once with probability 0.9"
    curve = found.curve(10)
    assert [own.episodes for own in curve] == [1, 2, 3, 5, 8, 10]
    assert (np.diff([own.value for own in curve]) > 0).all()
    expected = theorem16(
        horizon=H,
        episodes=10,
        norm_reward=1.0,
        norm_transition=1.5,
        reward_noise=NOISE,
        transition_noise=NOISE,
        lipschitz=2.0,
        regulariser_reward=NOISE**2,
        regulariser_transition=NOISE**2,
        anytime=True,
        reward_kernel=KERNEL,
        transition_kernel=KERNEL,
        domain=LINE.points,
    )
    assert curve[-1].value == pytest.approx(expected.value, rel=1e-12)
    assert curve[-1].trivial == pytest.approx(expected.trivial)


def test_other_noise_has_the_improved_theorem():
    """A proxy is known, and no law that smooths values."""
    noise = Uniform(NOISE)
    found = bound(problem(transition_noise=noise))
    assert found.text == "Theorem 1, improved, for all T at once with probability 0.9"
    assert found.at(10).value > bound().at(10).value


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (
            problem(lipschitz_rule="estimate: by eye"),
            {"planner": {"name": "grid", "envelope": False}},
        ),
        (LINE, {"planner": {"name": "grid", "envelope": False}}),
        (problem(lipschitz=math.inf, lipschitz_rule="none"), {}),
    ],
)
def test_gaussian_noise_takes_the_place_of_l(task, words):
    found = bound(task, **words)
    assert found.text == "Theorem 16, for all T at once with probability 0.9"
    assert found.at(10**4).value > bound().at(10**4).value  # which keeps to L = 2


BONUS = {"name": "grid", "optimism": "bonus"}


@pytest.mark.parametrize(
    ("task", "words", "why"),
    [
        # Values that keep to an L that is too small are not optimistic.
        (problem(lipschitz=1e-3, lipschitz_rule="estimate: by eye"), {}, "an estimate"),
        # A bonus of L times the radius costs more than twice the radius times the noise's slope.
        (
            problem(lipschitz=math.inf, lipschitz_rule="none"),
            {"planner": BONUS},
            "plans pay a bonus",
        ),
        (LINE, {"planner": BONUS | {"envelope": False}}, "plans pay a bonus"),
    ],
)
def test_plans_without_a_bound_of_slopes_are_not_covered(task, words, why):
    found = bound(task, **words)
    assert not found.covered
    assert why in found.text


def test_a_bonus_of_a_known_l_has_theorem_1():
    """Also where the noise's slope is less than L, as Theorem 16 would take it."""
    noisy = problem(transition_noise=Gaussian(2.0), lipschitz=50.0)
    assert bound(noisy).text.startswith("Theorem 16")
    assert bound(noisy, planner=BONUS).text.startswith("Theorem 1, improved")


ESTIMATED = problem(lipschitz=1e-3, lipschitz_rule="estimate: by eye")
FAMILY = {"reward_family": [("0.3*linear", 9.0)], "transition_family": [("0.3*linear", 9.0)]}
HOLD = {"fallback": lambda state, period: 0.0 * state + 1.0, "at_least": 0.9}


@pytest.mark.parametrize(
    ("task", "words", "why"),
    [
        (LINE, {}, None),
        (ESTIMATED, {}, "an estimate"),
        (ESTIMATED, {"planner": BONUS | {"envelope": False}}, "an estimate"),
        (problem(outputs=2), {"planner": {"name": "grid"}}, "short of optimism"),
        (LINE, {"noise": 0.5}, "another noise"),
        (LINE, {"confidence": {"name": "adaptive", **FAMILY}}, "one member"),
        (LINE, HOLD, "at_least"),
    ],
)
def test_certificates_ask_whether_plans_are_optimistic(task, words, why):
    reason = plans_not_optimistic(km.GPUCRL(task, **({"confidence": "valid"} | words)))
    assert reason is None if why is None else why in reason


def test_a_certificate_does_not_trust_an_estimated_l():
    """The optimum is bounded by values that keep to no L."""
    known = {"reward": lambda points: points[:, 0], "norm_reward": None, "reward_bounds": (-1, 1)}
    tasks = (
        problem(lipschitz=1e-3, lipschitz_rule="estimate: by eye", **known),
        problem(lipschitz=math.inf, lipschitz_rule="none", **known),
        problem(lipschitz=1e-3, **known),
    )
    guessed, free, exact = (
        km.GPUCRL(task, confidence="valid", seed=0).certificate([0.3]).optimum for task in tasks
    )
    assert guessed == pytest.approx(free)
    assert exact < free - 0.5


def test_sombrl_with_the_bonus_of_the_theorem():
    found = bound(kind=km.SOMBRL, bonus="theorem", confidence="valid")
    assert found.text == "Theorem 16, for all T at once with probability 0.9"
    assert found.at(10).theorem == "Theorem 16, bonus"
    assert found.at(10**4).value > bound().at(10**4).value


@pytest.mark.parametrize(
    ("task", "words", "why"),
    [
        (LINE, {}, "no theorem is about this agent"),
        (LINE, {"bonus": 2.0, "confidence": "valid"}, "no theorem is about this agent"),
        (LINE, {"bonus": "theorem"}, "beta is scaled"),
        (LINE, {"bonus": "theorem", "confidence": {"name": "valid", "shape": "box"}}, "for boxes"),
        (
            problem(norm_reward=None, reward=lambda points: 0.5 * points[:, 0]),
            {"bonus": "theorem", "confidence": "valid"},
            "rewards have no known range",
        ),
        (
            problem(transition_noise=Gaussian(0.0)),
            {"bonus": "theorem", "confidence": "valid"},
            "has no noise",
        ),
    ],
)
def test_sombrl_is_not_covered(task, words, why):
    found = bound(task, kind=km.SOMBRL, **words)
    assert not found.covered
    assert why in found.text


def test_the_paper_s_sets_have_the_printed_theorem():
    found = bound(confidence="paper")
    assert found.text.startswith("Theorem 1, paper")
    assert found.covered
    # A kernel that is not normalised has no printed theorem.
    large = problem(reward_kernel=2 * kernels.Linear())
    assert bound(large, confidence="paper").text.startswith("Theorem 16")


def test_sets_by_the_trace_are_wider():
    task = problem(outputs=2)
    shapes = ("trace", "lmax")
    wide, narrow = (bound(task, confidence=Confidence(shape=s)).at(10**5) for s in shapes)
    assert wide.parts["learning"] > 1.1 * narrow.parts["learning"]


def test_plans_of_covered_sets_are_rounded_up():
    task = problem(outputs=2)
    assert km.GPUCRL(task, confidence="valid").planner.optimism == "upper"
    searched = {"name": "grid", "optimism": "ball"}
    short = km.GPUCRL(task, confidence="valid", planner=searched)
    assert short.coverage.covered  # its sets
    assert "plans may be short of optimism" in run_bound(short).text
    assert km.GPUCRL(task).planner.optimism == "ball"  # covered by nothing
    # Certificate (ii) evaluates plans pessimistically in the same way.
    assert km.GPUCRL(task, confidence="valid", planner="paper").planner.optimism == "upper"


def test_a_known_reward_costs_nothing():
    known = dataclasses.replace(LINE, reward=lambda points: 0.5 * points[:, 0])
    found = bound(known).at(5)
    assert found.parts["learning"] < bound().at(5).parts["learning"]
    assert found.trivial == pytest.approx(2 * 0.5 * 5 * H, rel=0.01)


def test_the_martingale_has_the_range_of_planned_values():
    """Bounds of rewards that are wider than B_R√κ widen what plans may expect."""
    parts = [
        bound(problem(transition_noise=OTHER, reward_bounds=(-end, end))).at(5).parts
        for end in (0.1, 10.0)
    ]
    known = bound(problem(transition_noise=OTHER)).at(5).parts["martingale"]
    assert parts[0]["martingale"] == pytest.approx(known)
    assert parts[1]["martingale"] == pytest.approx(known * 10.0 / math.sqrt(0.6))


def test_compiled_kernels_add_their_error():
    task = problem(reward_kernel=kernels.SquaredExponential(2.0))
    assert bound(task).at(1).parts["kernel"] > 0
    assert bound().at(1).parts["kernel"] == 0


def test_gp_setting():
    """Plans are clipped to C, which a draw exceeds with the probability that the theorem counts."""
    settings = Confidence(setting="gp")
    unclipped = problem(norm_reward=None, norm_transition=None, drawn_from_prior=True)
    found = bound(unclipped, confidence=settings)
    assert found.text == "Theorem 3, improved, for all T at once with probability 0.9"
    assert found.at(3).theorem == "Theorem 3"
    agent = km.GPUCRL(unclipped, confidence=settings)
    level = supremum(KERNEL, LINE.points).level(count=1, delta=settings.delta)
    assert agent.problem.reward_range == (-level, level)


def drawn_problem(**words):
    """A truth that is drawn from the prior, so that its norms are not known."""
    unknown = {"norm_reward": None, "norm_transition": None}
    return problem(drawn_from_prior=True, **(unknown | words))


def test_psrl():
    ball = bound(kind=km.PSRL, prior="norm-ball")
    assert ball.text == "Theorem 17, in expectation over truths of the prior"
    assert ball.at(3).theorem == "Theorem 17"
    drawn = bound(drawn_problem(), kind=km.PSRL)
    assert drawn.text == "Theorem 18, in expectation over truths of the prior"
    assert drawn.at(3).theorem == "Theorem 18"
    approximate = {"kind": km.PSRL, "planner": "paper"}
    assert bound(drawn_problem(), **approximate).at(3).theorem == "Theorem 4"
    assert bound(prior="norm-ball", **approximate).at(3).theorem == "Theorem 2"
    assert bound(planner="paper").at(3).theorem == "Theorem 1"


@pytest.mark.parametrize(
    ("changes", "settings", "reason"),
    [
        ({"transition_noise": Gaussian(0.0)}, {}, "below its floor"),
        ({"reward_noise": Gaussian(1e-5)}, {}, "below its floor"),
        (
            {"norm_reward": 1.0, "norm_transition": 1.0},
            {"prior": {"name": "norm-ball", "method": "elliptical"}},
            "exact only in the limit",
        ),
    ],
)
def test_psrl_is_not_covered(changes, settings, reason):
    task = drawn_problem(**changes)
    assert reason in bound(task, kind=km.PSRL, **settings).text


def test_psrl_is_not_covered_where_noise_differs_between_axes():
    noise = Gaussian([NOISE, 2 * NOISE])
    task = drawn_problem(outputs=2, transition_noise=noise)
    assert "differs between axes" in bound(task, kind=km.PSRL).text


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (problem(drawn_from_prior=True), {}),
        (drawn_problem(), {"reward_bounds": (-3.0, 3.0)}),
        (LINE, {"prior": {"name": "norm-ball", "norm_reward": 5.0}}),
        (LINE, {"prior": "norm-ball", "reward_bounds": (-0.1, 0.1)}),
    ],
)
def test_psrl_is_not_covered_where_rewards_of_draws_are_clipped(task, words):
    """A plan for clipped rewards is optimal for another MDP than the one that was drawn."""
    assert "plans clip the rewards of draws" in bound(task, kind=km.PSRL, **words).text


def test_no_norm_clips_the_truth_of_a_gp():
    found = bound(problem(drawn_from_prior=True), confidence=Confidence(setting="gp"))
    assert "rewards are clipped by a norm" in found.text


def test_theorem_18_counts_the_weights_that_the_agent_draws():
    """With little noise, kernels are compiled more closely than by default."""
    env = km.make("gp-prior", seed=0, noise=0.01)
    agent = km.PSRL(env, seed=0)
    notes = run_bound(agent).at(3).warnings
    rank = agent.beliefs.learned["reward"].rank
    assert f"compiled to rank {rank:g}," in notes[0]


def test_rough_kernels_have_no_bound_in_place_of_an_error():
    task = drawn_problem(
        reward_kernel=kernels.Matern(0.5, 0.3), transition_kernel=KERNEL @ kernels.Index(1)
    )
    assert "bounded derivatives" in bound(task, kind=km.PSRL).text


def ends(points, after):
    return after[:, 0] > 0.9


@pytest.mark.parametrize(
    ("task", "words", "why"),
    [
        (LINE, {"confidence": "practical"}, "beta is scaled by 0.1"),
        (LINE, {"confidence": Confidence(scale=2.0)}, "beta is not the theorem's"),
        (LINE, {"noise": 0.5}, "plans know another noise"),
        (LINE, {"update": "step"}, "policies change within an episode"),
        (LINE, {"first_episode": "random"}, "the first episode is random"),
        (LINE, {"planner": "mpc"}, "plans of MPCPlanner"),
        (LINE, {"kind": km.Greedy}, "no theorem is about this agent"),
        (LINE, {"kind": km.PSRL}, "the truth is not known to be drawn from the prior"),
        (
            problem(transition_noise=OTHER, lipschitz_rule="estimate: by eye"),
            {},
            "L = 2 is an estimate",
        ),
        (
            problem(transition_noise=OTHER),
            {"planner": {"name": "grid", "envelope": False}},
            "plans do not keep to L",
        ),
        (LINE, {"planner": {"name": "paper", "tolerance": 1.0}}, "tolerance is not the paper's"),
        (LINE, {"kind": km.PSRL, "inflate": 2.0}, "draws are inflated"),
        (LINE, {"kind": km.PSRL, "prior": "student-t"}, "no theorem is about this prior"),
        (problem(norm_reward=None), {}, "norm_reward is unknown"),
        (
            problem(transition_noise=OTHER, lipschitz=math.inf, lipschitz_rule="none"),
            {},
            "L is not known (none)",
        ),
        (problem(reward_noise=Gaussian(NOISE, estimated=True)), {}, "noise of the reward is est"),
        (problem(termination=ends), {}, "episodes may end early"),
        (problem(states=FiniteSet([[-1.0], [1.0]])), {}, "do not know additive noise"),
    ],
)
def test_not_covered(task, words, why):
    found = bound(task, **words)
    assert found.text.startswith("not covered: ")
    assert why in found.text
    assert not found.covered
    assert found.curve(10) == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What a run leaves that the figure needs."""
    place = tmp_path_factory.mktemp("run")
    found = bound()
    write_curve(found.curve(4), place / "bound.csv", found.gains)
    rows = [{name: 0.1 * episode for name in COLUMNS} | {"episode": episode} for episode in (1, 2)]
    Result("line", "gp-ucrl", NO_THEOREM, Table(rows)).save(place / "episodes.csv")
    theory = f'[theory]\nbounded = true\nbound = "{found.text}"\n'
    words = f'[run]\nenv = "line"\nagent = "gp-ucrl"\nseed = 0\n{theory}'
    (place / "config.toml").write_text(words)
    return place


def test_figure_has_the_curve(folder, tmp_path):
    numbers, values = read_bound(folder)
    assert numbers.tolist() == [1, 2, 3, 4]
    np.testing.assert_allclose(values, [own.value for own in bound().curve(4)])
    draw_regret([folder], tmp_path / "regret.png")
    assert (tmp_path / "regret.png").read_bytes().startswith(b"\x89PNG")
    assert read_bound(tmp_path) is None


def test_maximum_gains_beside_the_curve(folder):
    """Of all steps so far, with the regulariser that the agent learns with."""
    bounds = read(folder).bounds
    agent = km.GPUCRL(LINE, confidence="valid")
    for role, noise in zip(("reward", "transition"), regularisers_of(agent), strict=True):
        kernel = getattr(agent.problem, f"{role}_kernel")
        given = {"domain": agent.problem.points, "noise_variance": noise}
        most = [gain_bound(kernel, n=episode * H, **given) for episode in (1, 2, 3, 4)]
        np.testing.assert_allclose(bounds[f"maximum_gain_{role}"], most)


def test_result_draws_the_curve(folder):
    curve = read_bound(folder)
    rows = [{name: 1.0 for name in COLUMNS}]
    axes = Result("line", "gp-ucrl", NO_THEOREM, Table(rows), "Theorem 1; so far", curve).plot()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["gp-ucrl", "Theorem 1"]
