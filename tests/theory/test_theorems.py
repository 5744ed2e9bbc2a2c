"""Every theorem and version against an evaluation of its own in 50 digits."""

import math

import mpmath
import numpy as np
import pytest

from kernelmdp import Box, join, theory
from kernelmdp.confidence import Supremum
from tests.theory import evaluation

VERSIONS = ("paper", "repaired", "improved")


def hand_case(**words):
    given = {
        "horizon": 2,
        "episodes": 3,
        "norm_reward": 1,
        "norm_transition": 1,
        "reward_noise": 0.5,
        "transition_noise": 0.5,
        "lipschitz": 1,
        "diameter": 1,
        "delta": 0.1,
        "gain_reward": 2,
        "gain_transition": 2,
        "version": "paper",
    }
    return theory.theorem1(**{**given, **words})


def test_hand_case():
    """G 50."""
    bound = hand_case()
    beta = 1 + 0.5 / math.sqrt(2) * math.sqrt(2 * (math.log(30) + 2))
    exact = 4 * beta * math.sqrt(48 * math.e) + 5 * math.sqrt(12 * math.log(30))
    assert bound.value == pytest.approx(exact, rel=1e-12)
    assert abs(bound.value - 130.7275) < 1e-3
    assert bound.trivial == 12
    assert bound.vacuous
    assert bound.probability == 0.9
    assert sum(bound.parts.values()) == pytest.approx(bound.value)


def draw(seed):
    """Random parameters; gains are any functions that grow with n/λ."""
    rng = np.random.default_rng(seed)
    rank = rng.uniform(1, 30, size=2)
    p = {
        "H": int(rng.integers(2, 30)),
        "tau": int(rng.integers(2, 10_000)),
        "m": int(rng.integers(1, 5)),
        "q": int(rng.integers(1, 4)),
        "BR": rng.uniform(0.1, 5),
        "BP": rng.uniform(0.1, 5),
        "sR": rng.uniform(0.05, 2),
        "sP": rng.uniform(0.05, 2),
        "L": rng.uniform(0.1, 20),
        "D": rng.uniform(0.1, 10),
        "delta": rng.uniform(0.001, 0.5),
        "kR": rng.uniform(0.1, 1),
        "kP": rng.uniform(0.1, 1),
        "c1": rng.uniform(0.5, 3),
        "c2": rng.uniform(0.5, 3),
        "ER": rng.uniform(1, 5),
        "sR0": rng.uniform(0.3, 1),
        "ER'": rng.uniform(2, 9),
        "sR'": rng.uniform(0.5, 3),
        "EP'": rng.uniform(2, 9),
        "sP'": rng.uniform(0.5, 3),
        "LR": rng.uniform(0.5, 5),
        "LP": rng.uniform(0.5, 5),
    }
    p["meanL"] = p["L"] * rng.uniform(0.5, 1)
    p["gR"] = lambda n, lam: mpmath.mpf(rank[0]) / 2 * mpmath.log(1 + n / (rank[0] * lam))
    p["gP"] = lambda n, lam: mpmath.mpf(rank[1]) / 2 * mpmath.log(1 + n / (rank[1] * lam))
    return p


def gains_of(p):
    return {
        "gain_reward": lambda n, lam: float(p["gR"](n, lam)),
        "gain_transition": lambda n, lam: p["m"] * float(p["gP"](n, lam)),
        "state_dimension": p["m"],
        "variance_bound_reward": p["kR"],
        "variance_bound_transition": p["kP"],
        "horizon": p["H"],
        "episodes": p["tau"],
        "reward_noise": p["sR"],
        "transition_noise": p["sP"],
        "lipschitz": p["L"],
    }


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", range(20))
def test_rkhs_theorems(seed, version):
    p = draw(seed)
    norms = {"norm_reward": p["BR"], "norm_transition": p["BP"], "version": version}
    first = theory.theorem1(**gains_of(p), **norms, diameter=p["D"], delta=p["delta"])
    assert first.log_value == pytest.approx(
        float(mpmath.log(evaluation.theorem1(p, version))), 1e-10
    )
    second = theory.theorem2(**gains_of(p), **norms, mean_lipschitz=p["meanL"])
    expected = float(mpmath.log(evaluation.theorem2(p, version)))
    assert second.log_value == pytest.approx(expected, 1e-10)
    assert second.probability == "expectation"


def box_of(p):
    m, q = p["m"], p["q"]
    return join(state=Box([0.0] * m, [p["c1"]] * m), action=Box([0.0] * q, [p["c2"]] * q))


def prior_suprema_of(p):
    return theory.PriorSuprema(
        reward=Supremum(p["ER"], p["sR0"], True),
        reward_slope=Supremum(p["ER'"], p["sR'"], True),
        transition_slope=Supremum(p["EP'"], p["sP'"], True),
        lipschitz_reward=p["LR"],
        lipschitz_transition=p["LP"],
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", range(20))
def test_gp_theorems(seed, version):
    p = draw(seed)
    shared = {"domain": box_of(p), "suprema": prior_suprema_of(p), "version": version}
    third = theory.theorem3(**gains_of(p), **shared, diameter=p["D"], delta=p["delta"])
    assert third.log_value == pytest.approx(
        float(mpmath.log(evaluation.theorem3(p, version))), 1e-10
    )
    fourth = theory.theorem4(**gains_of(p), **shared, mean_lipschitz=p["meanL"])
    expected = float(mpmath.log(evaluation.theorem4(p, version)))
    assert fourth.log_value == pytest.approx(expected, 1e-10)


@pytest.mark.usefixtures("unchecked")  # checks of types take ten times as long as the bounds
def test_improved_theorem_1_is_smaller():
    """G 51: at equal λ, κ = 1 and k ⊗ 1, whatever the gains: at most the paper's over 1.3."""
    ratios = []
    for seed in range(1000):
        p = {**draw(seed), "kR": 1.0, "kP": 1.0}
        rng = np.random.default_rng([1, seed])
        # Any common function: a power, so that regimes of every kind occur.
        scale, power = rng.uniform(0.1, 100), rng.uniform(0, 1)
        words = gains_of(p)
        words["gain_reward"] = lambda n, lam, s=scale, a=power: s * (n / lam) ** a
        words["gain_transition"] = lambda n, lam, s=scale, a=power, m=p["m"]: m * s * (n / lam) ** a
        norms = {"norm_reward": p["BR"], "norm_transition": p["BP"], "delta": p["delta"]}
        paper = theory.theorem1(**words, **norms, diameter=p["D"], version="paper")
        improved = theory.theorem1(**words, **norms, version="improved")
        ratios.append(paper.value / improved.value)
    assert min(ratios) >= 1.3, min(ratios)


def gp_case(**words):
    """H = 20, λ = 0.01, γ_19 = 41.4 on the unit square; gains grow as logarithms after that."""
    box = Box([0.0], [1.0])
    sizes = Supremum(3.0, 1.0, True)
    slopes = Supremum(12.0, 5.0, True)
    given = {
        "horizon": 20,
        "episodes": 500,
        "reward_noise": 0.1,
        "transition_noise": 0.1,
        "lipschitz": 3.0,
        "diameter": 1.0,
        "delta": 0.1,
        "domain": join(state=box, action=box),
        "gain_reward": lambda n: 41.4 * max(1.0, math.log1p(n) / math.log1p(19)),
        "gain_transition": lambda n: 41.4 * max(1.0, math.log1p(n) / math.log1p(19)),
        "suprema": theory.PriorSuprema(sizes, slopes, slopes, 5.0, 5.0),
    }
    return theory.theorem3(**{**given, **words})


def test_theorem_3_in_logarithms():
    """G 58."""
    paper, improved = gp_case(version="paper"), gp_case(version="improved")
    assert math.isfinite(paper.log_value)
    assert paper.log_value - improved.log_value > 15 * math.log(10)
    assert paper.vacuous


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_overflows(version):
    """H = 10⁴, T = 10⁹, and a gain within an episode of 10⁴ nats."""
    long = {"horizon": 10_000, "episodes": 100_000, "version": version}
    gains = {"gain_reward": 1e4, "gain_transition": 1e4}
    given = gp_case(**long, **gains)
    assert math.isfinite(given.log_value)
    assert given.first_useful is None or version == "improved"
    if version != "improved":
        assert given.value == math.inf
    assert math.isfinite(hand_case(**long, **gains).log_value)
    for name in ("theorem2", "theorem4"):
        words = dict(long, reward_noise=0.1, transition_noise=0.1, lipschitz=3.0, **gains)
        if name == "theorem2":
            words |= {"norm_reward": 1.0, "norm_transition": 1.0}
        else:
            box = Box([0.0], [1.0])
            size = Supremum(3.0, 1.0, True)
            words |= {"domain": join(state=box, action=box)}
            words |= {"suprema": theory.PriorSuprema(size, size, size, 5.0, 5.0)}
        assert math.isfinite(theory.BOUNDS[name](**words).log_value)
