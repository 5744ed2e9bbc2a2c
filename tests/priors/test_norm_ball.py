"""Norm balls: both methods against quadrature, and calibrated.

Simulation-based calibration): truths drawn from the prior, ranked among draws
from the posterior that their data give, must have uniform ranks.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.numerics.modules import replace_fields
from kernelmdp.priors import NormBall, norm_ball
from kernelmdp.priors.norm_ball import _reject, _slices
from kernelmdp.priors.weight_space import weight_space_function
from tests.priors import toy

BOUND, SIZE, REPLICATIONS, DRAWS, STEPS = 1.2, 0.7, 200, 9, 20
FEATURES = jnp.asarray(toy.FEATURES)


@pytest.mark.parametrize("method", ["rejection", "elliptical"])
def test_quadrature_and_calibration(method, monkeypatch):
    monkeypatch.setattr(norm_ball, "BATCH", 16)
    prior = km.gp.posterior(
        km.kernels.Linear(), noise_variance=SIZE**2, domain=km.Box([-1.0] * 2, [1.0] * 2)
    )
    (columns,) = weight_space_function(prior, [SIZE]).groups
    ball = NormBall(norm_reward=BOUND, method="rejection", chains=DRAWS)
    start, _ = ball.start(columns, toy.setting(), "reward", key=jax.random.key(0))

    def one(targets, key):
        own = replace_fields(start, statistics=start.statistics.after(FEATURES, targets[:, None]))
        if method == "elliptical":
            positions, found = _slices(own, STEPS, key)
            return positions[:, :, 0], found.acceptance
        drawn, found, tried = jax.vmap(lambda k: _reject(own, k))(jax.random.split(key, DRAWS))
        return drawn[:, :, 0], jnp.mean(found / tried)

    run = jax.jit(jax.vmap(one, in_axes=(1, 0)))
    # The same data every time: independent draws from one posterior.
    keys = jax.random.split(jax.random.key(1), REPLICATIONS)
    same = jnp.tile(jnp.asarray(toy.TARGETS)[:, None], (1, REPLICATIONS))
    drawn, acceptance = run(same, keys)
    drawn = np.asarray(drawn).reshape(-1, 2)
    assert (np.linalg.norm(drawn, axis=1) <= BOUND).all()
    assert 0 < np.mean(acceptance) < 1
    places = toy.square(half=1.25)
    residuals = (toy.TARGETS[None] - places @ toy.FEATURES.T) / SIZE
    logs = -0.5 * np.sum(residuals**2, axis=1) - 0.5 * np.sum(places**2, axis=1)
    inside = np.sum(places**2, axis=1) <= BOUND**2
    toy.assert_drawn_from(drawn, places, np.where(inside, logs, -np.inf))
    # Truths from the prior, and data of their own.
    weight_key, noise_key, key = jax.random.split(jax.random.key(2), 3)
    many = jax.random.normal(weight_key, (20 * REPLICATIONS, 2))
    truth = many[jnp.linalg.norm(many, axis=1) <= BOUND][:REPLICATIONS].T
    noise = SIZE * jax.random.normal(noise_key, (4, REPLICATIONS))
    drawn = run(FEATURES @ truth + noise, jax.random.split(key, REPLICATIONS))[0]
    for i in range(2):
        assert toy.uniform_p(toy.ranks(truth[i], drawn[:, :, i].T), DRAWS) > toy.LEAST
