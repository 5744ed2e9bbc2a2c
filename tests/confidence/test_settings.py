"""Presets, what they cover, regularisers, and what is refused."""

import dataclasses
import math

import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.confidence import Confidence, as_confidence
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp import Gaussian, Uniform
from kernelmdp.numerics.modules import replace_fields

from .problems import BOX, beliefs, data

NOISE = Gaussian(0.2)
COMMON = {"horizon": 5, "domain": BOX, "reward_noise": NOISE, "transition_noise": NOISE}


def test_presets():
    paper, valid, practical = map(as_confidence, ("paper", "valid", "practical"))
    words = lambda c: (c.regulariser, c.gain, c.beta, c.shape, c.scale)  # noqa: E731
    assert words(paper) == ("paper", "maximum", "paper", "trace", 1.0)
    assert words(valid) == ("noise", "realised", "mixture", "lmax", 1.0)
    assert practical == dataclasses.replace(valid, beta="paper", scale=0.1)
    assert {c.setting for c in (paper, valid, practical)} == {"rkhs"}
    assert as_confidence(paper) is paper


def test_reasons():
    known = {"norm_reward": 2.0, "norm_transition": 3.0}
    assert Confidence(**known).coverage.covered
    assert str(Confidence(**known).coverage) == (
        "covered by the confidence sets of Theorem 1 (bounded norms)"
    )
    assert not Confidence(**known, scale=0.5).coverage.covered
    assert "scaled by 0.5" in str(Confidence(**known, scale=0.5).coverage)
    assert Confidence(**known, scale=2.0).coverage.covered
    assert "norm_reward is unknown" in str(Confidence(norm_transition=1.0).coverage)
    assert "norm_transition is unknown" in str(as_confidence("valid").coverage)
    assert Confidence(setting="gp").coverage.covered
    assert "Theorem 3" in str(Confidence(setting="gp").coverage)
    assert "not the noise variance" in str(Confidence(setting="gp", regulariser=4.0).coverage)


def test_reasons_of_a_run():
    sure = Confidence(norm_reward=1.0, norm_transition=1.0)
    exact = beliefs("se(0.5) @ index(2)")
    assert sure.sets(exact, episode=1, **COMMON).coverage.covered
    guessed = COMMON | {"transition_noise": Gaussian(0.2, estimated=True)}
    found = sure.sets(exact, episode=1, **guessed)
    assert not found.coverage.covered
    assert "noise of the transition is estimated" in str(found.coverage)
    # A known reward needs no norm.
    known = beliefs("se(0.5) @ index(2)", reward=lambda z: z[:, 0])
    assert Confidence(norm_transition=1.0).sets(known, episode=1, **COMMON).coverage.covered
    assert not Confidence(norm_transition=1.0).sets(exact, episode=1, **COMMON).coverage.covered


def test_reasons_of_a_run_under_a_prior():
    gp = Confidence(setting="gp")
    exact = beliefs("se(0.5) @ index(2)")
    assert gp.sets(exact, episode=1, **COMMON).coverage.covered
    other = COMMON | {"reward_noise": Uniform(0.2)}
    assert "reward is not Gaussian" in gp.sets(exact, episode=1, **other).coverage.reasons[0]
    louder = COMMON | {"reward_noise": Gaussian(0.3)}
    assert "not that of the noise" in gp.sets(exact, episode=1, **louder).coverage.reasons[0]
    compiled = beliefs("se(0.5) @ index(2)", engine="compiled", tolerance=1e-2)
    assert "kernel is approximate" in gp.sets(compiled, episode=1, **COMMON).coverage.reasons[0]


@pytest.mark.parametrize("setting", ["rkhs", "gp"])
def test_an_error_that_is_not_known_is_not_covered(setting):
    """Inducing points: the sets are finite and claim nothing."""
    sure = Confidence(norm_reward=1.0, norm_transition=1.0, setting=setting)
    exact = beliefs("se(0.5) @ index(2)")
    unknown = replace_fields(exact.transition, error=math.inf, error_kind="inducing")
    sets = sure.sets(replace_fields(exact, transition=unknown), episode=1, **COMMON)
    plain = sure.sets(exact, episode=1, **COMMON)
    assert not sets.coverage.covered
    assert "transition is learned on inducing points" in str(sets.coverage)
    assert sets.plausible.beta_transition == plain.plausible.beta_transition
    assert np.isfinite(sets.plausible.slack_transition)


def test_regularisers():
    paper, noise, double = (
        as_confidence("paper"),
        as_confidence("valid"),
        Confidence(regulariser=2.0),
    )
    assert paper.regularisers(7, 3, 0.01, 0.04) == (7.0, 21.0)
    assert noise.regularisers(7, 3, 0.01, 0.04) == (0.01, 0.04)
    assert double.regularisers(7, 3, 0.01, 0.04) == (0.02, 0.08)
    reward, transition = noise.regularisers(7, 2, 0.0, [0.04, 0.09], floor=1e-3)
    assert reward == 1e-3
    np.testing.assert_array_equal(transition, [0.04, 0.09])
    assert noise.regularisers(7, 2, 0.01, [0.04, 0.04]) == (0.01, 0.04)
    assert paper.regularisers(7, 3, 0.0, 0.0) == (7.0, 21.0)  # needs no noise
    for bad in ({"reward_noise_variance": 0.0}, {"reward_noise_variance": -1.0}, {"floor": 0.0}):
        arguments = {"reward_noise_variance": 0.1, "transition_noise_variance": 0.1} | bad
        with pytest.raises(ArgumentError, match=next(iter(bad))):
            noise.regularisers(7, 2, **arguments)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("setting", "bayes"),
        ("gain", "mig"),
        ("shape", "ball"),
        ("regulariser", "H"),
        ("regulariser", 0.0),
        ("delta", 0.0),
        ("delta", 1.0),
        ("delta", float("nan")),
        ("scale", 0.0),
        ("scale", -1.0),
        ("norm_reward", -1.0),
        ("norm_transition", float("inf")),
    ],
)
def test_bad_fields_are_named(argument, value):
    with pytest.raises(ArgumentError, match=argument) as caught:
        Confidence(**{argument: value})
    assert caught.value.argument == argument


def test_other_bad_input():
    with pytest.raises(ArgumentError, match="'noise' in the setting 'gp'"):
        Confidence(setting="gp", regulariser="paper")
    with pytest.raises(ArgumentError, match="'paper', 'valid', 'practical'"):
        as_confidence("papers")
    held = beliefs("se(0.5) @ index(2)")
    with pytest.raises(ArgumentError, match="episode"):
        as_confidence("valid").sets(held, episode=0, **COMMON)
    with pytest.raises(ArgumentError, match="noise_variance 5, as the paper"):
        as_confidence("paper").sets(held, episode=1, **COMMON)  # its λ is the noise variance
    rough = beliefs("matern(1.5, 0.5) @ index(2)")
    with pytest.raises(ArgumentError, match="slope"):
        Confidence(setting="gp").sets(rough, episode=1, **COMMON)
    assert Confidence(setting="gp").sets(rough, episode=1, slope=3.0, **COMMON).coverage.covered


def test_beta_uses_the_noise_of_each_output_and_the_scale():
    """λ_j = σ_j²/scale_j² makes every row of unit noise: β² = B² + 2(ln(3/δ) + gain)."""
    sizes, scale = np.array([0.1, 0.6]), np.array([0.5, 2.0])
    own = (sizes / scale) ** 2
    held = beliefs("se(0.5) @ index(2)", noise=(0.04, own), scale=scale)
    points, rewards, outcomes = data(8, 2)
    held = held.condition(points, rewards, outcomes)
    common = COMMON | {"transition_noise": Gaussian(sizes)}
    found = Confidence(norm_transition=2.0).sets(held, episode=2, **common)
    K = np.asarray(km.kernel("se(0.5)")(points))
    gain = sum(0.5 * np.linalg.slogdet(np.eye(8) + K / v)[1] for v in own)
    oracle = np.sqrt(4 + 2 * (np.log(30) + gain))
    assert float(found.beta_transition) == pytest.approx(oracle, rel=1e-9)
    # With one λ for both, the louder axis decides: σ = max_j noise_j/scale_j.
    same = beliefs("se(0.5) @ index(2)", noise=(0.04, 0.25), scale=scale)
    found = Confidence(norm_transition=2.0).sets(same, episode=1, **common)
    oracle = np.hypot(2.0, max(0.1 / 0.5, 0.6 / 2.0) / 0.5 * np.sqrt(2 * np.log(30)))
    assert float(found.beta_transition) == pytest.approx(oracle, rel=1e-12)


def test_a_known_reward_gives_its_share_away():
    held = beliefs("se(0.5) @ index(2)", reward=lambda z: z[:, 0])
    found = as_confidence("valid").sets(held, episode=1, **COMMON)
    assert float(found.beta_reward) == 0.0
    oracle = np.sqrt(1 + 2 * np.log(2 / 0.1))
    assert float(found.beta_transition) == pytest.approx(oracle, rel=1e-12)
    gp = Confidence(setting="gp", shape="trace")
    both = gp.sets(beliefs("se(0.5) @ index(2)"), episode=1, slope=2.0, **COMMON)
    one = gp.sets(held, episode=1, slope=2.0, **COMMON)
    gap = float(both.beta_transition) ** 2 - float(one.beta_transition) ** 2
    assert gap == pytest.approx(2 * np.log(1.5), rel=1e-9)
