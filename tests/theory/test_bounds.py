"""What bounds say: growth, vacuity, versions, special cases, and what they refuse."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import kernelmdp as km
from kernelmdp import Box, FiniteSet, join, kernels, theory
from kernelmdp.confidence import finite_beta, gp_beta, joint_beta, rkhs_beta, slope_bound
from kernelmdp.confidence.nets import net
from kernelmdp.errors import ArgumentError
from kernelmdp.information import closed_forms
from kernelmdp.theory.prior_suprema import beta
from tests.theory.test_theorems import VERSIONS, gp_case, hand_case

SQUARE = join(state=Box([0.0], [1.0]), action=Box([0.0], [1.0]))


def grown(rank, outputs=1):
    return lambda n, lam: outputs * rank / 2 * math.log1p(n / (rank * lam))


def case(name="theorem1", **words):
    given = {
        "horizon": 5,
        "episodes": 400,
        "norm_reward": 1.0,
        "norm_transition": 1.0,
        "reward_noise": 0.1,
        "transition_noise": 0.1,
        "lipschitz": 3.0,
        "gain_reward": grown(6),
        "gain_transition": grown(6),
    }
    if name == "theorem1":
        given["diameter"] = 1.0
    return theory.BOUNDS[name](**{**given, **words})


# The example of docs/theory.md, on the unit square: γ by n/λ, from optimal designs.
MEASURED = {2e3: 24.2128, 1e4 / 3: 27.6550, 6e3: 31.9838, 2e5: 65.7184}


@pytest.mark.parametrize(
    ("steps", "paper", "improved"), [(10_000, 3.07e4, 2.06e4), (1_000_000, 5.50e5, 3.82e5)]
)
def test_example(steps, paper, improved):
    """Both with λ = H, where 1.44 = e ln 2 is most of the difference."""
    gain = MEASURED[steps / 5]
    gains = {"gain_reward": gain, "gain_transition": gain, "episodes": steps // 5}
    assert case(version="paper", **gains).value == pytest.approx(paper, rel=0.002)
    assert case(version="improved", **gains).value == pytest.approx(improved, rel=0.002)


def test_example_with_a_better_regulariser():
    gain = MEASURED[1e4 / 3]
    words = {"gain_reward": gain, "gain_transition": gain, "episodes": 2000}
    bound = case(regulariser_reward=3.0, regulariser_transition=3.0, **words)
    assert bound.value == pytest.approx(2.0e4, rel=0.01)


def test_example_becomes_useful_near_30_000_steps():
    gain = MEASURED[6e3]
    bound = case(version="paper", episodes=6000, gain_reward=gain, gain_transition=gain)
    assert bound.value == pytest.approx(bound.trivial, rel=0.1)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["theorem1", "theorem2"])
def test_first_useful(name, version):
    bound = case(name, version=version)
    first = bound.first_useful
    assert not bound.at(first).vacuous
    assert bound.at(first - 1).vacuous
    assert bound.at(bound.episodes) == bound
    never = case(name, version=version, gain_reward=lambda n: float(n), gain_transition=1.0)
    assert never.first_useful is None


NUMBERS = {
    "norm_reward": 1.0,
    "norm_transition": 1.0,
    "reward_noise": 0.1,
    "transition_noise": 0.1,
    "lipschitz": 3.0,
    "episodes": 400,
}


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(VERSIONS),
    st.sampled_from(["theorem1", "theorem2"]),
    st.sampled_from(sorted(NUMBERS)),
    st.floats(1.0, 50.0),
)
def test_monotone(version, name, word, factor):
    """More of anything unknown, or more time, never lowers a bound."""
    more = NUMBERS[word] * factor
    more = round(more) if word == "episodes" else more
    less = case(name, version=version)
    assert case(name, version=version, **{word: more}).log_value >= less.log_value - 1e-12


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(VERSIONS), st.floats(0.001, 0.5), st.floats(1.0, 1.9))
def test_less_confidence_is_cheaper(version, delta, factor):
    words = {"version": version}
    assert case(delta=delta, **words).value >= case(delta=delta * factor, **words).value
    given = gp_case(delta=delta, **words), gp_case(delta=delta * factor, **words)
    assert given[0].log_value >= given[1].log_value - 1e-9


def test_anytime_and_planning():
    """B 19 and Σ√(H/l) ≤ 2√T (G 35)."""
    plain, always = case(), case(anytime=True)
    ratio = always.parts["martingale"] / plain.parts["martingale"]
    assert ratio**2 == pytest.approx(math.log(3 * 400 * 401 / 0.1) / math.log(30))
    for horizon, tau in ((1, 1), (5, 400), (7, 12_345)):
        total = np.sqrt(horizon / np.arange(1, tau + 1)).sum()
        planned = case(horizon=horizon, episodes=tau, planner="approximate").parts["planning"]
        assert total <= planned == pytest.approx(2 * math.sqrt(horizon * tau))
    assert gp_case(anytime=True).value > gp_case().value
    assert gp_case(planner="approximate").parts["planning"] == pytest.approx(200)


def test_betas_are_those_of_the_sets():
    own = {"norm_bound": 1.0, "noise_proxy": 0.1, "regulariser": 5.0, "delta": 0.1}
    width = float(rkhs_beta(gain=grown(6)(5 * 399, 5.0), **own))
    sum_ = math.sqrt(2 * math.e * 5 * grown(6)(2000, 5.0) * 2000)
    assert case(version="paper").parts["reward"] == pytest.approx(2 * width * sum_)
    words = {"slope": 7.3, "episode": 12, "delta": 0.1, "outputs": 2}
    mixed = join(state=Box([0.0], [2.0]), action=FiniteSet.range(3))
    for domain in (SQUARE, mixed):
        cells = net(domain, slope=7.3, episode=12)[1]
        expected = gp_beta(log_cells=cells, episode=12, delta=0.1, outputs=2)
        assert beta(domain, version="repaired", **words) == pytest.approx(float(expected))
    finite = join(state=FiniteSet.range(4), action=FiniteSet.range(3))
    expected = finite_beta(points=12, episode=12, delta=0.1, outputs=2)
    assert beta(finite, version="repaired", **words) == pytest.approx(float(expected))
    assert float(joint_beta(2.0, 4)) == 4.0


def test_paths_bound_slopes_as_the_sets_do():
    kernel = kernels.SquaredExponential(0.5)
    found = theory.prior_suprema(kernel, kernel @ kernels.Index(2), SQUARE)
    assert found.slope_level(2, 2, 0.1, "repaired") == pytest.approx(
        slope_bound(kernel @ kernels.Index(2), SQUARE, delta=0.1)
    )
    assert found.slope_level(2, 2, 0.1, "paper") > found.slope_level(2, 2, 0.1, "repaired")


def test_gains_from_kernels():
    """Computed at λ = H for the reward, mH for the transition, and never without λ (G 59)."""
    words = {"domain": SQUARE, "reward_kernel": "linear", "transition_kernel": "linear"}
    words |= {"gain_reward": None, "gain_transition": None}
    bound = case(version="improved", **words)
    assert bound.exponent == 0.5
    rank = lambda n, lam: closed_forms.finite_rank(  # noqa: E731
        rank=2, variance_bound=2.0, n=n, noise_variance=lam
    )
    by_hand = case(
        version="improved",
        gain_reward=rank,
        gain_transition=rank,
        variance_bound_reward=2.0,
        variance_bound_transition=2.0,
    )
    assert by_hand.value <= bound.value <= 1.05 * by_hand.value
    own = {"domain": SQUARE, "n": 100}
    five, ten = (
        theory.gain_bound(kernels.Linear(), noise_variance=lam, **own) for lam in (5.0, 10.0)
    )
    assert ten < five
    with pytest.raises(TypeError, match="noise_variance"):
        theory.gain_bound(kernels.Linear(), **own)


def test_optimal_regulariser():
    """Less than with λ = H; and "noise" is what agents use."""
    words = {"gain_reward": grown(6), "gain_transition": grown(6)}
    best = case(optimise=True, **words)
    assert best.value < case(**words).value
    assert best.value <= case(regulariser_reward=0.05, regulariser_transition=0.05).value
    assert case(regulariser_reward=5.0, regulariser_transition=5.0) == case()


def test_growth():
    matern = kernels.Matern(1.5)
    assert theory.gain_exponent(matern, 1, rate="paper") == pytest.approx(2 / 5)
    assert theory.gain_exponent(matern, 1) == pytest.approx(1 / 4)
    assert theory.gain_exponent(kernels.SquaredExponential() + kernels.Linear(), 3) == 0
    assert theory.gain_exponent(kernels.SquaredExponential() * matern, 2) is None
    assert theory.gain_exponent(matern @ kernels.Index(3), 1) == pytest.approx(1 / 4)
    half = matern.on([0]) + kernels.Linear().on([1])
    assert theory.gain_exponent(half, 2) == pytest.approx(1 / 4)
    words = {"domain": SQUARE, "reward_kernel": matern, "transition_kernel": matern}
    # 2ν ≤ d(d + 1) with the paper's rate, 2ν > d with the better one.
    rough = case(version="repaired", **words)
    assert rough.exponent == pytest.approx(0.5 + 6 / 9)
    assert "too rough" in str(rough)
    smooth = case(version="improved", **words)
    assert smooth.exponent == pytest.approx(0.5 + 2 / 5)
    assert not smooth.warnings


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["1", "2"])
def test_corollaries_are_the_theorems(name, version):
    m, q, far, wide = 2, 1, 1.5, 0.5
    words = {"horizon": 5, "episodes": 300, "reward_noise": 0.1, "transition_noise": 0.2}
    words |= {"lipschitz": 2.0, "version": version}
    if name == "1":
        words["diameter"] = 3.0
    own = theory.BOUNDS[f"corollary{name}"](
        state_dimension=m,
        action_dimension=q,
        state_radius=far,
        action_radius=wide,
        norm_reward=0.7,
        norm_transition=1.2,
        **words,
    )
    top = (far**4 + wide**4, far**2 + wide**2)
    kept = top if version == "improved" else (1.0, 1.0)
    scale = (1.0, 1.0) if version == "improved" else (math.sqrt(top[0]), math.sqrt(top[1]))
    same = theory.BOUNDS[f"theorem{name}"](
        norm_reward=0.7 * scale[0],
        norm_transition=1.2 * scale[1],
        gain_reward=lambda n, lam: 4 / 2 * math.log(1 + n * kept[0] / (4 * lam)),
        gain_transition=lambda n, lam: m * 3 / 2 * math.log(1 + n * kept[1] / (3 * lam)),
        variance_bound_reward=kept[0],
        variance_bound_transition=kept[1],
        state_dimension=m,
        **words,
    )
    assert own.log_value == pytest.approx(same.log_value, abs=1e-12)
    assert own.theorem == f"Corollary {name}"


def test_linear_quadratic_constants():
    """Scalar, two periods: G_2 = P, so L = 2ρP."""
    found = theory.lqr_constants(
        state_matrix=0.9,
        input_matrix=0.5,
        state_cost=2.0,
        input_cost=1.0,
        horizon=2,
        state_radius=3,
    )
    assert found.norm_reward == pytest.approx(math.sqrt(5))
    assert found.norm_transition == pytest.approx(math.hypot(0.9, 0.5))
    assert found.lipschitz == pytest.approx(12.0)
    with pytest.raises(ArgumentError, match="input_cost"):
        theory.lqr_constants(
            state_matrix=1, input_matrix=1, state_cost=1, input_cost=-5, horizon=3, state_radius=1
        )


def test_tabular():
    """Exact gains: 6 cells, and 20 visits at λ = 4 are 4 cells thrice and 2 four times."""
    bound = theory.tabular(states=3, actions=2, horizon=4, episodes=5, version="repaired")
    gain = 0.5 * (4 * math.log(1 + 3 / 4) + 2 * math.log(1 + 4 / 4))
    before = 0.5 * (2 * math.log(1 + 2 / 4) + 4 * math.log(1 + 3 / 4))
    beta = math.sqrt(6) + 0.1 / 2 * math.sqrt(2 * (math.log(30) + before))
    expected = 2 * beta * math.sqrt(2 * math.e * 4 * gain * 20)
    assert bound.parts["reward"] == pytest.approx(expected)
    assert bound.trivial == 40
    assert not bound.warnings
    paper = theory.tabular(states=3, actions=2, horizon=4, episodes=5, version="paper")
    assert "one-hot" in paper.warnings[-1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"delta": 0.0}, "delta: expected a probability"),
        ({"delta": 1.0}, "delta: expected a probability"),
        ({"version": "paper", "variance_bound_reward": 2.0}, "normalise.*'improved'"),
        ({"version": "paper", "diameter": None}, "diameter"),
        ({"version": "best"}, "version: expected one of"),
        ({"gain_reward": None}, "gain_reward: expected a gain"),
        ({"gain_transition": -1.0}, "gain_transition"),
        ({"lipschitz": math.inf}, "lipschitz: expected a finite number"),
        ({"norm_reward": -1.0}, "norm_reward"),
        ({"episodes": 0}, "episodes"),
        ({"gain_reward": None, "reward_kernel": "se(1)"}, "domain: expected one"),
        ({"version": "paper", "regulariser_reward": 1.0}, "regulariser_reward"),
        ({"kernels": "se(1)"}, "kernels: expected an argument"),
        ({"planner": "good"}, "planner"),
        ({"optimise": True, "gain_reward": 3.0}, "optimise: expected gains that depend on λ"),
        ({"optimise": True, "gain_reward": lambda n: 3.0}, "optimise: expected gains"),
    ],
)
def test_bad_input(words, message):
    with pytest.raises(ArgumentError, match=message):
        case(**words)


def test_bad_input_of_the_others():
    with pytest.raises(ArgumentError, match="T = episodes · horizon of at least 4"):
        case("theorem2", version="paper", horizon=1, episodes=3)
    assert case("theorem2", version="repaired", horizon=1, episodes=3).value > 0
    rough = {"reward_kernel": "matern(1.5, 0.5)", "transition_kernel": "se(0.5)"}
    common = {"horizon": 5, "episodes": 10, "reward_noise": 0.1, "transition_noise": 0.1}
    with pytest.raises(ArgumentError, match="nu greater than 2"):
        theory.theorem3(**rough, **common, domain=SQUARE)
    with pytest.raises(ArgumentError, match="domain"):
        theory.theorem3(**rough, **common)
    with pytest.raises(ArgumentError, match="suprema"):
        theory.theorem3(gain_reward=1, gain_transition=1, **common, domain=SQUARE)
    with pytest.raises(ArgumentError, match="delta"):
        gp_case(delta=1.5)
    finite = join(state=FiniteSet.range(4), action=FiniteSet.range(3))
    with pytest.raises(ArgumentError, match="boxes for version='paper'"):
        gp_case(version="paper", domain=join(state=Box([0.0], [1.0]), action=FiniteSet.range(3)))
    assert "slack" not in gp_case(domain=finite).parts


def test_is_part_of_the_package():
    assert km.theory.theorem1 is theory.theorem1
    text = str(hand_case())
    assert "130.7" in text
    assert "vacuous" in text
