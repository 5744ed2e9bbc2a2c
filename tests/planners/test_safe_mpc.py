"""Model-predictive control with constraints, against closed forms and simulations."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import kernelmdp as km
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.constraint_parsing import as_constraints
from kernelmdp.mdp.constraints import Violation
from kernelmdp.mdp.fallback import as_fallback
from kernelmdp.mdp.mdp import MDP, DrawnModels
from kernelmdp.mdp.model import Model, Prediction
from kernelmdp.mdp.noise import NO_NOISE, Gaussian
from kernelmdp.mdp.pid import PID
from kernelmdp.planners import PLANNERS, MPCPlanner
from kernelmdp.planners.backups import FallbackBackup, PlanBackup
from kernelmdp.planners.constraint_penalty import with_penalty
from kernelmdp.planners.predicted_risk import RiskPrediction
from kernelmdp.planners.safe_mpc import SafeMPCPlanner

STATES, ACTIONS = km.Box([-3.0, -3.0], [3.0, 3.0]), km.Box([-1.0], [1.0])
LIMIT, NOISE, STEP = 1.0, 0.02, 0.1
SEARCH = MPCPlanner(horizon=12, samples=20, first_rounds=2, ilqr_iterations=2)


class Cart(Model):
    """A cart, x' = x + 0.1 v and v' = v + 0.1 push u, that earns more the further it is."""

    push: jax.Array

    def __call__(self, points):
        place, speed, force = points.T
        moved = jnp.stack([place + STEP * speed, speed + STEP * self.push * force], axis=1)
        return Prediction(reward=place, state=moved)


def cart(push=5.0):
    return Cart(jnp.asarray(float(push)))


def wall(text="x <= 1"):
    limits = as_constraints(text, states=STATES, actions=ACTIONS, names=("x", "v"))
    return Violation(limits, 2)


def problem(pushes=(5.0,), actions=ACTIONS, text="x <= 1"):
    return MDP(
        cart(),
        states=STATES,
        actions=actions,
        horizon=40,
        reward_noise=NO_NOISE,
        transition_noise=Gaussian(NOISE),
        signals={"violation": wall(text)},
        drawn_models=DrawnModels.stacked([cart(push) for push in pushes]),
    )


def hold(state, period):
    """Return to x = 0 and stay there."""
    return jnp.clip(-2.0 * state[:1] - 2.0 * state[1:], -1.0, 1.0)


def fallback(policy=hold, trusted=None, actions=ACTIONS):
    given = policy if trusted is None else (policy, trusted)
    return as_fallback(given, states=STATES, actions=actions, violation=wall())


def prediction(pushes=(5.0,), inflation=1.0, deviations=(0.0, NOISE)):
    drawn = DrawnModels.stacked([cart(push) for push in pushes])
    sizes = jnp.asarray(deviations)
    return RiskPrediction(drawn.models, cart(), jnp.asarray(inflation), wall(), STATES, sizes)


def test_a_step_has_the_probability_of_a_gaussian():
    sure = prediction(deviations=(0.05, 0.0))
    states = jnp.array([[0.9, 0.5], [0.9, 1.0], [0.9, 1.5]])
    risks = np.asarray(sure.of_steps(states, jnp.zeros((3, 1))))
    expected = scipy.stats.norm.cdf((np.array([0.95, 1.0, 1.05]) - LIMIT) / 0.05)
    np.testing.assert_allclose(risks, expected, atol=1e-9)


def test_risks_are_means_over_draws_and_grow_with_the_inflation():
    limits = as_constraints("v <= 1", states=STATES, actions=ACTIONS, names=("x", "v"))
    drawn = DrawnModels.stacked([cart(4.0), cart(6.0)])
    states, actions = jnp.array([[0.0, 0.5]]), jnp.ones((1, 1))

    def risk(inflation):
        args = (jnp.asarray(inflation), Violation(limits, 2), STATES, jnp.array([0.0, 0.05]))
        return float(RiskPrediction(drawn.models, cart(), *args).of_steps(states, actions)[0])

    # Speeds after the step are 0.9 and 1.1, or 1 ∓ 0.3 with three times the differences.
    np.testing.assert_allclose(risk(1.0), scipy.stats.norm.cdf([-2.0, 2.0]).mean(), atol=1e-9)
    one = scipy.stats.norm.cdf((np.array([-0.3, 0.3])) / 0.05).mean()
    np.testing.assert_allclose(risk(3.0), one, atol=1e-9)
    assert float(prediction(inflation=1.0).of_steps(states, actions)[0]) == 0.0


def test_the_largest_error_is_in_standard_deviations():
    sure = prediction(pushes=(4.0, 6.0), deviations=(0.05, 0.0))
    states, actions = jnp.array([[0.0, 0.5], [0.2, 0.5], [0.2, 0.5]]), jnp.zeros((2, 1))
    # Predicted are 0.05 and 0.25. The second is right up to 0.05, which is one deviation.
    np.testing.assert_allclose(float(sure.largest_error(states, actions)), 0.15 / 0.05)


def test_errors_make_plans_careful():
    draws = DrawnModels.stacked([cart(4.0), cart(6.0)])
    factors = []
    for error in (float("nan"), 0.5, 4.0, 40.0):
        mdp = dataclasses.replace(
            problem(), drawn_models=dataclasses.replace(draws, largest_error=error)
        )
        factors.append(float(planned(mdp).policy.prediction.inflation))
    assert factors == [5.0, 3.0, 4.0, 5.0]


def test_backups_have_the_risk_of_a_simulation():
    """The wall is passed if the brakes come too late."""
    rng = np.random.default_rng(0)
    speeds = np.array([0.8, 1.3, 2.2])
    states = jnp.asarray(np.stack([np.full(3, 0.6), speeds], axis=1))
    draws = prediction(pushes=(5.0,) * 200)
    backup = FallbackBackup(fallback(), (), jnp.asarray(0))
    first, total = draws.of_backups(
        states, jnp.ones((3, 1)), backup, steps=15, key=jax.random.key(0)
    )
    n = 4000
    place, speed = np.full((n, 3), 0.6), np.broadcast_to(speeds, (n, 3)).copy()
    force, broken = np.ones((n, 3)), np.zeros((n, 3), bool)
    for step in range(16):
        noise = NOISE * rng.normal(size=(n, 3))
        place, speed = place + STEP * speed, speed + STEP * 5.0 * force + noise
        broken |= place > LIMIT
        force = np.clip(-2.0 * place - 2.0 * speed, -1.0, 1.0)
        if step == 0:
            np.testing.assert_allclose(np.asarray(first), broken.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(np.asarray(total), broken.mean(axis=0), atol=0.06)
    assert total[0] < 0.01 < 0.99 < total[2]


def test_a_trusted_state_ends_the_check():
    states, actions = jnp.array([[0.6, 2.2]]), jnp.ones((1, 1))
    trusted = fallback(trusted=km.Box([-3.0, -3.0], [0.9, 3.0]))
    backups = [FallbackBackup(each, (), jnp.asarray(0)) for each in (fallback(), trusted)]
    key = jax.random.key(0)
    risks = [prediction().of_backups(states, actions, b, steps=15, key=key)[1] for b in backups]
    assert risks[0][0] > 0.99
    assert risks[1][0] < 0.01


def test_without_a_fallback_the_rest_of_the_plan_is_the_backup():
    states, actions = jnp.array([[0.6, 1.0]] * 2), jnp.zeros((2, 1))
    sequences = jnp.stack([jnp.full((6, 1), -1.0), jnp.ones((6, 1))])
    key = jax.random.key(0)
    risks = prediction().of_backups(states, actions, PlanBackup(sequences), steps=9, key=key)[1]
    assert risks[0] < 0.01 < 0.99 < risks[1]


def planned(mdp, **fields):
    fields = {"mpc": SEARCH, "fallback": fallback(), "backup_steps": 15} | fields
    return SafeMPCPlanner(**fields).plan(mdp, key=jax.random.key(0))


def played(plan, start, steps=25, seed=0, push=5.0):
    """States and actions of an episode."""
    rng = np.random.default_rng(seed)
    player, states, actions = plan.policy.player(), [np.asarray(start)], []
    for period in range(steps):
        (force,) = np.asarray(player(states[-1], period))
        place, speed = states[-1]
        after = [place + STEP * speed, speed + STEP * push * force + NOISE * rng.normal()]
        states.append(np.array(after))
        actions.append([force])
    return np.array(states), np.array(actions)


def test_it_goes_to_the_limit_and_not_beyond():
    plan = planned(problem((4.5, 5.0, 5.5)))
    states, actions = played(plan, [0.0, 0.0])
    free, _ = played(SEARCH.plan(problem(), key=jax.random.key(0)), [0.0, 0.0])
    assert free[:, 0].max() > 2.0  # what earns most without the limit
    assert 0.7 < states[:, 0].max() <= LIMIT
    assert plan.episode_risk(states, actions) < 0.05
    assert 0 <= plan.fallback_acts(states[:-1], actions).mean() < 0.9


def test_a_model_that_may_be_wrong_makes_it_keep_away():
    near = played(planned(problem((5.0,))), [0.0, 0.0])[0][:, 0].max()
    far = played(planned(problem((1.0, 5.0, 9.0))), [0.0, 0.0])[0][:, 0].max()
    assert far < near - 0.03


def test_the_fallback_acts_where_all_else_is_dangerous():
    state = np.array([0.6, 1.2])
    sure = planned(problem((5.0,)), risk=0.001)
    assert sure.policy(state, 0) > -0.5
    plan = planned(problem((2.0, 5.0)), risk=0.001)
    np.testing.assert_allclose(plan.policy(state, 0), hold(state, 0), atol=1e-9)
    assert plan.fallback_acts(state[None], np.asarray(hold(state, 0))[None]).all()
    assert not plan.fallback_acts(state[None], np.array([[0.3]])).any()


def test_finite_actions_are_not_mixed():
    finite = km.FiniteSet([[-1.0], [0.0], [1.0]])

    def bang(state, period):
        return jnp.where(hold(state, period) > 0, 1.0, -1.0)

    controller = fallback(bang, actions=finite)
    plan = planned(problem(actions=finite), fallback=controller)
    states, actions = played(plan, [0.0, 0.0], steps=12)
    assert set(actions.ravel()) <= {-1.0, 0.0, 1.0}
    assert states[:, 0].max() <= LIMIT


def test_a_fallback_with_memory_is_followed_with_it():
    pid = PID(0, set_point=0.0, proportional=0.3, integral=0.1, derivative=0.5, low=-1.0, high=1.0)
    plan = planned(problem(), fallback=fallback(pid), risk=1e-9, shares=(1.0,))
    states = np.array([[0.9, 1.0], [0.95, 0.6], [0.97, 0.3]])
    player, taken = pid.player(), []
    for period, state in enumerate(states):
        taken.append(player(state, period))
    assert plan.fallback_acts(states, np.array(taken)).all()
    alone = np.asarray(pid.actions(jnp.asarray(states), 0))
    assert not plan.fallback_acts(states, alone).all()


def test_without_a_fallback_and_without_draws_it_plans():
    mdp = dataclasses.replace(problem(), drawn_models=None)
    plan = planned(mdp, fallback=None)
    states, actions = played(plan, [0.0, 0.0], steps=15)
    assert states[:, 0].max() <= LIMIT
    assert not plan.fallback_acts(states[:-1], actions).any()


def test_the_price_begins_before_the_limit():
    mdp = with_penalty(problem(), wall(), penalty=1.0, margin=3.0, least=0.01)
    width = float(mdp.model.widths[0])
    places = LIMIT + width * np.array([-4.0, -2.0, 0.0, 10.0])
    points = jnp.asarray(np.stack([places, np.zeros(4), np.zeros(4)], axis=1))
    costs = np.asarray(cart()(points).reward - mdp.model(points).reward)
    excess = np.array([0.0, 1.0, 3.0, 13.0])
    np.testing.assert_allclose(
        costs, float(mdp.model.price) * (np.sqrt(1 + excess**2) - 1), rtol=1e-6
    )


def test_it_is_registered_and_no_bound():
    planner = PLANNERS["safe-mpc"]()
    assert planner.keeps_constraints
    assert not planner.bounds_risk
    assert MPCPlanner.safe_name == "safe-mpc"


@pytest.mark.parametrize(
    "fields",
    [
        {"drawn_models": 0},
        {"inflation": (0.0, 1.0)},
        {"inflation": (3.0, 2.0)},
        {"shares": ()},
        {"shares": (1.5,)},
        {"margin": -1.0},
    ],
)
def test_bad_settings_are_refused(fields):
    with pytest.raises(ArgumentError, match=next(iter(fields))):
        SafeMPCPlanner(**fields)
