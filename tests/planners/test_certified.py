"""The certified planner against an independent dynamic program on a fine grid."""

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from scipy import stats

from kernelmdp.domains import Box, FiniteSet
from kernelmdp.errors import ArgumentError, DomainError, ShapeError
from kernelmdp.mdp import MDP, NO_NOISE, Gaussian, MeanModel, Model, Prediction, Uniform
from kernelmdp.planners import paper_tolerance
from kernelmdp.planners.certified_planner import (
    CertifiedPlanner,
    LookaheadPolicy,
    _backward_induction,
)
from kernelmdp.planners.discretisation import DiscretisationSizes, a_priori_gap
from kernelmdp.planners.lipschitz_bounds import LipschitzConstants
from kernelmdp.planners.mcshane import Lookahead

HORIZON, NOISE, START = 4, 0.1, [0.2]
KEY = jax.random.key(0)
# |R_s| ≤ 6x e^{−3x²} at x = 1/√6, |R_a| ≤ 0.4.
CONSTANTS = LipschitzConstants(math.sqrt(6) * math.exp(-0.5), 0.4, 0.8, 0.3)


def reward(points):
    return jnp.exp(-3 * (points[:, 0] - 0.7) ** 2) - 0.2 * points[:, 1] ** 2


def transition(points):
    return 0.8 * points[:, :1] + 0.3 * points[:, 1:]


def example(**changes):
    given = {
        "model": MeanModel(reward, transition),
        "states": Box([0.0], [1.0]),
        "actions": Box([-1.0], [1.0]),
        "horizon": HORIZON,
        "reward_noise": NO_NOISE,
        "transition_noise": Gaussian(NOISE),
        "reward_range": (-0.2, 1.0),
    }
    given.update(changes)
    return MDP(given.pop("model"), **given)


FINE = np.linspace(0, 1, 801)
LAWS = {
    "gauss": NOISE * stats.norm.ppf((np.arange(400) + 0.5) / 400),
    "uniform": NOISE * ((np.arange(400) + 0.5) / 200 - 1),
}


def expected(after, means, noise):
    """E V(clip(p + ε)) for a table over FINE."""
    return np.interp(np.clip(means[..., None] + noise, 0, 1), FINE, after).mean(axis=-1)


def fine_optimum(noise):
    """V* over FINE at the first period; 101 actions, hundreds of noise values."""
    s, a = np.meshgrid(FINE, np.linspace(-1, 1, 101), indexing="ij")
    gain = np.exp(-3 * (s - 0.7) ** 2) - 0.2 * a**2
    means = np.linspace(-0.3, 1.1, 1401)
    values = np.zeros(len(FINE))
    for _ in range(HORIZON):
        smooth = expected(values, means, noise)
        values = (gain + np.interp(0.8 * s + 0.3 * a, means, smooth)).max(axis=1)
    return values


@eqx.filter_jit
def acting(policy, states, period):
    return policy.actions(states, period)


def fine_value(policy, noise, *, more=0.0, shift=0.0):
    """V_π over FINE at the first period, where all pays ``more`` and lands ``shift`` further."""
    values = np.zeros(len(FINE))
    for h in reversed(range(HORIZON)):
        a = np.asarray(acting(policy, jnp.asarray(FINE[:, None]), jnp.asarray(h)))[:, 0]
        gain = np.exp(-3 * (FINE - 0.7) ** 2) - 0.2 * a**2 + more
        values = gain + expected(values, 0.8 * FINE + 0.3 * a + shift, noise)
    return values


def solve(mdp, sizes, constants=CONSTANTS):
    planner = CertifiedPlanner(constants, tolerance=1e-12, max_terms=sizes.terms(mdp), strict=False)
    return planner._solve(mdp, np.array(START), sizes)


@pytest.mark.parametrize(
    ("law", "noise"), [("gauss", Gaussian(NOISE)), ("uniform", Uniform(NOISE))]
)
def test_bounds_enclose_the_policy_and_the_optimum(law, noise):
    mdp = example(transition_noise=noise)
    plan = solve(mdp, DiscretisationSizes((65,), (17,), 32))
    optimum, value = fine_optimum(LAWS[law]), fine_value(plan.policy, LAWS[law])
    states = FINE[::40]
    low, high = np.array([plan.bounds([s]) for s in states]).T
    assert np.all(low <= value[::40] + 1e-3)
    assert np.all(value <= optimum + 1e-3)
    assert np.all(optimum[::40] <= high + 1e-3)
    # The policy is far better than its certificate, and not a constant.
    assert np.max(optimum - value) < 0.01
    assert np.ptp(value) > 0.05
    eta_state, eta_action, noise_error = DiscretisationSizes((65,), (17,), 32).errors(mdp)
    promised = a_priori_gap(
        CONSTANTS,
        HORIZON,
        state_radius=eta_state,
        action_radius=eta_action,
        noise_error=noise_error,
    )
    assert np.max(high - low) <= promised + 1e-9
    assert plan.a_priori_gap == pytest.approx(promised)
    assert plan.gap > 0.2 * promised  # else the promise says nothing


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("part", ["noise", "action", "state"])
def test_every_charge_is_needed(part, sign):
    """Worst cases that meet one side of the bounds exactly: with any less it would not hold.

    Two periods; the second pays ± the distance to where the net has its point.
    """
    place = 0.125 if part == "state" else 0.0  # 9 nodes over [−1, 1]: half way between two

    def pay(z):
        if part == "action":
            return -jnp.abs(z[:, 1] - 0.25)  # 5 actions over [−1, 1]: half way between two
        return sign * jnp.abs(
            jnp.mod(z[:, 0] + 0.125, 0.25) - 0.125 if part == "state" else z[:, 0]
        )

    mdp = example(
        model=MeanModel(pay, lambda z: jnp.full((z.shape[0], 1), place)),
        states=Box([-1.0], [1.0]),
        horizon=2,
        transition_noise=Gaussian(0.1) if part == "noise" else NO_NOISE,
        reward_range=(-9.0, 9.0),
    )
    slopes = (0.0, 1.0) if part == "action" else (1.0, 0.0)
    plan = CertifiedPlanner(LipschitzConstants(*slopes, 0.0, 0.0), tolerance=9.0)._solve(
        mdp, np.zeros(1), DiscretisationSizes((9,), (5,), 1)
    )
    optimum = {"noise": sign * 0.1 * math.sqrt(2 / math.pi), "action": 0.0, "state": sign * 0.125}
    assert plan.lower - 1e-9 <= optimum[part] <= plan.upper + 1e-9
    met = plan.upper if sign > 0 or part == "action" else plan.lower
    assert met == pytest.approx(optimum[part], abs=1e-9)


def test_a_priori_gap_by_hand():
    # H = 2: L_V = (3·1 + 3, 3, 0) with reward slope 3 and transition slope 1; only h = 1 has U.
    constants = LipschitzConstants(3.0, 5.0, 1.0, 7.0)
    gap = a_priori_gap(constants, 2, state_radius=0.1, action_radius=0.01, noise_error=0.2)
    assert gap == pytest.approx(2 * 3 * 0.3 + (5 + 3 * 7) * 0.01 + 5 * 0.01)


def test_halving_everything_shrinks_the_gap():
    mdp, sizes = example(), DiscretisationSizes((33,), (9,), 16)
    finer = DiscretisationSizes((65,), (17,), 32)
    assert solve(mdp, sizes).gap >= 1.6 * solve(mdp, finer).gap
    for coarse, fine in zip(sizes.errors(mdp), finer.errors(mdp), strict=True):
        assert 1.6 <= coarse / fine <= 2.01


@pytest.mark.parametrize("episode", [4, 40])
def test_refinement_reaches_the_tolerance_of_the_paper(episode):
    mdp, tolerance = example(), paper_tolerance(HORIZON, episode)
    plan = CertifiedPlanner(CONSTANTS, tolerance=tolerance).plan(mdp, start=START, key=KEY)
    assert plan.within_tolerance
    assert plan.certified
    assert plan.gap <= tolerance
    optimum = np.interp(START[0], FINE, fine_optimum(LAWS["gauss"]))
    assert abs(plan.value(START) - optimum) <= plan.error + 1e-3
    assert plan.bounds(START) == (plan.lower, plan.upper)


def test_tolerances_add_up():
    for horizon, episodes in [(1, 1), (5, 40), (20, 1000)]:
        total = sum(paper_tolerance(horizon, episode + 1) for episode in range(episodes))
        assert total <= 2 * math.sqrt(horizon * episodes)
        assert total >= 2 * math.sqrt(horizon * episodes) - 2 * math.sqrt(horizon)
    with pytest.raises(ArgumentError, match="episode"):
        paper_tolerance(3, 0)


def test_values_are_clipped_to_what_rewards_allow():
    mdp, sizes = example(reward_range=(-0.2, 1.0)), DiscretisationSizes((9,), (5,), 4)
    clipped = solve(mdp, sizes)
    free = solve(example(reward_range=(-math.inf, math.inf)), sizes)
    assert free.upper > HORIZON * 1.0
    left = np.arange(HORIZON, -1, -1)[:, None]
    assert np.all(np.asarray(clipped.tables[1]) <= left * 1.0)
    assert np.any(np.asarray(free.tables[1]) > left * 1.0)
    assert np.all(np.asarray(clipped.tables[0]) >= left * -0.2)
    assert clipped.upper < free.upper


def test_two_dimensions_with_a_circle():
    # An angle that turns by the action, and a second axis that follows it.
    def turn(points):
        angle, level, action = points[:, 0], points[:, 1], points[:, 2]
        follow = 0.5 * level + 0.1 * jnp.sin(2 * jnp.pi * angle)
        return jnp.stack([angle + 0.25 * action, follow], axis=1)

    def pay(points):
        return 0.5 * jnp.cos(2 * jnp.pi * points[:, 0]) + points[:, 1]

    mdp = MDP(
        MeanModel(pay, turn),
        states=Box([0.0, 0.0], [1.0, 1.0], periodic=[0]),
        actions=FiniteSet([[-1.0], [0.0], [1.0]]),
        horizon=3,
        reward_noise=NO_NOISE,
        transition_noise=NO_NOISE,
        reward_range=(-0.5, 1.5),
    )
    reward_slope = math.hypot(math.pi, 1.0)
    transition_slope = np.linalg.norm([[1, 0], [0.2 * math.pi, 0.5]], 2)
    constants = LipschitzConstants(reward_slope, 0.0, float(transition_slope), 0.25)
    sizes = DiscretisationSizes((32, 17), (1,), 1)
    plan = CertifiedPlanner(constants, tolerance=1.0)._solve(mdp, np.array([0.97, 0.3]), sizes)

    def best(state, left):
        """Noise-free: the optimum is a search over 3^H plans."""
        if left == 0:
            return 0.0
        now = 0.5 * math.cos(2 * math.pi * state[0]) + state[1]
        level = min(max(0.5 * state[1] + 0.1 * math.sin(2 * math.pi * state[0]), 0), 1)
        return now + max(
            best(((state[0] + 0.25 * a) % 1, level), left - 1) for a in (-1.0, 0.0, 1.0)
        )

    for state in [(0.97, 0.3), (0.02, 0.9), (0.5, 0.5), (0.74, 0.0)]:
        low, high = plan.bounds(list(state))
        assert low <= best(state, 3) <= high
        assert high - low <= plan.a_priori_gap + 1e-9
    # Cones go around the circle: seen from the seam, both ends are near.
    nodes, seam = plan.policy.lookahead.grid.nodes, np.array([0.99, 0.4])
    gap = np.abs(nodes - seam)
    gap[:, 0] = np.minimum(gap[:, 0], 1 - gap[:, 0])
    cone = 2.0 * np.linalg.norm(gap, axis=1)
    values = np.cos(3 * nodes[:, 0])  # jumps at the seam
    low, high = plan.policy.lookahead.extend(
        jnp.asarray(seam[None]), jnp.asarray(values), jnp.asarray(values), jnp.asarray(2.0)
    )
    assert low[0] == pytest.approx((values - cone).max())
    assert high[0] == pytest.approx((values + cone).min())


def test_all_nodes_and_neighbours_agree_in_one_dimension():
    lookahead = Lookahead.for_mdp(example(), CONSTANTS, DiscretisationSizes((17,), (5,), 8))
    lower, upper = _backward_induction(lookahead)
    states = np.linspace(0, 1, 57)
    for h in range(HORIZON):
        slope = lookahead.slopes[h]
        low, high = lookahead.extend(jnp.asarray(states[:, None]), lower[h], upper[h], slope)
        cone = float(slope) * abs(states[:, None] - np.asarray(lookahead.grid.nodes)[None, :, 0])
        np.testing.assert_allclose(low, (np.asarray(lower[h]) - cone).max(axis=1), atol=1e-12)
        np.testing.assert_allclose(high, (np.asarray(upper[h]) + cone).min(axis=1), atol=1e-12)


def test_a_finite_world_without_noise_is_exact():
    def variance_history(points):
        return jnp.clip(points[:, :1] + points[:, 1:], 0.0, 4.0)

    mdp = MDP(
        MeanModel(lambda z: jnp.where(z[:, 0] == 4.0, 1.0, 0.0), variance_history),
        states=FiniteSet.range(5),
        actions=FiniteSet([[-1.0], [1.0]]),
        horizon=6,
        reward_noise=NO_NOISE,
        transition_noise=NO_NOISE,
        reward_range=(0.0, 1.0),
    )
    plan = CertifiedPlanner(LipschitzConstants(1.0, 0.0, 1.0, 1.0), tolerance=1e-9).plan(
        mdp, start=[1.0], key=KEY
    )
    assert (plan.lower, plan.upper) == (3.0, 3.0)
    assert plan.policy([1.0], 0).tolist() == [1.0]
    with pytest.raises(ArgumentError, match="transition_noise"):
        CertifiedPlanner(CONSTANTS, tolerance=1.0).plan(
            dataclasses.replace(mdp, transition_noise=Gaussian(0.1)), start=[1.0], key=KEY
        )


class Tube(Model):
    """All MDPs within a width of the example's reward and transition."""

    width: float
    radius: float
    shape: str = "ball"

    def __call__(self, points):
        n = points.shape[0]
        rooted = self.shape == "ellipsoid"
        if self.shape == "box":
            sides = jnp.full((n, 1), self.radius)
            return Prediction(
                reward(points), transition(points), jnp.full(n, self.width), sides=sides
            )
        return Prediction(
            reward(points),
            transition(points),
            jnp.full(n, self.width),
            None if rooted else jnp.full(n, self.radius),
            jnp.broadcast_to(self.radius * jnp.eye(1)[None], (n, 1, 1)) if rooted else None,
        )


class Shifted(eqx.Module):
    shift: Array

    def __call__(self, points):
        return transition(points) + self.shift


def test_an_interval_is_a_ball_an_ellipsoid_and_a_box():
    sizes, shapes = DiscretisationSizes((17,), (5,), 8), ("ball", "ellipsoid", "box")
    uppers = [solve(example(model=Tube(0.05, 0.04, shape)), sizes).upper for shape in shapes]
    assert uppers == pytest.approx([uppers[0]] * 3, abs=1e-12)
    assert uppers[0] > solve(example(), sizes).upper


def test_the_upper_value_dominates_a_family():
    sizes, scope = DiscretisationSizes((33,), (9,), 16), (-0.25, 1.05)
    plan = solve(example(model=Tube(0.05, 0.04), reward_range=scope), sizes)
    found = []
    for shift in (-0.04, 0.04):  # members with the same constants
        member = MeanModel(lambda z: reward(z) + 0.05, Shifted(jnp.asarray(shift)))
        inside = solve(example(model=member, reward_range=scope), sizes)
        value = fine_value(inside.policy, LAWS["gauss"], more=0.05, shift=shift)
        found.append(float(np.interp(START[0], FINE, value)))
        # Its own rounding is the member's, so the family's side lies above the member's too.
        assert inside.upper <= plan.upper + 1e-9
    assert max(found) <= plan.upper + 1e-3
    assert max(found) > np.interp(START[0], FINE, fine_optimum(LAWS["gauss"])) + 0.2
    # Planning error alone, which the width of the family has no part in.
    assert plan.gap <= plan.a_priori_gap + 1e-9


def test_a_metric_widens_the_ball():
    sizes = DiscretisationSizes((33,), (9,), 8)
    one = solve(example(model=Tube(0.0, 0.04), reward_range=(-9.0, 9.0)), sizes)
    two = solve(example(model=Tube(0.0, 0.02), metric=(2.0,), reward_range=(-9.0, 9.0)), sizes)
    assert two.upper == pytest.approx(one.upper)


def test_chunks_do_not_change_the_result(monkeypatch):
    sizes = DiscretisationSizes((17,), (5,), 8)
    whole = solve(example(), sizes)
    monkeypatch.setattr("kernelmdp.planners.mcshane.TERMS_PER_CHUNK", 100)
    monkeypatch.setattr("kernelmdp.planners.mcshane.POINTS_PER_CHUNK", 7)
    lookahead = Lookahead.for_mdp(example(reward_range=(-0.2, 1.0 + 1e-15)), CONSTANTS, sizes)
    np.testing.assert_allclose(_backward_induction(lookahead)[0], whole.tables[0], atol=1e-12)


def test_limit_reached():
    planner = CertifiedPlanner(CONSTANTS, tolerance=0.01, max_terms=10**5)
    with pytest.raises(ArgumentError, match=r"tolerance: expected at least .* larger max_terms"):
        planner.plan(example(), start=START, key=KEY)
    plan = dataclasses.replace(planner, strict=False).plan(example(), start=START, key=KEY)
    assert not plan.within_tolerance
    assert plan.gap > 0.01
    assert plan.sizes.terms(example()) <= 10**5
    with pytest.raises(ArgumentError, match="max_terms"):
        CertifiedPlanner(CONSTANTS, tolerance=0.01, max_terms=10).plan(
            example(), start=START, key=KEY
        )


@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan])
@pytest.mark.parametrize("place", range(4))
def test_constants_must_be_finite_and_not_negative(place, value):
    numbers = [1.0, 1.0, 1.0, 1.0]
    numbers[place] = value
    with pytest.raises(ArgumentError, match="finite number"):
        LipschitzConstants(*numbers)


def test_constants_that_the_model_refutes():
    wrong = dataclasses.replace(CONSTANTS, reward_state=0.1)
    with pytest.raises(ArgumentError, match="constants"):
        CertifiedPlanner(wrong, tolerance=1.0).plan(example(), start=START, key=KEY)


def test_bad_input():
    with pytest.raises(ArgumentError, match="tolerance"):
        CertifiedPlanner(CONSTANTS, tolerance=0.0)
    with pytest.raises(TypeError, match="constants"):
        CertifiedPlanner(tolerance=1.0)
    planner = CertifiedPlanner(CONSTANTS, tolerance=1.0)
    with pytest.raises(ShapeError, match="start"):
        planner.plan(example(), start=[0.1, 0.2], key=KEY)
    with pytest.raises(DomainError, match="start"):
        planner.plan(example(), start=[1.5], key=KEY)
    steep = dataclasses.replace(CONSTANTS, transition_state=1e200)
    with pytest.raises(ArgumentError, match="finite slopes"):
        CertifiedPlanner(steep, tolerance=1.0).plan(example(), start=START, key=KEY)


def test_the_policy_is_a_policy():
    plan = solve(example(), DiscretisationSizes((17,), (5,), 8))
    assert isinstance(plan.policy, LookaheadPolicy)
    together = np.asarray(acting(plan.policy, jnp.asarray(FINE[::100, None]), jnp.asarray(1)))
    one_by_one = np.array([plan.policy(s, 1) for s in FINE[::100, None]])
    np.testing.assert_array_equal(together, one_by_one)
    assert len(np.unique(together)) > 1
