"""Both precisions, little noise, repeated points: a right number or a named error, never NaN."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.errors import ApproximationWarning, PositiveDefiniteError

BOX = km.Box([0.0, 0.0], [1.0, 1.0])


def data(n=60):
    rng = np.random.default_rng(0)
    points = rng.random((n, 2))
    return points, np.sin(5 * points[:, 0]) + points[:, 1], rng.random((40, 2))


def test_importing_the_package_switches_to_64_bits():
    assert jnp.zeros(1).dtype == jnp.float64
    assert (
        km.gp.posterior(km.kernel("linear"), noise_variance=1.0, dimension=1).dtype == jnp.float64
    )


@pytest.mark.parametrize(
    ("engine", "text", "outputs"),
    [
        ("exact", "se(0.5)", ""),
        ("compiled", "se(0.5)", ""),
        ("finite rank", "quadratic + linear", " @ index(2)"),
    ],
)
def test_float32_agrees_with_float64(engine, text, outputs):
    kernel = km.kernel(f"({text}){outputs}" if outputs else text)
    points, targets, queries = data()
    if outputs:
        targets = np.c_[targets, -targets]
    results = {}
    for dtype in ("float64", "float32"):
        posterior = km.gp.posterior(
            kernel, noise_variance=0.05, domain=BOX, engine=engine, tolerance=1e-4, dtype=dtype
        )
        for start in range(0, 60, 20):
            posterior = posterior.condition(points[start : start + 20], targets[start : start + 20])
        mean, std = posterior.predict(queries)
        draw = posterior.sample(key=jax.random.key(0))(queries)
        for value in (mean, std, draw):
            assert value.dtype == jnp.dtype(dtype)
            assert bool(jnp.all(jnp.isfinite(value)))
        results[dtype] = (np.asarray(mean), np.asarray(std), posterior.information_gain)
    for single, double in zip(results["float32"], results["float64"], strict=True):
        np.testing.assert_allclose(single, double, atol=2e-3)


def test_lost_positive_definiteness_is_an_error_and_the_posterior_survives():
    points, targets, queries = data()
    before = km.gp.posterior(
        km.kernel("se(0.5)"), noise_variance=1e-7, domain=BOX, engine="exact", dtype="float32"
    ).condition(points[:3], targets[:3])
    kept = before.predict(queries)
    with pytest.raises(PositiveDefiniteError, match="float64"):
        before.condition(np.repeat(points, 3, axis=0), np.repeat(targets, 3))
    np.testing.assert_array_equal(before.predict(queries)[0], kept[0])
    assert before.count == 3


def test_lost_positive_definiteness_is_an_error_inside_jit_too():
    bad = km.kernels.Function(lambda x, y: -jnp.dot(x, y), name="negative", variance_bound=1.0)
    engine = km.gp.posterior(bad, noise_variance=0.1, dimension=2)
    points, targets, _ = data(8)
    with pytest.raises(PositiveDefiniteError):
        engine.condition(points, targets)
    assert engine.count == 0


def test_float32_variances_in_weight_space_never_cancel():
    # Signal 5, noise 0.01: in 32 bits k(z, z) − ‖·‖² is mostly negative here; a sum of squares not.
    rng = np.random.default_rng(1)
    points = rng.random((400, 2))
    kernel = 25.0 * km.kernels.SquaredExponential(0.7)
    kwargs = {"noise_variance": 1e-4, "domain": BOX, "tolerance": 1e-3}
    single, double = (
        km.gp.posterior(kernel, dtype="float32", **kwargs),
        km.gp.posterior(kernel, **kwargs),
    )
    for some in np.split(points, 20):
        single, double = (p.condition(some, some[:, 0]) for p in (single, double))
    ratio = np.asarray(single.predict(points)[1]) / np.asarray(double.predict(points)[1])
    assert ratio.min() > 0.5
    assert ratio.max() < 2.0


@pytest.mark.parametrize("engine", ["exact", "compiled"])
def test_repeated_points_with_tiny_noise(engine):
    points, targets, queries = data(20)
    make = lambda: km.gp.posterior(  # noqa: E731
        km.kernel("se(0.5)"), noise_variance=1e-10, domain=BOX, engine=engine, tolerance=1e-8
    )
    if engine == "exact":
        with pytest.warns(ApproximationWarning, match="jitter"):
            prior = make()
        assert prior.jitter == pytest.approx(1e-10)
    else:
        prior = make()
        assert prior.jitter == 0
    posterior = prior
    for _ in range(4):
        posterior = posterior.condition(points, targets)
    mean, std = posterior.predict(np.concatenate([points, queries]))
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert np.isfinite(posterior.information_gain)
    np.testing.assert_allclose(mean[:20], targets, atol=1e-3)
