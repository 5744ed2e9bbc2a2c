"""Linear-quadratic control: Riccati, values of linear policies, and matrices read off models."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp.domains import Box, Unbounded
from kernelmdp.envs.lqr import LinearDynamics, QuadraticCostReward, lqr_1d
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp import MDP, NO_NOISE, Gaussian, MeanModel, monte_carlo_value
from kernelmdp.mdp.linear_policy import LinearPolicy, QuadraticTruth, linear_policy, linear_value
from kernelmdp.mdp.linear_quadratic import (
    LinearQuadraticSystem,
    linear_quadratic_system,
    optimal_solution,
    solvable_cost,
)
from kernelmdp.mdp.policy import Policy

H = 5


def random_system(rng, m=2, q=1, cross=True, noise=0.0):
    """Matrices with C positive definite, dynamics a little unstable."""
    root = rng.normal(size=(m + q, m + q))
    cost = root @ root.T + 0.3 * np.eye(m + q)
    if not cross:
        cost[:m, m:] = cost[m:, :m] = 0
    dynamics = rng.normal(size=(m, m + q))
    dynamics[:, :m] *= 1.1 / np.abs(np.linalg.eigvals(dynamics[:, :m])).max()
    return LinearQuadraticSystem(jnp.asarray(dynamics), jnp.asarray(cost), noise**2 * jnp.eye(m))


def mdp_of(system, noise=0.0, **options):
    m, d = system.dynamics.shape
    words = {
        "states": Unbounded(m),
        "actions": Unbounded(d - m),
        "horizon": H,
        "reward_noise": NO_NOISE,
        "transition_noise": Gaussian(noise),
    }
    model = MeanModel(QuadraticCostReward(system.cost), LinearDynamics(system.dynamics))
    return MDP(model, **(words | options))


def open_loop(system, start, horizon=H):
    """The least cost without noise and its first action, over all actions at once."""
    dynamics, cost = np.asarray(system.dynamics), np.asarray(system.cost)
    m, d = dynamics.shape
    q = d - m
    # State and point of every period as affine functions of the stacked actions.
    state = np.concatenate([np.zeros((m, horizon * q)), start[:, None]], axis=1)
    total = np.zeros((horizon * q + 1,) * 2)
    for h in range(horizon):
        action = np.zeros((q, horizon * q + 1))
        action[:, h * q : (h + 1) * q] = np.eye(q)
        point = np.concatenate([state, action])
        total += point.T @ cost @ point
        state = dynamics @ point
    best = -np.linalg.solve(total[:-1, :-1], total[:-1, -1])
    full = np.append(best, 1.0)
    return full @ total @ full, best[:q]


@pytest.mark.parametrize("cross", [False, True])
def test_riccati_is_the_least_cost_over_all_action_sequences(rng, cross):
    """G 38, first half."""
    for _ in range(5):
        system = random_system(rng, cross=cross)
        found = optimal_solution(system, H)
        start = rng.normal(size=2)
        cost, action = open_loop(system, start)
        assert start @ found.curvatures[0] @ start == pytest.approx(cost, rel=1e-8)
        np.testing.assert_allclose(-found.gains[0] @ start, action, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(found.curvatures[H - 1], _schur(system), rtol=1e-8, atol=1e-10)
        assert not np.asarray(found.constants).any()


def _schur(system):
    P, N, Q = (np.asarray(block) for block in system.cost_blocks)
    return P - N @ np.linalg.solve(Q, N.T)


def test_the_price_of_noise(rng):
    """G 38, second half: c_h against rollouts."""
    noise = 0.3
    system = random_system(rng, noise=noise)
    mdp = mdp_of(system, noise)
    found = optimal_solution(system, H)
    start = np.array([0.4, -0.2])
    value = -(start @ found.curvatures[0] @ start + found.constants[0])
    policy = linear_policy(found.gains)
    sampled = monte_carlo_value(mdp, policy, start, episodes=200_000, key=jax.random.key(1))
    assert abs(value - sampled.value) < 3 / 2.576 * sampled.error
    assert float(found.constants[0]) > 5 * sampled.error  # the test can fail
    assert float(linear_value(system, policy, jnp.asarray(start))) == pytest.approx(float(value))


def test_value_of_an_affine_policy(rng):
    noise = 0.2
    system = random_system(rng, q=2, noise=noise)
    gains = optimal_solution(system, H).gains + 0.1
    policy = LinearPolicy(gains, jnp.asarray(rng.normal(size=(H, 2))))
    start = np.array([0.5, 0.1])
    exact = float(linear_value(system, policy, jnp.asarray(start)))
    mdp = mdp_of(system, noise)
    sampled = monte_carlo_value(mdp, policy, start, episodes=50_000, key=jax.random.key(2))
    assert abs(exact - sampled.value) < 4 / 2.576 * sampled.error


def test_matrices_are_read_off_a_model(rng):
    system = random_system(rng, m=3, q=2, noise=0.1)
    found = linear_quadratic_system(mdp_of(system, 0.1))
    for name in ("dynamics", "cost", "noise"):
        np.testing.assert_allclose(getattr(found, name), getattr(system, name), atol=1e-12)


@pytest.mark.parametrize(
    ("reward", "transition"),
    [
        (lambda z: -jnp.sum(z**4, axis=1), lambda z: z[:, :2]),
        (lambda z: -jnp.sum(z**2, axis=1), lambda z: jnp.sin(z[:, :2])),
        (lambda z: -jnp.sum(z**2, axis=1), lambda z: z[:, :2] + 0.1),
        (lambda z: 1 - jnp.sum(z**2, axis=1), lambda z: z[:, :2]),
    ],
)
def test_other_models_are_refused(reward, transition, rng):
    mdp = mdp_of(random_system(rng))
    other = MDP(
        MeanModel(reward, transition),
        states=mdp.states,
        actions=mdp.actions,
        horizon=H,
        reward_noise=NO_NOISE,
        transition_noise=NO_NOISE,
    )
    with pytest.raises(ArgumentError, match="linear mean transitions and quadratic mean rewards"):
        linear_quadratic_system(other)


def test_costs_are_raised_only_as_far_as_needed(rng):
    least, floor = jnp.zeros(()), jnp.asarray(1e-3)
    good = random_system(rng, m=2, q=2).cost
    np.testing.assert_allclose(solvable_cost(good, 2, floor=floor, least=least), good, atol=1e-12)
    for _ in range(20):
        root = rng.normal(size=(4, 4))
        raised = np.asarray(solvable_cost(jnp.asarray(root + root.T), 2, floor=floor, least=least))
        assert np.linalg.eigvalsh(raised)[0] > -1e-9
        assert np.linalg.eigvalsh(raised[2:, 2:])[0] > 1e-3 - 1e-9
        assert np.linalg.eigvalsh(raised - root - root.T)[0] > -1e-9


class Wrapped(Policy):
    """The same actions, but nobody can see that they are linear."""

    inner: Policy

    def actions(self, states, period):
        return self.inner.actions(states, period)


def test_values_within_bounds(rng):
    """Exactly the closed form when no bound is met; otherwise that of plain sampling."""
    wide = lqr_1d(action_bound=50.0)
    truth, start = wide.quadratic, np.array([1.0])
    optimum = truth.optimum(start)
    free = float(linear_value(truth.system, truth.policy, jnp.asarray(start)))
    assert optimum.value == pytest.approx(free, abs=1e-12)
    assert optimum.error < 1e-6
    assert truth.value(truth.policy, start) == optimum.value

    tight = lqr_1d(action_bound=0.4)
    truth = tight.quadratic
    optimum = truth.optimum(start)
    assert optimum.kind == "estimate"
    assert free - optimum.value > 0.1
    assert optimum.error > free - optimum.value
    sampled = monte_carlo_value(
        tight.mdp, truth.policy, start, episodes=100_000, key=jax.random.key(0)
    )
    assert abs(optimum.value - sampled.value) < 0.02
    # Nonlinear policies, and linear ones that would diverge without bounds.
    assert truth.value(Wrapped(truth.policy), start) == pytest.approx(optimum.value, abs=0.05)
    wild = LinearPolicy(-1e3 * truth.policy.gains, truth.policy.offsets, tight.mdp.actions)
    sampled = monte_carlo_value(tight.mdp, wild, start, episodes=100_000, key=jax.random.key(0))
    assert abs(truth.value(wild, start) - sampled.value) < 0.2


def test_no_bounds_no_error():
    env = lqr_1d(action_bound=np.inf)
    assert env.optimal_value().kind == "exact"


def test_costs_without_minimum_are_refused():
    system = LinearQuadraticSystem(
        jnp.ones((1, 2)), jnp.diag(jnp.array([1.0, -1.0])), jnp.zeros((1, 1))
    )
    with pytest.raises(ArgumentError, match="Q: expected positive definite"):
        QuadraticTruth(mdp_of(system))
    system = LinearQuadraticSystem(
        jnp.ones((1, 2)), jnp.diag(jnp.array([-1.0, 1.0])), jnp.zeros((1, 1))
    )
    with pytest.raises(ArgumentError, match="positive semi-definite"):
        QuadraticTruth(mdp_of(system, actions=Box([-1.0], [1.0])))
