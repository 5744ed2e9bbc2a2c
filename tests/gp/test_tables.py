"""One-hot kernels: counts against the formulas and against the engine of any kernel."""

import jax
import jax.numpy as jnp
import numpy as np

import kernelmdp as km
from kernelmdp.gp.table_engine import TableEngine

STATES, ACTIONS = 5, 3
CELLS = km.join(state=km.FiniteSet.range(STATES), action=km.FiniteSet.range(ACTIONS))


def visits(rng, n=40):
    return np.stack([rng.integers(0, STATES, n), rng.integers(0, ACTIONS, n)], axis=1).astype(float)


def onehot():
    return km.kernels.Index(STATES).on("state") * km.kernels.Index(ACTIONS).on("action")


def test_means_are_counts_and_so_are_deviations_and_gain(rng):
    points, regulariser = visits(rng), 2.5
    after = rng.integers(0, STATES, len(points))
    prior = km.gp.posterior(
        onehot() @ km.kernels.Index(STATES), noise_variance=regulariser, domain=CELLS
    )
    assert isinstance(prior.engines[0], TableEngine)
    assert prior.engine == "finite rank"
    posterior = prior.condition(points, np.eye(STATES)[after])
    where = CELLS.spread_points(1)
    mean, std = posterior.predict(where)
    seen = np.zeros((STATES, ACTIONS, STATES))
    np.add.at(seen, (points[:, 0].astype(int), points[:, 1].astype(int), after), 1.0)
    total = seen.sum(axis=2)
    np.testing.assert_allclose(
        mean, (seen / (total + regulariser)[:, :, None]).reshape(-1, STATES), atol=1e-12
    )
    spread = np.sqrt(regulariser / (total + regulariser)).reshape(-1)
    np.testing.assert_allclose(std, np.repeat(spread[:, None], STATES, axis=1), atol=1e-12)
    gain = STATES / 2 * np.log1p(total / regulariser).sum()
    np.testing.assert_allclose(posterior.information_gain, gain, atol=1e-10)


def test_the_same_as_any_other_engine(rng):
    points, targets = visits(rng), rng.normal(size=(40, 3))
    kernel = (0.3 * onehot()) @ km.kernels.Index(3)
    kinds = [
        km.gp.posterior(kernel, noise_variance=0.2, domain=CELLS, engine=engine)
        for engine in ("auto", "exact")
    ]
    table, exact = (
        p.condition(points[:20], targets[:20]).condition(points[20:], targets[20:]) for p in kinds
    )
    where = CELLS.spread_points(1)
    for ours, theirs in zip(table.predict(where), exact.predict(where), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)
    np.testing.assert_allclose(table.covariance(where), exact.covariance(where), atol=1e-10)
    np.testing.assert_allclose(table.information_gain, exact.information_gain, atol=1e-9)


def test_draws_are_one_function_with_the_posterior_law(rng):
    points, targets = visits(rng), rng.normal(size=40)
    posterior = km.gp.posterior(onehot(), noise_variance=0.5, domain=CELLS).condition(
        points, targets
    )
    where = CELLS.spread_points(1)
    function = posterior.sample(key=jax.random.key(1))
    assert jnp.array_equal(function(where), function(where))
    keys = jax.random.split(jax.random.key(0), 400)
    draws = np.asarray(jax.jit(jax.vmap(lambda k: posterior.sample(key=k)(where)))(keys))
    mean, std = posterior.predict(where)
    error = np.abs(draws.mean(axis=0) - np.asarray(mean)) / (np.asarray(std) / 20)
    assert error.max() < 4
    together = np.asarray(posterior.sample_at(where, key=jax.random.key(2), draws=2000))
    np.testing.assert_allclose(together.std(axis=0), std, rtol=0.12)


def test_a_table_of_thousands_of_cells_is_no_matter():
    states, actions = 500, 6
    cells = km.join(state=km.FiniteSet.range(states), action=km.FiniteSet.range(actions))
    kernel = km.kernels.Index(states).on("state") * km.kernels.Index(actions).on("action")
    posterior = km.gp.posterior(kernel, noise_variance=1.0, domain=cells)
    posterior = posterior.condition([[7.0, 2.0], [7.0, 2.0]], [1.0, 3.0])
    mean, std = posterior.predict([[7.0, 2.0], [7.0, 3.0]])
    np.testing.assert_allclose(mean, [4 / 3, 0.0])
    np.testing.assert_allclose(std, [3**-0.5, 1.0])


def test_one_hot_noise_is_sub_gaussian():
    """ln E exp(ηᵀ(e − p)) ≤ |η|²/4."""
    rng = np.random.default_rng(7)
    for _ in range(3000):
        k = rng.integers(2, 12)
        p = rng.dirichlet(np.full(k, 10 ** rng.uniform(-1, 1)))
        eta = rng.normal(size=k) * 10 ** rng.uniform(-2, 1.5)
        top = eta.max()
        left = np.log(np.sum(p * np.exp(eta - top))) + top - eta @ p
        assert left <= eta @ eta / 4 + 1e-12
