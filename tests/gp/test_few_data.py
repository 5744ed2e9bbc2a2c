"""Predictions from few data: exact, without new programs, and never from data of others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.gp import compilation

from .dense import Dense
from .test_contract import compilations

BOX = km.Box([0.0] * 3, [1.0] * 3)
NOISE = 0.01
SE = km.kernels.SquaredExponential(0.28)


@pytest.fixture(autouse=True, scope="module")
def _coarse_net():
    """The net only measures the error that a kernel reports, and no test here reads it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilation, "NET", 10_000)
        yield
    compilation._compile.cache_clear()  # other tests must not get these errors


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.random((n, 3))
    return points, np.sin(5 * points[:, 0]) + 0.1 * rng.standard_normal(n)


def prior(kernel=SE, **kwargs):
    return km.gp.posterior(kernel, noise_variance=NOISE, domain=BOX, **kwargs)


QUERIES = np.random.default_rng(9).random((1000, 3))


def matches_exactly(posterior, kernel, points, targets):
    oracle = Dense(kernel, points, targets, NOISE, QUERIES)
    mean, std = posterior.predict(QUERIES)
    return bool(
        np.abs(np.asarray(mean) - oracle.mean).max() < 1e-9
        and np.abs(np.asarray(std) ** 2 - oracle.variance).max() < 1e-10
    )


def test_few_data_are_exact_and_more_come_from_the_compiled_kernel():
    posterior = prior()
    assert posterior.engine == "compiled"
    assert 256 <= posterior.rank < 512
    points, targets = data(400)
    for start in range(0, 400, 50):
        more = slice(start, start + 50)
        posterior = posterior.condition(points[more], targets[more])
        seen = points[: start + 50], targets[: start + 50]
        assert matches_exactly(posterior, SE, *seen) == (start + 50 <= 256)
        # The switch is within the error of the kernel.
        oracle = Dense(SE, *seen, NOISE, QUERIES)
        np.testing.assert_allclose(
            posterior.predict(QUERIES)[1], np.sqrt(oracle.variance), rtol=0.01
        )
    assert posterior.engine == "compiled"
    assert posterior.count == 400


def test_nothing_is_compiled_at_the_switch():
    points, targets = data(400)
    posterior = prior()

    def learn(posterior, start):
        posterior = posterior.condition(points[start : start + 50], targets[start : start + 50])
        posterior.predict(QUERIES)
        posterior.predict(QUERIES[:20])
        return posterior

    for start in (0, 50):
        posterior = learn(posterior, start)

    def rest(posterior=posterior):
        for start in range(100, 400, 50):
            posterior = learn(posterior, start)
        return posterior

    assert compilations(rest)[0] == 0


def test_too_many_at_once_and_by_name_it_is_the_compiled_kernel():
    points, targets = data(300)
    for posterior in (
        prior().condition(points, targets),
        prior(engine="compiled").condition(points[:60], targets[:60]),
        prior(dtype="float32").condition(points[:60], targets[:60]),
    ):
        count = posterior.count
        assert not matches_exactly(posterior, SE, points[:count], targets[:count])


def test_data_seen_inside_jit_are_not_forgotten():
    points, targets = data(60)
    first = prior().condition(points[:20], targets[:20])
    learn = jax.jit(lambda posterior, x, y: posterior.condition(x, y))
    inside = learn(first, jnp.asarray(points[20:40]), jnp.asarray(targets[20:40]))
    after = inside.condition(points[40:], targets[40:])
    expected = prior(engine="compiled").condition(points, targets)
    assert after.count == 60
    for got, same in zip(after.predict(QUERIES), expected.predict(QUERIES), strict=True):
        np.testing.assert_allclose(got, same, atol=1e-9)


def test_a_cache_is_used_instead():
    points, targets = data(60)
    posterior = prior().cache_at(QUERIES, moments=True).condition(points, targets)
    expected = prior(engine="compiled").condition(points, targets)
    for got, same in zip(posterior.predict(QUERIES), expected.predict(QUERIES), strict=True):
        np.testing.assert_allclose(got, same, atol=1e-9)


def test_prior_without_data():
    mean, std = prior().predict(QUERIES)
    np.testing.assert_allclose(mean, 0)
    np.testing.assert_allclose(std, 1, rtol=1e-3)


@pytest.mark.parametrize(
    "outputs",
    [km.kernels.Coregional([[1.0, 0.4], [0.4, 0.5]]), km.kernel("se(0.28) @ index(2)")],
    ids=["rotated", "shared"],
)
def test_several_outputs_and_a_mean(outputs):
    kernel = SE @ outputs if isinstance(outputs, km.kernels.Coregional) else outputs
    points, targets = data(90)
    both = np.stack([targets, 1 - targets], axis=1)
    line = lambda z: jnp.stack([z[0], 2 * z[1]])  # noqa: E731
    posterior = prior(kernel, mean=line)
    assert posterior.few_data is not None
    after = posterior.condition(points[:40], both[:40]).condition(points[40:], both[40:])
    dense = lambda z: np.stack([z[:, 0], 2 * z[:, 1]], axis=1)  # noqa: E731
    oracle = Dense(kernel, points, both, NOISE, QUERIES, mean=dense)
    mean, std = after.predict(QUERIES)
    np.testing.assert_allclose(mean, oracle.mean, atol=1e-8)
    np.testing.assert_allclose(std, np.sqrt(oracle.variance), rtol=1e-6)
