"""Simulation-based calibration (math G 49, A8(k)): truths drawn from the prior, ranked among
draws from the posterior that their data give, must have uniform ranks."""

import jax
import jax.numpy as jnp
import pytest

from kernelmdp.mdp import StudentT
from kernelmdp.numerics.modules import changed
from kernelmdp.priors import HeavyTails, Hyperparameters, NormBall, UnknownNoise, heavy_tails
from kernelmdp.priors.hyperparameters import _chains, draw_given, factors_of, prior_root
from kernelmdp.priors.norm_ball import _reject, _slices
from kernelmdp.priors.statistics import Statistics
from kernelmdp.priors.unknown_noise import draw_weights
from tests.priors import toy

LEAST = 1e-3


def watched(columns, weights):
    """Function values (points, ..., p) from weights (..., r, p)."""
    return jnp.einsum("kr,...rp->k...p", columns.features(toy.WATCHED), weights)


def test_heavy_tails(monkeypatch):
    monkeypatch.setattr(heavy_tails, "ROOM", toy.N)  # no padding: many chains run side by side
    replications, draws = 400, 19
    columns = toy.columns(replications)
    weight_key, noise_key, start_key, key = jax.random.split(jax.random.key(0), 4)
    truth = jax.random.normal(weight_key, (columns.rank, replications))
    features = columns.features(toy.POINTS)
    noise = toy.SIZE * jax.random.t(noise_key, 3.0, (toy.N, replications))
    prior = HeavyTails(chains=draws)
    start, _ = prior.start(columns, toy.setting(StudentT(toy.SIZE)), "reward", key=start_key)
    (seen, _), _ = prior.update(start, features, features @ truth + noise, key=key)
    for true, drawn in zip(watched(columns, truth), watched(columns, seen.positions), strict=True):
        assert toy.uniform_p(toy.ranks(true, drawn), draws) > LEAST


def test_unknown_noise():
    replications, draws = 400, 19
    columns = toy.columns(replications)
    prior = UnknownNoise()
    weight_key, variance_key, noise_key, key = jax.random.split(jax.random.key(1), 4)
    truth = jax.random.normal(weight_key, (columns.rank, replications))
    rate = prior.shape * toy.SIZE**2
    variances = rate / jax.random.gamma(variance_key, prior.shape, (replications,))
    features = columns.features(toy.POINTS)
    noise = jnp.sqrt(variances)[None, :] * jax.random.normal(noise_key, (toy.N, replications))
    start, _ = prior.start(columns, toy.setting(), "reward", key=key)
    learned, found = prior.update(start, features, features @ truth + noise, key=key)
    assert found.mixed
    drawn, levels = jax.vmap(lambda k: draw_weights(learned, k))(jax.random.split(key, draws))
    for true, values in zip(watched(columns, truth), watched(columns, drawn), strict=True):
        assert toy.uniform_p(toy.ranks(true, values), draws) > LEAST
    assert toy.uniform_p(toy.ranks(variances, levels), draws) > LEAST


@pytest.mark.parametrize("method", ["rejection", "elliptical"])
def test_norm_ball(method):
    replications, draws, bound = 200, 9, 2.0
    columns = toy.columns()
    features = columns.features(toy.POINTS)
    weight_key, noise_key, key = jax.random.split(jax.random.key(2), 3)
    many = jax.random.normal(weight_key, (20 * replications, columns.rank))
    truth = many[jnp.linalg.norm(many, axis=1) <= bound][:replications].T
    assert truth.shape[1] == replications
    noise = toy.SIZE * jax.random.normal(noise_key, (toy.N, replications))
    prior = NormBall(norm_reward=bound, method=method, chains=draws, steps=40)
    start, _ = prior.start(columns, toy.setting(), "reward", key=key)

    def one(targets, key):
        own = changed(start, statistics=start.statistics.after(features, targets[:, None]))
        if method == "elliptical":
            return _slices(own, 40, key)[0][:, :, 0]
        each = jax.random.split(key, draws)
        return jax.vmap(lambda k: _reject(own, k)[0][:, 0])(each)

    keys = jax.random.split(key, replications)
    drawn = jax.vmap(one, in_axes=(1, 0))(features @ truth + noise, keys)
    assert jnp.max(jnp.linalg.norm(drawn, axis=2)) <= bound * (1 + 1e-9)
    weights = jnp.transpose(drawn, (1, 2, 0))
    for true, values in zip(watched(columns, truth), watched(columns, weights), strict=True):
        assert toy.uniform_p(toy.ranks(true, values), draws) > LEAST


def test_hyperparameters():
    replications, draws = 150, 9
    prior = Hyperparameters(lengthscale=0.3, signal=0.5, noise=0.4, chains=draws)
    columns = toy.columns()  # compiled for lengthscales SHORTER deviations below the prior's middle
    features = columns.features(toy.POINTS)
    start_key, theta_key, weight_key, noise_key, key = jax.random.split(jax.random.key(3), 5)
    start, _ = prior.start(columns, toy.setting(), "reward", key=start_key)
    thetas = start.spreads[None, :] * jax.random.normal(theta_key, (replications, 3))

    def simulate(theta, weight_key, noise_key):
        factors = factors_of(prior, theta)
        root = prior_root(prior, columns, factors)
        weights = root @ jax.random.normal(weight_key, (columns.rank,))
        sizes = toy.SIZE * jnp.exp(0.5 * factors[2])
        return weights, features @ weights + sizes * jax.random.normal(noise_key, (toy.N,))

    def one(targets, key):
        chain_key, draw_key, start_key = jax.random.split(key, 3)
        own = changed(
            start,
            statistics=Statistics.none(columns).after(features, targets[:, None]),
            positions=start.spreads[None, :] * jax.random.normal(start_key, (draws, 3)),
        )
        positions = _chains(prior, own, 10, chain_key)[1]
        keys = jax.random.split(draw_key, draws)
        drawn = jax.vmap(lambda t, k: draw_given(prior, own, t, key=k)[:, 0])(positions, keys)
        return positions, drawn

    keys = [jax.random.split(k, replications) for k in (weight_key, noise_key, key)]
    truth, targets = jax.vmap(simulate)(thetas, keys[0], keys[1])
    positions, drawn = jax.jit(jax.vmap(one))(targets, keys[2])
    for i in range(3):
        found = toy.ranks(thetas[:, i], positions[:, :, i].T)
        assert toy.uniform_p(found, draws) > LEAST
    weights = jnp.transpose(drawn, (1, 2, 0))
    for true, values in zip(watched(columns, truth.T), watched(columns, weights), strict=True):
        assert toy.uniform_p(toy.ranks(true, values), draws) > LEAST


def test_the_test_finds_a_wrong_posterior():
    """Gaussian draws for Student-t noise, believed too small: ranks pile up at the ends."""
    replications, draws = 400, 19
    columns = toy.columns(replications, size=0.5 * toy.SIZE)
    weight_key, noise_key, key = jax.random.split(jax.random.key(4), 3)
    truth = jax.random.normal(weight_key, (columns.rank, replications))
    features = columns.features(toy.POINTS)
    noise = toy.SIZE * jax.random.t(noise_key, 3.0, (toy.N, replications))
    seen = Statistics.none(columns).after(features, features @ truth + noise)
    spectrum = seen.spectrum()
    mean, spread = spectrum.moments(columns.sizes**2)
    drawn = mean[None] + spread[None] * jax.random.normal(key, (draws, *mean.shape))
    values = watched(columns, jnp.einsum("rq,dqp->drp", spectrum.vectors, drawn))
    assert toy.uniform_p(toy.ranks(watched(columns, truth)[0], values[0]), draws) < LEAST
