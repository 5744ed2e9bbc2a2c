"""Compilation to finite rank: the stated error holds, is labelled, and the choice is automatic."""

import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.errors import CompilationError, DomainError


def unit(d):
    return km.Box([0.0] * d, [1.0] * d)


def residual(compilation, points):
    kernel, centres = compilation.kernel, compilation.centres
    across = np.asarray(kernel(points, centres)) @ compilation.root
    return np.asarray(kernel(points)) - across @ across.T


@pytest.mark.parametrize(
    ("text", "dimension", "tolerance"),
    [
        ("se(0.3)", 1, 1e-9),
        ("matern(0.5, 0.5)", 1, 1e-2),
        ("(se(0.5)[0] + matern(2.5, 1.0)[1]) * linear[0]", 2, 1e-5),
        ("se(0.8)", 3, 1e-5),
        ("periodic(1.0, 1.0) * se(1.0)", 2, 1e-4),
    ],
)
def test_certified_error_bounds_every_entry(text, dimension, tolerance):
    made = km.gp.compile_kernel(km.kernel(text), unit(dimension), tolerance=tolerance)
    assert made.kind == "certified"
    rng = np.random.default_rng(0)
    points = rng.random((800, dimension))
    points[:200] = np.round(points[:200])  # corners, where the residual is largest
    left = residual(made, points)
    assert np.abs(left).max() <= made.error
    assert np.linalg.eigvalsh(left).min() > -1e-9  # k − k_r is itself a kernel
    assert made.error < 30 * tolerance  # and the bound is not an empty one


def test_without_constants_or_in_many_dimensions_the_error_is_empirical():
    own = km.kernels.Function(lambda x, y: jnp.exp(-jnp.sum((x - y) ** 2)), name="own")
    assert km.gp.compile_kernel(own, unit(2), tolerance=1e-3).kind == "empirical"
    five = km.gp.compile_kernel(km.kernel("se(2.0)"), unit(5), tolerance=1e-3)
    assert five.kind == "empirical"
    points = np.random.default_rng(1).random((800, 5))
    assert np.abs(residual(five, points)).max() <= 2 * five.error


def test_a_finite_domain_is_compiled_exactly():
    points = np.random.default_rng(0).random((30, 3))
    made = km.gp.compile_kernel(km.kernel("matern(0.5, 0.5)"), km.FiniteSet(points), tolerance=1e-9)
    assert made.rank == 30
    assert made.kind == "certified"
    assert np.abs(residual(made, points)).max() < 1e-8


def test_the_engine_is_chosen_by_rank_and_says_so():
    rough = km.kernel("matern(0.5, 0.02)")
    chosen = km.gp.posterior(rough, noise_variance=0.01, domain=unit(2), rank_limit=50)
    assert (chosen.engine, chosen.error) == ("exact", 0.0)
    with pytest.raises(CompilationError, match="rank_limit = 50"):
        km.gp.posterior(
            rough, noise_variance=0.01, domain=unit(2), rank_limit=50, engine="compiled"
        )
    smooth = km.gp.posterior(km.kernel("se(0.5)"), noise_variance=0.01, domain=unit(2))
    assert smooth.engine == "compiled"
    assert 20 < smooth.rank < 60
    assert 0 < smooth.error < 1e-4
    assert "compiled" in repr(smooth)
    assert "certified" in repr(smooth)
    linear = km.gp.posterior(km.kernel("linear"), noise_variance=0.01, domain=unit(2))
    assert (linear.engine, linear.rank, linear.error) == ("finite rank", 2, 0.0)


def test_results_are_remembered():
    kernel = km.kernel("se(0.37)")
    first = km.gp.compile_kernel(kernel, unit(1), tolerance=1e-5)
    assert km.gp.compile_kernel(km.kernel("se(0.37)"), unit(1), tolerance=1e-5) is first
    assert km.gp.compile_kernel(km.kernel("se(0.38)"), unit(1), tolerance=1e-5) is not first


def test_points_outside_the_compiled_domain_are_refused():
    posterior = km.gp.posterior(km.kernel("se(0.5)"), noise_variance=0.01, domain=unit(2))
    with pytest.raises(DomainError, match=r"coordinate 1 = 1\.25, outside by 0\.25"):
        posterior.predict([[0.5, 0.5], [0.5, 1.25]])
    with pytest.raises(DomainError, match="coordinate 0"):
        posterior.condition([[-0.5, 0.5]], [0.0])
    posterior.predict([[1.0 + 1e-12, 0.0]])  # round-off of a clip is no error
