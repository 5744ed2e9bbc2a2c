import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import kernelmdp as km
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp import StateGrid, StudentT


@pytest.mark.parametrize("degrees", [2.5, 3.0, 8.0])
def test_quadrature_of_bounded_functions(degrees):
    nodes, weights = StudentT(1.0, degrees=degrees).quadrature(9)
    np.testing.assert_array_equal(nodes, -nodes[::-1])
    assert weights.min() > 0
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    law = stats.t(degrees)
    for function in (lambda t: np.exp(-0.1 * t**2), lambda t: np.tanh(0.5 * t + 0.4)):
        exact, _ = integrate.quad(lambda t, f=function: f(t) * law.pdf(t), -np.inf, np.inf)
        assert weights @ function(nodes) == pytest.approx(exact, abs=2e-3)


def test_quadrature_is_exact_for_polynomials_of_the_bounded_variable():
    nodes, weights = StudentT(1.0).quadrature(5)
    bounded = nodes / np.sqrt(3 + nodes**2)
    # x² of the semicircle law, which is that of x for 3 degrees of freedom.
    assert weights @ bounded**2 == pytest.approx(1 / 4)
    assert weights @ bounded**4 == pytest.approx(1 / 8)


def test_quantiser_and_its_distance():
    law = stats.t(3.0)
    nodes, distance = StudentT(1.0).quantiser(7)
    edges = law.ppf(np.linspace(0, 1, 8))
    total = sum(
        integrate.quad(lambda t, x=x: abs(t - x) * law.pdf(t), a, b, points=None)[0]
        for a, b, x in zip(edges[:-1], edges[1:], nodes, strict=True)
    )
    assert distance == pytest.approx(total, rel=1e-5)
    assert nodes.sum() == pytest.approx(0.0, abs=1e-12)


def test_draws_and_deviation():
    noise = StudentT([0.2, 0.5], degrees=4.0)
    drawn = np.asarray(noise.draw((4000, 2), key=jax.random.key(0)))
    for i, size in enumerate((0.2, 0.5)):
        assert stats.kstest(drawn[:, i] / size, stats.t(4.0).cdf).pvalue > 1e-3
    np.testing.assert_allclose(noise.standard_deviations(2), np.sqrt(2) * np.array([0.2, 0.5]))


def test_it_is_no_sub_gaussian_law():
    with pytest.raises(ArgumentError, match="sub-Gaussian"):
        StudentT(0.1).sub_gaussian_proxy(1)
    assert StudentT(0.0).sub_gaussian_proxy(1) == 0.0
    with pytest.raises(ArgumentError, match="more than 2"):
        StudentT(0.1, degrees=2.0)
    assert StudentT(0.1, degrees=3.0) != StudentT(0.1, degrees=4.0)
    assert StudentT(0.1) == StudentT(0.1)
    assert len({StudentT(0.1), StudentT(0.1), StudentT(0.1, degrees=5.0)}) == 2


def test_expected_values_on_a_grid():
    """U(p) = E V(Π_S(p + ε)) against quadrature by SciPy."""
    grid = StateGrid(km.Box([-1.0], [1.0]), (201,), StudentT(0.1))
    values = np.cos(2 * grid.nodes[:, 0])
    expected = np.asarray(grid.expectation(jnp.asarray(values)))
    law = stats.t(3.0, scale=0.1)
    for mean in (-0.9, 0.0, 0.5):
        exact, _ = integrate.quad(
            lambda t, p=mean: np.cos(2 * np.clip(p + t, -1, 1)) * law.pdf(t), -30, 30, limit=400
        )
        place = np.argmin(np.abs(grid.lattice[:, 0] - mean))
        assert expected[place] == pytest.approx(exact, abs=3e-3)


def test_environment_with_heavy_tails():
    env = km.make("rkhs", noise_law="student-t", horizon=2)
    assert isinstance(env.mdp.transition_noise, StudentT)
    assert isinstance(env.mdp.reward_noise, StudentT)
    assert env.problem.lipschitz_rule == "none"
    with pytest.raises(ArgumentError, match="noise_law"):
        km.make("rkhs", noise_law="cauchy")
