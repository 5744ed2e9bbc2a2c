"""Coverage: how often the truth is in the sets, and that too small ones miss it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.confidence import Confidence, finite_beta
from kernelmdp.mdp import Gaussian, MeanModel

from ..gp.dense import Dense
from .problems import beliefs

LINE = np.linspace(0, 1, 40)
RUNS = 25


@functools.cache
def table():
    states = km.FiniteSet(LINE[:, None])
    return km.join(state=states, action=km.FiniteSet([[0.0]]))


def points_of(where):
    return np.column_stack([LINE[where], np.zeros(len(where))])


def lookup(values):
    return lambda z: jnp.asarray(np.asarray(values)[np.round(np.asarray(z)[:, 0] * 39).astype(int)])


@functools.cache
def prior(text, sigma, engine="exact"):
    return beliefs(
        text, domain=table(), reward_kernel="se(0.2)", noise=(sigma**2, sigma**2), engine=engine
    )


@functools.cache
def gram(text):
    return np.asarray(km.kernel(text)(points_of(np.arange(40))))


def in_the_ball(text, m, rng, norm):
    """A function Σ_i k(·, x_i) a_i of that norm, at all points: (40, m)."""
    K = gram(text)
    a = rng.standard_normal(40 * m) * (rng.random(40 * m) < 0.2)
    return (K @ a / np.sqrt(a @ K @ a) * norm).reshape(40, m)


def run(confidence, kernel, m, seed, *, sigma=0.3, H=8, episodes=3, engine="exact"):
    """Ratios of each episode, for points chosen where the reward may be highest, and the data."""
    rng = np.random.default_rng(seed)
    domain, all_points = table(), points_of(np.arange(40))
    reward = in_the_ball("se(0.2)", 1, rng, 1.0)[:, 0]
    transition = in_the_ball(kernel, m, rng, 1.0)
    truth = MeanModel(lookup(reward), lookup(transition))
    held = prior(kernel, sigma, engine)
    ratios, seen = [], []
    for episode in range(1, episodes + 1):
        sets = confidence.sets(
            held,
            episode=episode,
            horizon=H,
            domain=domain,
            reward_noise=Gaussian(sigma),
            transition_noise=Gaussian(sigma),
        )
        ratios.append(sets.containment(truth, jnp.asarray(all_points)))
        if episode == episodes:
            return np.array(ratios), seen, reward
        mean, std = held.predict_reward(jnp.asarray(all_points))
        order = np.argsort(-np.asarray(mean + 2 * std) + 1e-6 * rng.random(40))[:H]
        seen.append(
            (
                all_points[order],
                reward[order] + sigma * rng.standard_normal(H),
                transition[order] + sigma * rng.standard_normal((H, m)),
            )
        )
        held = held.condition(*seen[-1])


def test_functions_of_bounded_norm_are_covered():
    confidence = Confidence(delta=0.3, norm_reward=1.0, norm_transition=1.0)
    kernel = "se(0.2) @ index(1)"
    worst = np.array([run(confidence, kernel, 1, seed)[0].max(axis=0) for seed in range(RUNS)])
    allowed = 0.1 + 3 * np.sqrt(0.1 * 0.9 / RUNS)
    assert np.all(np.mean(worst > 1, axis=0) <= allowed)
    assert worst.max() < 1
    # A twentieth of β is too little, and the same count says so.
    small = Confidence(delta=0.3, norm_reward=1.0, norm_transition=1.0, scale=0.05)
    worst = np.array([run(small, kernel, 1, seed)[0].max(axis=0) for seed in range(5)])
    assert np.all(np.mean(worst > 1, axis=0) > 0.5)


def test_coverage_ratios_match_the_dense_form():
    confidence = Confidence(delta=0.3, norm_reward=1.0, norm_transition=1.0)
    ratios, seen, reward = run(confidence, "se(0.2) @ index(1)", 1, 3)
    points = np.concatenate([s[0] for s in seen])
    targets = np.concatenate([s[1] for s in seen])
    oracle = Dense(km.kernel("se(0.2)"), points, targets, 0.09, points_of(np.arange(40)))
    beta = np.sqrt(1 + 2 * (np.log(3 / 0.3) + oracle.gain))
    error = np.abs(reward - oracle.mean) / (beta * np.sqrt(oracle.variance))
    assert ratios[-1][0] == pytest.approx(error.max(), rel=1e-7)


def test_vector_functions_are_covered_in_every_shape():
    rng = np.random.default_rng(1)
    half = rng.standard_normal((3, 3))
    kernel = f"se(0.2) @ coregional({(half @ half.T / 3).tolist()})"
    for seed in range(2):
        ratios = [
            run(
                Confidence(shape=shape, norm_reward=1.0, norm_transition=1.0),
                kernel,
                3,
                seed,
                episodes=3,
            )[0][:, 1]
            for shape in ("trace", "lmax", "ellipsoid", "box")
        ]
        assert np.all(ratios[0] <= ratios[1] + 1e-9)
        assert np.all(ratios[1] <= ratios[2] + 1e-9)
        assert np.all(ratios[3] <= ratios[2] + 1e-9)
        assert np.max(ratios) < 1
        assert np.min(ratios) > 0


def test_draws_of_the_prior_are_covered_on_a_finite_set():
    """500 functions seen at the same 10 × 5 points: one posterior with 500 columns."""
    rng = np.random.default_rng(0)
    z = np.sort(rng.random(200))[:, None]
    kernel, noise, draws, delta = km.kernel("se(0.1)"), 0.04, 500, 0.3
    K = np.asarray(kernel(z))
    values, vectors = np.linalg.eigh(K)
    truth = (vectors * np.sqrt(np.maximum(values, 0))) @ rng.standard_normal((200, draws))
    held = km.gp.posterior(
        kernel @ km.kernels.Index(draws), noise_variance=noise, dimension=1, engine="exact"
    )
    misses = {1.0: np.zeros(draws, bool), 0.5: np.zeros(draws, bool)}
    for episode in range(1, 11):
        mean, std = map(np.asarray, held.predict(z))
        beta = float(finite_beta(points=200, episode=episode, delta=delta))
        for factor, missed in misses.items():
            missed |= np.any(np.abs(truth - mean) > factor * beta * std + 1e-9, axis=0)
        chosen = np.argsort(-std[:, 0])[rng.integers(40, size=5)]
        noisy = truth[chosen] + np.sqrt(noise) * rng.standard_normal((5, draws))
        held = held.condition(z[chosen], noisy)
    allowed = 0.1 + 3 * np.sqrt(0.1 * 0.9 / draws)
    assert misses[1.0].mean() <= allowed
    assert misses[0.5].mean() > allowed


def test_draws_of_the_prior_are_covered_on_a_box():
    box = km.join(state=km.Box([0.0], [1.0]), action=km.Box([0.0], [1.0]))
    held = beliefs("se(0.5) @ index(1)", domain=box, engine="compiled", tolerance=1e-6)
    confidence = Confidence(setting="gp", shape="lmax", delta=0.3)
    z = jnp.asarray(np.random.default_rng(0).random((50, 2)))
    for seed in range(5):
        truth = held.sample(key=jax.random.key(seed))
        now = held
        for episode in range(1, 4):
            sets = confidence.sets(
                now,
                episode=episode,
                horizon=5,
                domain=box,
                reward_noise=Gaussian(0.2),
                transition_noise=Gaussian(0.2),
            )
            assert sets.contains(truth, z)
            x = np.random.default_rng(seed * 9 + episode).random((5, 2))
            rng = np.random.default_rng(seed)
            prediction = truth(jnp.asarray(x))
            noise = 0.2 * rng.standard_normal((5, 2))
            now = now.condition(x, prediction.reward + noise[:, 0], prediction.state + noise[:, 1:])


def test_a_compiled_kernel_widens_the_sets_by_what_it_may_miss():
    box = km.join(state=km.Box([0.0], [1.0]), action=km.Box([0.0], [0.1]))
    rough = beliefs(
        "se(0.1) @ index(1)",
        domain=box,
        reward_kernel="se(0.1)",
        noise=(1e-3, 1e-3),
        engine="compiled",
        tolerance=0.6,
    )
    error = rough.reward.error
    assert error > 1e-3
    silent = Gaussian(1e-9)
    z = np.column_stack([np.linspace(0, 1, 200), np.zeros(200)])
    missed = np.asarray(km.kernel("se(0.1)")(z)) - np.asarray(rough.reward.covariance(z))
    worst = np.argmax(np.diag(missed))
    # Of norm 1 and invisible to the compiled kernel: what it misses at its worst point.
    f = missed[worst] / np.sqrt(missed[worst, worst])
    assert missed[worst, worst] <= error
    truth = MeanModel(
        lambda q: jnp.asarray(f)[jnp.round(199 * q[:, 0]).astype(int)],
        lambda q: jnp.zeros((q.shape[0], 1)),
    )
    for _ in range(4):
        rough = rough.condition(z[::4], f[::4], np.zeros((50, 1)))
    confidence = Confidence(norm_reward=1.0, norm_transition=1.0)
    sets = confidence.sets(
        rough, episode=5, horizon=50, domain=box, reward_noise=silent, transition_noise=silent
    )
    assert sets.coverage.covered
    assert sets.contains(truth, jnp.asarray(z))
    noise = 1e-9 / np.sqrt(1e-3) * np.sqrt(2 * (np.log(30) + rough.reward.information_gain))
    beta = np.hypot(1, noise)
    assert float(sets.beta_reward) == pytest.approx(beta + np.sqrt(200 * error / 1e-3), rel=1e-9)
    mean, std = rough.reward.predict(z)
    misses = np.abs(f - np.asarray(mean)) > beta * np.asarray(std)
    assert misses.any()  # without widening the truth would have been lost
