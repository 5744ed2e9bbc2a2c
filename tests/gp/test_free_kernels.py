"""Kernel expressions with free parameters: fitted, and posteriors of what was fitted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import kernelmdp as km
from kernelmdp.errors import ArgumentError, ShapeError, UnknownPropertyError
from kernelmdp.gp.fit_config import InducingConfig, SearchConfig
from kernelmdp.gp.fitting import (
    DYNAMICS,
    ARDFamily,
    bounded,
    fit,
    fitting_blocks,
    log_likelihood,
    objective,
    prior_median,
)
from kernelmdp.gp.free_kernels import free_kernel
from kernelmdp.gp.inducing_points import select_inducing_points
from kernelmdp.gp.inducing_posterior import inducing_posterior

from .dense import Dense, Projected, assert_matches
from .test_contract import compilations

TEXT = "se([0.5, 0.8])[0, 1] * linear[2] + 0.3 * linear[0]"


def family(text=TEXT, sizes=(1.0,), **words):
    texts = [text] if isinstance(text, str) else text
    kernels = [km.kernel(each) for each in texts]
    made = kernels[0] if isinstance(text, str) else kernels
    return free_kernel(made, **{"sizes": sizes, "dimension": 3} | words)


def points(n, seed=0):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, size=(n, 3))


def drawn(text, n, noise, seed=0):
    """Points, and noisy values of a function drawn from the prior."""
    rng = np.random.default_rng(seed)
    x = points(n, seed)
    matrix = np.asarray(km.kernel(text)(x)) + 1e-10 * np.eye(n)
    return x, np.linalg.cholesky(matrix) @ rng.normal(size=n) + noise * rng.normal(size=n)


def fitted(own, x, y, **words):
    blocks = fitting_blocks(x, y, most=len(x), blocks=1, key=jax.random.key(0))
    return fit(own, DYNAMICS, *blocks, prior_median(own, DYNAMICS), **words)


def test_parameters_are_named_and_begin_where_they_were_given():
    own = family()
    assert own.names == (
        ("left.left.kernel.lengthscale[0]", "left.left.kernel.lengthscale[1]", "right.factor"),
    )
    start = np.exp(prior_median(own, DYNAMICS))
    np.testing.assert_allclose(start, [[0.5, 0.8, 0.3, 1.0, 0.01]])
    text = own.kernels_at(jnp.asarray(np.log(start))).kernels()[0].text()
    np.testing.assert_allclose(km.kernel(text)(points(4)), km.kernel(TEXT)(points(4)))


def test_periods_are_free_only_when_asked_for():
    text = "periodic(1.0, 2.0)[0]"
    assert family(text).names == (("kernel.lengthscale",),)
    assert family(text, fixed=()).names == (("kernel.lengthscale", "kernel.period"),)


def test_the_likelihood_is_that_of_the_normal_law_and_has_its_slope():
    own = family(sizes=[2.0])
    x, y = drawn(TEXT, 40, 0.1)
    here = np.log([0.4, 0.9, 0.5, 0.7, 0.1])
    counted = (np.arange(40) < 30).astype(float)

    def value(logs):
        return log_likelihood(own.kernels_at(logs[None]), *map(jnp.asarray, (x, y, counted)))

    def dense(logs):
        a, b, c, signal, noise = np.exp(logs)
        kernel = km.kernel(f"se([{a}, {b}])[0, 1] * linear[2] + {c} * linear[0]")
        matrix = (2 * signal) ** 2 * np.asarray(kernel(x[:30]))
        matrix += ((2 * noise) ** 2 + 1e-9 * (2 * signal) ** 2) * np.eye(30)
        return stats.multivariate_normal(np.zeros(30), matrix).logpdf(y[:30])

    assert float(value(jnp.asarray(here))) == pytest.approx(dense(here), rel=1e-9)
    slope = jax.grad(value)(jnp.asarray(here))
    for j, step in enumerate(1e-5 * np.eye(5)):
        change = (dense(here + step) - dense(here - step)) / 2e-5
        assert float(slope[j]) == pytest.approx(change, rel=1e-4, abs=1e-4)


def test_known_parameters_are_found_within_their_errors():
    """Errors by the curvature of the loss at its minimum (Laplace), in logarithms."""
    truth = "se([0.4, 1.5])[0, 1] * linear[2] + 0.8 * linear[0]"
    x, y = drawn(truth, 200, 0.05, seed=3)
    own = family("se([1.0, 1.0])[0, 1] * linear[2] + 0.2 * linear[0]")
    logs = fitted(own, x, y[:, None], config=SearchConfig(steps=60))
    rows = jnp.asarray(own.parameter_priors(DYNAMICS)[0])
    blocks = [jnp.asarray(each) for each in (x[None], y[None], np.ones((1, 200)))]
    loss = objective(own, *blocks, rows)
    low, high = np.log(rows[:, 2]), np.log(rows[:, 3])
    share = (logs[0] - low) / (high - low)
    free = np.log(share) - np.log1p(-share)
    slope = jax.jit(jax.grad(loss))
    step = 1e-4
    curvature = np.stack(
        [
            (np.asarray(slope(jnp.asarray(free + e))) - np.asarray(slope(jnp.asarray(free - e))))
            for e in step * np.eye(5)
        ]
    ) / (2 * step)
    assert np.abs(np.asarray(slope(jnp.asarray(free)))).max() < 0.1  # a minimum
    reach = np.diag(jax.jacobian(bounded)(jnp.asarray(free), rows))
    errors = np.sqrt(np.diag(np.linalg.inv((curvature + curvature.T) / 2))) * reach
    wanted = np.log([0.4, 1.5, 0.8, 1.0, 0.05])
    assert (errors[:2] < 0.5).all()
    assert (np.abs(logs[0] - wanted) < 4 * errors).all()
    assert errors[4] < 0.1


def test_a_kernel_linear_in_the_action_extrapolates_where_the_square_does_not():
    rng = np.random.default_rng(1)
    x = points(80, seed=1) * np.array([1.0, 1.0, 0.3])  # small actions only
    truth = lambda z: np.sin(2 * z[:, 0]) * z[:, 2]  # noqa: E731
    y = (truth(x) + 0.005 * rng.normal(size=80))[:, None]
    size = [float(np.sqrt(np.mean(y**2)))]
    z = points(50, seed=2) * np.array([0.9, 0.9, 0.0]) + np.array([0.0, 0.0, 2.0])
    errors = {}
    ard_family = ARDFamily(jnp.full(3, 2.0), jnp.asarray(size), jnp.ones(3), ())
    linear = family("se([1.0, 1.0])[0, 1] * linear[2]", sizes=size)
    for name, own in (("linear", linear), ("square", ard_family)):
        shape = own.kernels_at(jnp.asarray(fitted(own, x, y)))
        known = inducing_posterior(shape, x, np.ones(80), x, y, scalar=True, block=32)
        mean, _ = known.predict(z)
        errors[name] = float(np.sqrt(np.mean((np.asarray(mean) - truth(z)) ** 2)))
    assert errors["linear"] < 0.1 * np.std(truth(z))
    assert errors["square"] > 5 * errors["linear"]


def example(texts=(TEXT, "matern(2.5, 0.7)"), n=20):
    """Two outputs with expressions of different numbers of parameters."""
    own = family(list(texts), sizes=(2.0, 0.5))
    x = points(n, seed=4)
    y = np.stack([x[:, 0] * x[:, 2], np.cos(2 * x[:, 1])], axis=1)
    logs = np.log([[0.5, 0.8, 0.3, 1.0, 0.1], [0.7, 1.0, 1.0, 1.2, 0.2]])
    return own.kernels_at(jnp.asarray(logs)), x, y, points(7, seed=5)


def test_with_all_data_as_centres_it_is_the_exact_posterior():
    shape, x, y, z = example()
    kernel = km.kernels.Independent(shape.kernels())
    noise = np.asarray(shape.noise) ** 2
    posterior = inducing_posterior(shape, x, np.ones(20), x, y, scalar=False, block=8)
    assert_matches(posterior, Dense(kernel, x, y, noise, z), z, 1e-5)
    assert km.kernel(str(posterior.kernel)).outputs == 2


@pytest.mark.parametrize("shared", [False, True])
def test_on_few_centres_it_is_the_projected_process(shared):
    texts = (TEXT, TEXT) if shared else (TEXT, "matern(2.5, 0.7)")
    shape, x, y, z = example(texts)
    centres = np.pad(x[:6], ((0, 4), (0, 0)))
    posterior = inducing_posterior(
        shape, centres, np.array([1.0] * 6 + [0.0] * 4), x, y, scalar=False, block=8
    )
    kernels = shape.kernels()
    jitters = [1e-8 * float(np.max(kernel.diagonal(x[:6]))) for kernel in kernels]
    noises = np.tile(np.asarray(shape.noise) ** 2, (20, 1))
    assert_matches(posterior, Projected(kernels, x[:6], jitters, x, y, noises, z), z, 1e-6)


def test_one_expression_for_all_outputs_is_the_same_as_one_for_each():
    logs = jnp.asarray(np.log([[0.5, 0.8, 0.3, 1.0, 0.1], [0.7, 1.0, 1.0, 1.2, 0.2]]))
    one, two = (
        family(TEXT, (2.0, 0.5)).kernels_at(logs),
        family([TEXT] * 2, (2.0, 0.5)).kernels_at(logs),
    )
    x = jnp.asarray(points(5))
    np.testing.assert_allclose(one.gram(x, x), two.gram(x, x), rtol=1e-12)
    np.testing.assert_allclose(one.variances(x), two.variances(x), rtol=1e-12)
    assert [k.text() for k in one.kernels()] == [k.text() for k in two.kernels()]


def test_outputs_are_fitted_each_for_itself():
    """A place that an expression does not use stays at its median and changes nothing else."""
    x, y = drawn(TEXT, 60, 0.05)
    _, other = drawn("se(0.8)", 60, 0.05)
    both = family([TEXT, "se(0.5)"], sizes=(1.0, 1.0))
    logs = fitted(both, x, np.stack([y, other], axis=1))
    alone = fitted(family("se(0.5)"), x, other[:, None])
    np.testing.assert_allclose(logs[1, [0, 3, 4]], alone[0], atol=1e-3)
    np.testing.assert_allclose(logs[1, 1:3], 0.0, atol=1e-3)
    assert both.names[1] == ("lengthscale",)


def many_draws(posterior, z, key, count=4000):
    """Draws at z. Most of the time goes into random numbers, so this program is optimised."""
    draw = lambda key: posterior.sample(key=key)(jnp.asarray(z))  # noqa: E731
    options = {"xla_backend_optimization_level": 1}
    draws = jax.jit(lambda keys: jax.lax.map(draw, keys), compiler_options=options)
    return np.asarray(draws(jax.random.split(key, count)))


def test_draws_have_the_law_of_the_exact_posterior():
    """Means within five standard errors; covariances to a tenth: random features."""
    shape, x, y, z = example()
    posterior = inducing_posterior(
        shape,
        x,
        np.ones(20),
        x,
        y,
        scalar=False,
        block=8,
        config=InducingConfig(fourier_features=400),
    )
    assert not posterior.sample(key=jax.random.key(0)).exact
    draws = many_draws(posterior, z, jax.random.key(0))
    kernel = km.kernels.Independent(shape.kernels())
    oracle = Dense(kernel, x, y, np.asarray(shape.noise) ** 2, z)
    std = np.sqrt(oracle.variance)
    assert (np.abs(draws.mean(axis=0) - oracle.mean) <= 5 * std / np.sqrt(4000) + 1e-4).all()
    found = np.cov(draws.reshape(4000, -1).T)
    scale = np.sqrt(np.outer(np.diag(oracle.covariance), np.diag(oracle.covariance)))
    assert np.abs(found - oracle.covariance).max() <= 0.1 * scale.max()
    np.testing.assert_allclose(np.sqrt(np.diag(found)), std.ravel(), rtol=0.1)


def test_far_from_all_centres_draws_vary_as_the_prior():
    shape, x, y, _ = example()
    z = points(4, seed=6) * np.array([1.0, 1.0, 5.0])  # actions five times as large
    posterior = inducing_posterior(shape, x[:2], np.ones(2), x, y, scalar=False, block=8)
    draws = many_draws(posterior, z, jax.random.key(1))
    np.testing.assert_allclose(draws.std(axis=0), posterior.predict(z)[1], rtol=0.1)


def test_products_of_many_features_draw_fewer_frequencies():
    own = family("(se(0.5)[0] + linear[0]) * (se(0.5)[1] + linear[1])")
    shape = own.kernels_at(jnp.asarray(prior_median(own, DYNAMICS)))
    config = InducingConfig(fourier_features=192, most_features=500)
    keys = tuple(jax.random.split(jax.random.key(0), 3))
    draw = shape.prior_draw(config, keys=keys)
    assert draw.weights[0].shape[1] <= 500
    assert np.isfinite(np.asarray(draw(jnp.asarray(points(3))))).all()


def test_nothing_compiles_again_as_data_grow():
    own = family(sizes=(1.0, 1.0))
    room = 16

    def step(n):
        x = points(n, seed=n)
        y = np.stack([x[:, 0] * x[:, 2], x[:, 1]], axis=1)
        blocks = fitting_blocks(x, y, most=24, blocks=2, key=jax.random.key(n))
        logs = fit(own, DYNAMICS, *blocks, prior_median(own, DYNAMICS))
        shape = own.kernels_at(jnp.asarray(logs))
        candidates = np.pad(x, ((0, 64 - n), (0, 0)), mode="edge")
        where = np.asarray(select_inducing_points(shape, jnp.asarray(candidates), room))
        posterior = inducing_posterior(
            shape, candidates[where], np.ones(room), x, y, scalar=False, block=16
        )
        posterior.predict(points(5))
        return posterior.sample(key=jax.random.key(n))(points(5))

    for n in (20, 40):
        step(n)
    count, _ = compilations(lambda: [step(n) for n in (25, 33, 50, 64)])
    assert count == 0


def test_centres_go_where_the_kernel_varies():
    """A kernel that looks at one coordinate wants centres spread along that one."""
    own = family("se(0.3)[1]")
    shape = own.kernels_at(jnp.asarray(prior_median(own, DYNAMICS)))
    x = points(200)
    chosen = np.asarray(select_inducing_points(shape, jnp.asarray(x), 5))
    assert len(set(chosen)) == 5
    assert np.diff(np.sort(x[chosen, 1])).min() > 0.25


def test_what_cannot_be_fitted_is_refused():
    with pytest.raises(ArgumentError, match="bound to positions"):
        family("se(0.5)[state]")
    with pytest.raises(ArgumentError, match="kernel"):
        family([TEXT] * 2, sizes=(1.0, 1.0, 1.0))
    with pytest.raises(ArgumentError, match="bounds"):
        family(bounds=(2.0, 20.0))
    with pytest.raises(ShapeError, match="lengthscale"):
        family("se([0.5, 0.5])")
    strange = km.kernel("own", functions={"own": lambda x, y: jnp.exp(-jnp.sum(jnp.abs(x - y)))})
    shape = free_kernel(strange, sizes=[1.0], dimension=3).kernels_at(jnp.zeros((1, 2)))
    x = points(5)
    posterior = inducing_posterior(shape, x, np.ones(5), x, x[:, :1], scalar=True, block=8)
    assert posterior.sample_at(x, key=jax.random.key(0)).shape == (1, 5)
    with pytest.raises(UnknownPropertyError, match="random features"):
        posterior.sample(key=jax.random.key(0))
