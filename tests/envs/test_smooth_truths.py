"""Random smooth MDPs: norms, bands, seeds, L, optimal values, and what may be regressed on."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp.envs import make
from kernelmdp.envs.noise_lipschitz import with_lipschitz
from kernelmdp.envs.rkhs import NORMS, REWARD_SUP_RANGE, TRANSITION_SUP_RANGE, random_expansion
from kernelmdp.envs.unit_box import StackedFunctions, unit_domain
from kernelmdp.errors import ArgumentError
from kernelmdp.gp import posterior
from kernelmdp.kernels import SquaredExponential
from kernelmdp.mdp import Gaussian, MeanModel, monte_carlo_value, optimal_values, step
from tests.envs.instances import instance, lookahead


def squared_norm(part):
    """αᵀKα, with the squared exponential written out."""
    x = np.asarray(part.centres)
    gaps = ((x[:, None, :] - x[None, :, :]) ** 2).sum(axis=2)
    weights = np.asarray(part.weights)
    return weights @ np.exp(-0.5 * gaps / 0.5**2) @ weights


@pytest.mark.parametrize(("name", "m", "seed"), [("rkhs", 1, 0), ("rkhs", 1, 3), ("rkhs-2d", 2, 0)])
def test_norms_are_exact_and_sups_in_their_bands(name, m, seed):
    env = instance(name, seed)
    reward, parts = env.mdp.model.reward, env.mdp.model.transition.parts
    assert len(parts) == m == env.problem.transition_kernel.outputs
    assert squared_norm(reward) == pytest.approx(NORMS[m][0] ** 2, rel=1e-9)
    assert env.problem.norm_reward == pytest.approx(NORMS[m][0], rel=1e-9)
    total = sum(squared_norm(part) for part in parts)
    assert env.problem.norm_transition == pytest.approx(math.sqrt(total), rel=1e-9)
    assert total == pytest.approx(m * NORMS[m][1] ** 2, rel=1e-9)
    prediction = env.mdp.model(jnp.asarray(env.mdp.points.spread_points(4000)))
    assert np.abs(prediction.reward).max() < REWARD_SUP_RANGE[1] + 0.02
    assert np.abs(prediction.state).max() < TRANSITION_SUP_RANGE[1] + 0.02
    low, high = env.mdp.reward_range
    assert low < prediction.reward.min() < prediction.reward.max() < high


def test_a_given_norm_scales_the_function():
    env = make("rkhs", seed=1, reward_norm=3.0, transition_norm=0.5)
    assert env.problem.norm_reward == pytest.approx(3.0)
    assert env.problem.norm_transition == pytest.approx(0.5)


@pytest.mark.parametrize("name", ["rkhs", "gp-prior"])
def test_seeds_choose_instances(name):
    # A fresh making, not the one kept: the same seed has to draw the same functions again.
    points = jnp.asarray(unit_domain(instance(name).mdp.states.dimension).spread_points(16))
    first, again, other = instance(name, 0), make(name, seed=0), instance(name, 3)
    for pick in (lambda e: e.mdp.model(points).reward, lambda e: e.mdp.model(points).state):
        np.testing.assert_array_equal(pick(first), pick(again))
        assert np.abs(np.asarray(pick(first) - pick(other))).max() > 1e-2


def test_a_prior_draw_has_the_prior_variance():
    """Across seeds R̄(0) has variance 0.2; functions are drawn as the environment draws them."""
    from kernelmdp.envs.gp_prior import TOLERANCE, VARIANCE

    env = instance("gp-prior")
    prior = posterior(
        env.problem.reward_kernel, noise_variance=1.0, domain=env.mdp.points, tolerance=TOLERANCE
    )
    keys = jax.random.split(jax.random.key(5), 200)
    values = np.array([prior.sample(key=key)(jnp.zeros((1, 2)))[0] for key in keys])
    # 200 draws: the standard error of a variance is √(2/200) of it.
    assert abs(values.var() / VARIANCE - 1) < 4 * math.sqrt(2 / 200)
    assert env.problem.norm_reward is None
    assert env.problem.norm_transition is None


@pytest.mark.parametrize("name", ["rkhs", "pendulum-coarse"])
def test_optimum_is_reached_and_not_exceeded(name):
    env = instance(name)
    best = env.optimal_value()
    assert best.error < 0.01 * (1 + abs(best.value)) + 0.02
    assert env.optimal_value(env.start) is best  # kept
    found = monte_carlo_value(
        env.mdp, lookahead(env), env.start, episodes=2000, key=jax.random.key(1)
    )
    assert found.value - found.error <= best.value + best.error
    assert found.value + found.error >= best.value - best.error - 0.02 * abs(best.value)


@pytest.mark.parametrize("name", ["rkhs", "pendulum-coarse"])
def test_lipschitz_constant_holds(name):
    env = instance(name)
    assert env.problem.lipschitz_rule.startswith("solved")
    assert math.isfinite(env.problem.lipschitz)
    mdp, grid = env.mdp, env.grid
    values = optimal_values(mdp, grid, jnp.asarray(env.actions))
    low, high = mdp.states.bounds
    rng = np.random.default_rng(0)
    here = low + (high - low) * rng.random((2000, len(low)))
    sd = mdp.transition_noise.standard_deviations(len(low))
    there = here + 0.5 * sd * rng.normal(size=here.shape)
    apart = np.linalg.norm((here - there) / np.array(mdp.metric), axis=1)
    largest = 0.0
    for period in range(1, mdp.horizon):
        table = grid.expectation(values[period])
        ends = [np.asarray(grid.stencil(jnp.asarray(p)).read(table)) for p in (here, there)]
        largest = max(largest, float((np.abs(ends[0] - ends[1]) / apart).max()))
    assert largest <= env.problem.lipschitz
    assert env.problem.lipschitz < 50 * largest  # a bound that says something
    top = (mdp.horizon - 1) * (mdp.reward_range[1] - mdp.reward_range[0]) / math.sqrt(2 * math.pi)
    assert env.problem.lipschitz <= top * (np.array(mdp.metric) / sd).max() * (1 + 1e-9)


def test_optimum_elsewhere_is_computed():
    env = instance("rkhs")
    values = optimal_values(env.mdp, env.grid, jnp.asarray(env.actions))[0]
    for state in ((0.5,), (-1.0,)):
        there = float(env.grid.value_at(values, jnp.array([state]))[0])
        assert env.optimal_value(state).value == pytest.approx(there, abs=0.05)


def test_lipschitz_needs_noise():
    mdp = dataclasses.replace(instance("rkhs").mdp, transition_noise=Gaussian(0.0))
    with pytest.raises(ArgumentError, match="Gaussian noise"):
        with_lipschitz(mdp, state_points=(21,), action_points=(5,))


def test_raw_outcomes_are_unbiased_and_clipped_states_are_not():
    """Math G 55: regression near the border of S."""
    env = instance("rkhs")
    net = jnp.asarray(env.mdp.points.net(5000)[0])
    means = np.asarray(env.mdp.model(net).state)[:, 0]
    place = int(np.abs(means).argmax())
    # The same function, stretched until its mean is half a deviation of noise from the border.
    part = env.mdp.model.transition.parts[0]
    stretched = dataclasses.replace(part, weights=part.weights * (0.95 / abs(means[place])))
    model = MeanModel(env.known_reward, StackedFunctions((stretched,)))
    mdp = dataclasses.replace(env.mdp, model=model)
    count, noise, truth = 1000, 0.1, 0.95 * np.sign(means[place])
    points = jnp.broadcast_to(net[place][None, :], (count, 2))
    _, outcomes, states = step(mdp, points[:, :1], points[:, 1:], key=jax.random.key(0))
    np.testing.assert_array_equal(states, jnp.clip(outcomes, -1.0, 1.0))
    prior = posterior(
        env.problem.transition_kernel, noise_variance=noise**2, dimension=2, engine="exact"
    )
    error = noise / math.sqrt(count)
    for targets, biased in ((outcomes, False), (states, True)):
        mean, _ = prior.condition(points, targets).predict(points[:1])
        assert (abs(float(mean[0, 0]) - truth) > 3 * error) == biased


def test_impossible_bands_are_refused():
    with pytest.raises(ArgumentError, match="happens"):
        random_expansion(
            SquaredExponential(0.5),
            unit_domain(1),
            norm=0.1,
            sup_range=(5.0, 6.0),
            key=jax.random.key(0),
            attempts=3,
        )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("rkhs", {"seed": -1}),
        ("rkhs", {"dimension": 3}),
        ("rkhs", {"noise": 0.0}),
        ("rkhs", {"reward_norm": -1.0}),
        ("rkhs", {"horizon": 0}),
        ("gp-prior", {"seed": -1}),
    ],
)
def test_bad_options(name, options):
    with pytest.raises(ArgumentError):
        make(name, **options)
