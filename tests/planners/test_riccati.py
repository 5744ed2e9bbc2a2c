"""The Riccati planner: exact for plain MDPs, a certified bound for families (note D8)."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp.classics.lqr import solve
from kernelmdp.domains import Box, Unbounded
from kernelmdp.envs.lqr import lqr_1d, lqr_2d
from kernelmdp.errors import ArgumentError, UnknownPropertyError
from kernelmdp.mdp import MDP, NO_NOISE, Gaussian, MeanModel, Model, Prediction
from kernelmdp.mdp.linear_quadratic import LinearQuadraticSystem, linear_quadratic_system
from kernelmdp.planners import GridPlanner, RiccatiPlanner

KEY = jax.random.key(0)
PLANNER = RiccatiPlanner()
# Of all scalar families: the programs of one test are those of the next.
H, BOUNDED = 5, {"actions": Box([-2.0], [2.0])}


class Tube(Model):
    """Θz + the ball whose squared radius is zᵀWz; the cost is known, or known up to ``width``."""

    system: LinearQuadraticSystem
    W: jax.Array
    width: jax.Array | None = None
    elliptic: bool = False

    def __call__(self, points):
        reward = -jnp.sum((points @ self.system.cost) * points, axis=1)
        radius = jnp.sqrt(jnp.maximum(jnp.sum((points @ self.W) * points, axis=1), 0.0))
        width = None if self.width is None else self.width * jnp.sum(points**2, axis=1)
        state = points @ self.system.dynamics.T
        if self.elliptic:
            m = state.shape[1]
            root = radius[:, None, None] * jnp.broadcast_to(jnp.eye(m)[None], (len(points), m, m))
            return Prediction(reward, state, width, root=root)
        return Prediction(reward, state, width, radius=radius)

    def quadratic_width(self):
        return jnp.full(self.W.shape[0], self.width)


def mdp_of(model, m, q, horizon, noise=0.1, **options):
    words = {"states": Unbounded(m), "actions": Unbounded(q)}
    return MDP(
        model,
        **(words | options),
        horizon=horizon,
        reward_noise=NO_NOISE,
        transition_noise=Gaussian(noise),
    )


def scalar_system(A=0.9, B=0.5, P=1.0, Q=1.0, noise=0.1):
    return LinearQuadraticSystem(
        jnp.array([[A, B]]), jnp.diag(jnp.array([P, Q])), noise**2 * jnp.ones((1, 1))
    )


def least_cost(system, thetas, start, horizon):
    """min over Θ of the optimal cost, all Θ at once, in NumPy."""
    costs = np.broadcast_to(np.asarray(system.cost), (len(thetas), *system.cost.shape))
    G, c, _ = solve(np.asarray(thetas), costs, horizon, np.asarray(system.noise))
    return float((np.einsum("i,nij,j->n", start, G, start) + c).min())


def dual(system, W, metric, horizon, start, eta):
    """D(η) by eliminating a and w together, in NumPy; −∞ where a Hessian is not positive."""
    dynamics, cost = np.asarray(system.dynamics), np.asarray(system.cost)
    m, d = dynamics.shape
    P, N, Q = cost[:m, :m], cost[:m, m:], cost[m:, m:]
    G, c = P - N @ np.linalg.solve(Q, N.T), 0.0
    wide = np.concatenate([dynamics, np.eye(m)], axis=1)  # of (s, a, w)
    charge = np.zeros((d + m, d + m))
    charge[:d, :d] = cost - eta * W
    charge[d:, d:] = eta * np.diag(metric**-2.0)
    for _ in range(horizon - 1):
        c += np.sum(G * np.asarray(system.noise))
        total = charge + wide.T @ G @ wide
        if np.linalg.eigvalsh(total[m:, m:])[0] <= 0:
            return -np.inf
        G = total[:m, :m] - total[:m, m:] @ np.linalg.solve(total[m:, m:], total[m:, :m])
    return float(start @ G @ start + c)


def test_dual_of_a_scalar_problem_against_brute_force_over_the_ellipse():
    """G 39: D(η*) ≤ least cost over the set ≤ nominal, the first two nearly equal."""
    system, horizon, start = scalar_system(), H, np.array([1.0])
    V = np.array([[60.0, 10.0], [10.0, 30.0]])
    W = np.linalg.inv(V)
    angles, radii = np.linspace(0, 2 * np.pi, 721), np.linspace(0, 1, 41)
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    steps = (radii[:, None, None] * around[None]).reshape(-1, 2) @ np.linalg.cholesky(W).T
    thetas = np.asarray(system.dynamics)[None] + steps[:, None, :]
    least = least_cost(system, thetas, start, horizon)
    nominal = least_cost(system, thetas[:1], start, horizon)
    mdp = mdp_of(Tube(system, jnp.asarray(W)), 1, 1, horizon, **BOUNDED)
    plan = PLANNER.plan(mdp, key=KEY, start=start)
    bound = -plan.value(start)
    assert bool(plan.certified)
    assert bound <= least + 1e-9
    assert bound == pytest.approx(least, rel=1e-3)
    assert bound < nominal - 0.05
    # A finer search finds nothing better, and every multiplier bounds.
    multipliers = np.geomspace(1e-2, 1e2, 2001)
    values = [dual(system, W, np.ones(1), horizon, start, eta) for eta in multipliers]
    assert max(values) == pytest.approx(bound, abs=1e-5)
    assert dual(system, W, np.ones(1), horizon, start, float(plan.multiplier)) == pytest.approx(
        bound, abs=1e-10
    )


def test_every_valid_multiplier_bounds_every_plausible_cost():
    """G 39 on a random instance, in a metric that is not the usual one."""
    rng, m, q = np.random.default_rng(2), 3, 2
    d, horizon = m + q, H
    root = rng.normal(size=(d, d))
    cost = root @ root.T / d + 0.2 * np.eye(d)
    dynamics = rng.normal(size=(m, d)) / np.sqrt(d)
    system = LinearQuadraticSystem(jnp.asarray(dynamics), jnp.asarray(cost), 0.01 * jnp.eye(m))
    rows = rng.normal(size=(20, d))
    W = 0.3 * np.linalg.inv(rows.T @ rows)
    metric = rng.uniform(0.5, 2.0, size=m)
    start = rng.normal(size=m)
    # Θ − Θ̂ = diag(metric) U √W with tr UᵀU ≤ 1 stays in the tube.
    members = rng.normal(size=(3000, m, d))
    members /= np.sqrt((members**2).sum(axis=(1, 2), keepdims=True))
    thetas = dynamics + metric[None, :, None] * (members @ np.linalg.cholesky(W).T)
    least = least_cost(system, thetas, start, horizon)
    multipliers = np.geomspace(1e-4, 1e4, 801)
    values = np.array([dual(system, W, metric, horizon, start, eta) for eta in multipliers])
    valid = np.isfinite(values)
    assert valid.any()
    assert values[valid].max() <= least + 1e-9
    # Concave, on an interval.
    inside = np.flatnonzero(valid)
    assert (np.diff(inside) == 1).all()
    slopes = np.diff(values[valid]) / np.diff(multipliers[valid])
    assert (np.diff(slopes) <= 1e-6 * (1 + np.abs(slopes[:-1]))).all()
    mdp = mdp_of(Tube(system, jnp.asarray(W)), m, q, horizon, metric=tuple(metric))
    plan = PLANNER.plan(mdp, key=KEY, start=start)
    assert -plan.value(start) == pytest.approx(values[valid].max(), abs=2e-3)
    assert bool(plan.certified)
    assert plan.error == 0.0  # nothing is bounded
    # At other states the bound still holds; only its multiplier was chosen for this one.
    elsewhere = rng.normal(size=m)
    assert -plan.value(elsewhere) <= least_cost(system, thetas, elsewhere, horizon) + 1e-9


def test_a_plain_mdp_is_solved_exactly():
    env = lqr_2d()
    plan = PLANNER.plan(env.mdp, key=KEY)
    system = linear_quadratic_system(env.mdp)
    dynamics, cost, noise = (np.asarray(x) for x in (system.dynamics, system.cost, system.noise))
    G, c, gains = solve(dynamics[None], cost[None], env.mdp.horizon, noise)
    np.testing.assert_allclose(plan.policy.gains, gains[0], atol=1e-9)
    assert not np.asarray(plan.policy.offsets).any()
    start = np.array([0.3, -0.4])
    assert plan.value(start) == pytest.approx(-(start @ G[0] @ start + c[0]), abs=1e-9)
    assert np.isnan(plan.error)  # bounded actions


def test_no_width_is_no_optimism():
    system = scalar_system()
    plan = PLANNER.plan(mdp_of(Tube(system, 1e-14 * jnp.eye(2)), 1, 1, H, **BOUNDED), key=KEY)
    least = least_cost(system, np.asarray(system.dynamics)[None], np.ones(1), H)
    assert -plan.value([1.0]) == pytest.approx(least, abs=1e-5)
    ellipse = mdp_of(Tube(system, 0.01 * jnp.eye(2), elliptic=True), 1, 1, H, **BOUNDED)
    ball = mdp_of(Tube(system, 0.01 * jnp.eye(2)), 1, 1, H, **BOUNDED)
    assert PLANNER.plan(ellipse, key=KEY).value([1.0]) == pytest.approx(
        PLANNER.plan(ball, key=KEY).value([1.0]), abs=1e-9
    )


def test_a_learned_cost_is_bounded_from_below():
    system, start = scalar_system(), np.array([1.0])
    known = PLANNER.plan(
        mdp_of(Tube(system, 0.01 * jnp.eye(2)), 1, 1, H, **BOUNDED), key=KEY, start=start
    )
    learned = mdp_of(Tube(system, 0.01 * jnp.eye(2), width=jnp.asarray(0.1)), 1, 1, H, **BOUNDED)
    plan = PLANNER.plan(learned, key=KEY, start=start)
    assert plan.value(start) > known.value(start)
    assert bool(plan.certified)
    unknown = mdp_of(Tube(system, 0.01 * jnp.eye(2), width=jnp.asarray(5.0)), 1, 1, H, **BOUNDED)
    plan = PLANNER.plan(unknown, key=KEY, start=start)
    assert not bool(plan.certified)  # the cost had to be raised to be at least 0
    assert -1e-2 < -plan.value(start) < 1e-2


def test_first_plans_try_actions():
    """A zero estimate leaves actions open: they are drawn, not 0 for ever."""
    nothing = LinearQuadraticSystem(jnp.zeros((1, 2)), jnp.zeros((2, 2)), 0.01 * jnp.ones((1, 1)))
    model = MeanModel(lambda z: 0 * z[:, 0], lambda z: 0 * z[:, :1])
    for kind in (model, Tube(nothing, jnp.eye(2), width=jnp.asarray(1.0))):
        plan = PLANNER.plan(mdp_of(kind, 1, 1, H, **BOUNDED), key=KEY)
        offsets = np.asarray(plan.policy.offsets)
        assert (np.abs(offsets) <= 2).all()
        assert np.abs(offsets).max() > 0.2
    # A known cost and unknown dynamics: by symmetry either sign is best, and 0 is not.
    known = LinearQuadraticSystem(jnp.array([[0.9, 0.0]]), jnp.eye(2), 0.01 * jnp.ones((1, 1)))
    W = jnp.diag(jnp.array([1e-3, 1.0]))
    plan = PLANNER.plan(mdp_of(Tube(known, W), 1, 1, H, **BOUNDED), key=KEY, start=np.ones(1))
    assert np.abs(plan.policy.offsets).max() > 0.1


def test_the_grid_planner_agrees_within_bounds():
    env = lqr_1d(state_bound=3.0)
    riccati = PLANNER.plan(env.mdp, key=KEY)
    grid = GridPlanner((401,), (81,)).plan(env.mdp, key=KEY)
    for s in (-1.0, 0.0, 0.7):
        assert riccati.value([s]) == pytest.approx(grid.value([s]), abs=0.01)
    # Where the bounds matter Riccati's value is too good, and its error says that it is not known.
    tight = lqr_1d(state_bound=1.2, action_bound=0.3)
    riccati = PLANNER.plan(tight.mdp, key=KEY)
    grid = GridPlanner((401,), (81,)).plan(tight.mdp, key=KEY)
    assert riccati.value([1.0]) > grid.value([1.0]) + 0.1
    assert np.isnan(riccati.error)
    optimum = tight.optimal_value([1.0])
    assert abs(optimum.value - grid.value([1.0])) < optimum.error


def test_solvable():
    def model(Q):
        return MeanModel(lambda z: -(z[:, 0] ** 2) - Q * z[:, 1] ** 2, lambda z: z[:, :1])

    assert PLANNER.solvable(mdp_of(model(0.1), 1, 1, 5))
    assert not PLANNER.solvable(mdp_of(model(-0.1), 1, 1, 5))
    assert PLANNER.query_points(mdp_of(model(0.1), 1, 1, 5)) is None


def test_bad_input():
    other = MeanModel(lambda z: jnp.cos(z[:, 0]), lambda z: z[:, :1])
    with pytest.raises(ArgumentError, match="use the grid planner"):
        PLANNER.plan(mdp_of(other, 1, 1, 5), key=KEY)
    with pytest.raises(ArgumentError, match="a Box or a FiniteSet"):
        GridPlanner((11,), (5,)).plan(lqr_1d().mdp, key=KEY)
    with pytest.raises(UnknownPropertyError, match="quadratic bound"):
        MeanModel(lambda z: z[:, 0], lambda z: z[:, :1]).quadratic_width()


def test_one_program_for_all_episodes():
    """Nothing retraces when the numbers of a family change."""
    count = itertools.count()

    class Counted(Tube):
        def __call__(self, points):
            next(count)
            return super().__call__(points)

    for scale in (1.0, 0.5, 0.1):
        mdp = mdp_of(Counted(scalar_system(A=scale), scale * jnp.eye(2)), 1, 1, 5)
        PLANNER.plan(mdp, key=KEY, start=np.ones(1))
    assert next(count) == 1
