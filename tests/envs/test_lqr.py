"""Linear-quadratic environments: norms and L from matrices, optimum, bounds and bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.agents.system import as_system
from kernelmdp.confidence import as_confidence
from kernelmdp.domains import Box, Unbounded, join
from kernelmdp.envs import make
from kernelmdp.envs.lqr import linear_quadratic, lqr_1d, lqr_2d, lqr_4d, quadrotor
from kernelmdp.errors import ArgumentError, DataError, DomainError, ShapeError
from kernelmdp.learners import prior_beliefs
from kernelmdp.mdp import rollout
from kernelmdp.mdp.linear_quadratic import linear_quadratic_system
from kernelmdp.planners import RiccatiPlanner

KEY = jax.random.key(0)
MAKERS = {"lqr-1d": lqr_1d, "lqr-2d": lqr_2d, "lqr-4d": lqr_4d, "quadrotor": quadrotor}


@pytest.mark.parametrize("name", MAKERS)
def test_what_they_have(name):
    env = make(name)
    m, q = env.mdp.states.dimension, env.mdp.actions.dimension
    assert (env.name, env.problem.planner) == (name, "riccati")
    assert isinstance(env.mdp.states, Unbounded)
    system = env.quadratic.system
    A, B, (P, _, Q) = system.A, system.B, system.cost_blocks
    assert (A.shape, B.shape) == ((m, m), (m, q))
    squares = [float(jnp.sum(x**2)) for x in (P, Q, A, B)]
    assert env.problem.norm_reward == pytest.approx(np.sqrt(squares[0] + squares[1]))
    assert env.problem.norm_transition == pytest.approx(
        np.sqrt(float(jnp.sum((A - jnp.eye(len(A))) ** 2)) + squares[3])
    )
    optimum = env.optimal_value()
    assert optimum.kind == "estimate"
    # The optimal policy never met the bound of actions: nothing is left but rounding.
    assert optimum.error < 1e-9 * abs(optimum.value)


@pytest.mark.parametrize("cross", [False, True])
def test_norms_are_those_of_features(cross, rng):
    """G 40: the weights of R̄ and P̄ in the kernels' own features have these norms."""
    env = lqr_2d(cross=cross)
    points = jnp.asarray(rng.normal(size=(60, 3)))
    kernel = env.problem.reward_kernel.bind(env.mdp.points.names)
    features = np.asarray(jax.vmap(kernel.features)(points))
    prediction = env.mdp.model(points)
    weights = np.linalg.lstsq(features, np.asarray(prediction.reward), rcond=None)[0]
    np.testing.assert_allclose(features @ weights, prediction.reward, atol=1e-10)
    assert np.linalg.norm(weights) == pytest.approx(env.problem.norm_reward, abs=1e-10)
    moves = np.asarray(prediction.state) - np.asarray(points)[:, :2]
    weights = np.linalg.lstsq(np.asarray(points), moves, rcond=None)[0]
    assert np.linalg.norm(weights) == pytest.approx(env.problem.norm_transition, abs=1e-10)


def test_a_cross_term_needs_its_kernel():
    words = {"start": [1.0], "horizon": 5, "noise": 0.1, "N": [[0.2]]}
    with pytest.raises(ArgumentError, match="cross"):
        linear_quadratic("x", [[1.0]], [[1.0]], [[1.0]], [[1.0]], **words)
    env = linear_quadratic("x", [[1.0]], [[1.0]], [[1.0]], [[1.0]], cross=True, **words)
    np.testing.assert_allclose(linear_quadratic_system(env.mdp).cost, [[1.0, 0.2], [0.2, 1.0]])
    assert env.problem.norm_reward == pytest.approx(np.sqrt(2.08))


def test_lipschitz_constant_is_the_steepest_slope_on_the_ball(rng):
    env = lqr_2d()
    curvatures = np.asarray(env.quadratic.solution.curvatures)[1:-1]
    radius = env.mdp.states.typical
    directions = rng.normal(size=(2000, 2))
    points = radius * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    steepest = max(np.linalg.norm(2 * points @ G, axis=1).max() for G in curvatures)
    assert steepest <= env.problem.lipschitz + 1e-9
    assert steepest > 0.99 * env.problem.lipschitz


def test_quadrotor_matrices():
    """Against the integrals of the equations, by many small Euler steps."""
    env, step, parts = quadrotor(), 0.05, 20_000
    state, action = np.array([0.1, -0.2, 0.3, 0.4, 0.5, -0.6]), np.array([0.7, -0.8])
    found = np.asarray(env.mdp.model(jnp.asarray(np.append(state, action))[None]).state)[0]
    for _ in range(parts):
        _, _, theta, vx, vz, omega = state
        rate = np.array([vx, vz, omega, -9.81 * theta, *action])
        state = state + step / parts * rate
    np.testing.assert_allclose(found, state, atol=1e-5)


def test_options():
    env = lqr_1d(state_bound=2.0, action_bound=1.0)
    assert env.mdp.states == Box([-2.0], [2.0])
    assert env.mdp.actions == Box([-1.0], [1.0])
    assert len(env.grid.nodes) == 101
    assert make("lqr-4d", horizon=7).mdp.horizon == 7


@pytest.mark.parametrize(
    ("error", "match", "words"),
    [
        (ArgumentError, "Q: expected positive definite", {"Q": [[0.0]]}),
        (ArgumentError, "Q: expected positive definite", {"Q": [[-1.0]]}),
        (ArgumentError, "P: expected .* semi-definite", {"P": [[-1.0]]}),
        (ArgumentError, "unstable", {"A": [[1.5]], "action_bound": np.inf}),
        (ArgumentError, "action_bound", {"action_bound": -1.0}),
        (ArgumentError, "noise", {"noise": 0.0}),
        (ShapeError, "A: expected shape", {"A": [[1.0, 0.0], [0.0, 1.0]]}),
        (ShapeError, "start", {"start": [1.0, 2.0]}),
        (ShapeError, "Q: expected a matrix", {"Q": 1.0}),
        (DataError, "B", {"B": [[np.nan]]}),
        (ArgumentError, "symmetric", {"B": [[1.0, 1.0]], "Q": [[1.0, 0.5], [0.0, 1.0]]}),
    ],
)
def test_bad_input(error, match, words):
    usual = {"A": [[1.0]], "B": [[1.0]], "P": [[1.0]], "Q": [[1.0]]}
    usual |= {"start": [1.0], "horizon": 5, "noise": 0.1}
    given = usual | words
    matrices = [given.pop(key) for key in "ABPQ"]
    with pytest.raises(error, match=match):
        linear_quadratic("x", *matrices, **given)


def test_whole_spaces():
    space = Unbounded(2, typical=3.0)
    assert space.dimension == 2
    assert not space.finite
    assert np.isinf(space.bounds[1]).all()
    assert np.abs(space.spread_points(50)).max() <= 3
    points = np.array([[1e9, -5.0]])
    np.testing.assert_array_equal(space.nearest(points), points)
    space.require_inside("states", points)
    for wrong in (np.nan, np.inf):
        with pytest.raises(DomainError, match="states"):
            space.require_inside("states", np.array([[0.0, wrong]]))
    both = join(state=space, action=Box([-1.0], [1.0]))
    spread = both.spread_points(64)
    assert spread.shape[1] == 3
    assert np.isfinite(spread).all()
    assert np.abs(spread[:, 2]).max() <= 1
    assert both.project([0, 1]) == space
    for domain in (space, both):
        with pytest.raises(ArgumentError, match="a bounded domain"):
            domain.net(100)
    with pytest.raises(ArgumentError, match="size"):
        Unbounded(0)


def beliefs_after(env, episodes, seed, reward):
    from kernelmdp.mdp.policy import UniformPolicy

    problem = km.agents.AgentConfig(reward=reward).problem_for(as_system(env))
    beliefs = prior_beliefs(problem)
    starts = jnp.broadcast_to(env.draw_start(KEY)[None, :], (episodes, env.mdp.states.dimension))
    key = jax.random.key(seed)
    states, actions, rewards, outcomes = rollout(
        env.mdp, UniformPolicy(env.mdp.actions, key), starts, key=key
    )
    points = jnp.concatenate([states[:-1], actions], axis=2)
    rows = (x.reshape(-1, *x.shape[2:]) for x in (points, rewards, outcomes))
    return problem, beliefs.condition(*rows)


def sets_of(env, problem, beliefs, confidence):
    known = {"norm_reward": env.problem.norm_reward, "norm_transition": env.problem.norm_transition}
    import dataclasses

    return dataclasses.replace(as_confidence(confidence), **known).sets(
        beliefs,
        episode=5,
        horizon=env.mdp.horizon,
        domain=problem.points,
        reward_noise=env.mdp.reward_noise,
        transition_noise=env.mdp.transition_noise,
    )


@pytest.mark.parametrize(("reward", "cross"), [("known", False), ("learned", True)])
def test_optimistic_plans_of_confidence_sets(reward, cross, rng):
    """With valid sets that hold the truth the planned value is at least the optimal one."""
    env = lqr_2d(cross=cross)
    problem, beliefs = beliefs_after(env, 400, 0, reward)
    sets = sets_of(env, problem, beliefs, "valid")
    points = jnp.asarray(problem.points.spread_points(200))
    assert sets.contains(env.mdp.model, points)
    # The quadratic majorant of the reward's width.
    width = np.asarray(sets.plausible.quadratic_width())
    z = jnp.asarray(rng.normal(size=(500, 3)))
    assert (np.asarray(sets.half_widths(z)[0]) <= np.asarray(z**2) @ width + 1e-12).all()
    start = np.array([1.0, 0.0])
    plan = RiccatiPlanner().plan(sets.family(problem.mdp(sets.plausible)), key=KEY, start=start)
    assert bool(plan.certified)
    ideal = -float(
        start @ env.quadratic.solution.curvatures[0] @ start + env.quadratic.solution.constants[0]
    )
    assert plan.value(start) >= ideal
    assert plan.value(start) < 0


def test_widths_of_states_shrink_without_actions():
    """Actions never tried leave what is known of states alone."""
    env = lqr_1d()
    problem = env.problem
    beliefs = prior_beliefs(problem)
    points = jnp.stack([jnp.linspace(-1, 1, 30), jnp.zeros(30)], axis=1)
    prediction = env.mdp.model(points)
    beliefs = beliefs.condition(points, prediction.reward, prediction.state)
    width = np.asarray(sets_of(env, problem, beliefs, "valid").plausible.quadratic_width())
    assert width[1] > 10 * width[0]
