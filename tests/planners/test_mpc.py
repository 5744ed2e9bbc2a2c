"""Model-predictive control: near the optimum, optimistic where asked, remembering, and bounded."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp import Box
from kernelmdp.domains import FiniteSet, join
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp import (
    MDP,
    NO_NOISE,
    Categorical,
    Gaussian,
    MeanModel,
    Model,
    Prediction,
    play,
    rollout,
)
from kernelmdp.mdp.policy import OpenLoopPolicy, PolicyPlayer
from kernelmdp.numerics.modules import jit
from kernelmdp.planners import MPCPlanner, RiccatiPlanner
from kernelmdp.planners.proposals import CategoricalProposal, colouring_matrix

KEY = jax.random.key(0)
H = 8
SMALL = MPCPlanner(horizon=H, samples=60, elites=8, iterations=3)
#: Where polishing is not the subject: it is half of what is compiled.
ROUGH = {"samples": 60, "elites": 8, "ilqr_iterations": 0}


def make(model, **options):
    words = {
        "states": Box([-5.0, -5.0], [5.0, 5.0]),
        "actions": Box([-1.0], [1.0]),
        "horizon": H,
        "reward_noise": NO_NOISE,
        "transition_noise": NO_NOISE,
    }
    return MDP(model, **(words | options))


def cost(z):
    return -(z[:, 0] ** 2 + 0.5 * z[:, 1] ** 2 + 0.3 * z[:, 2] ** 2)


def glide(z):
    return jnp.stack([z[:, 0] + 0.4 * z[:, 1], z[:, 1] + 0.4 * z[:, 2]], axis=1)


GLIDER = make(MeanModel(cost, glide))


def total(mdp, policy, start, key=KEY):
    return play(mdp, policy, jnp.asarray(start, float), key=key).total


class Scaled(Model):
    """A glider whose engine has a strength, which is an array."""

    strength: jax.Array

    def __call__(self, points):
        after = glide(points)
        push = (self.strength - 0.4) * points[:, 2]
        return Prediction(cost(points), after.at[:, 1].add(push))


class Unsure(Model):
    """A glider without an engine: only luck can move it."""

    radius: jax.Array
    form: str = "radius"

    def __call__(self, points):
        n = points.shape[0]
        state = points[:, :2]
        width = jnp.full(n, 0.1)
        if self.form == "root":
            root = jnp.broadcast_to(self.radius * jnp.eye(2)[None], (n, 2, 2))
            return Prediction(cost(points), state, width, root=root)
        if self.form == "sides":
            return Prediction(cost(points), state, width, sides=jnp.full((n, 2), self.radius))
        if self.form == "none":
            return Prediction(cost(points), state)
        return Prediction(cost(points), state, width, radius=jnp.full(n, self.radius))


STARTS = jnp.array([[0.9, -0.4], [0.1, 0.7]])


@pytest.fixture(scope="module")
def played():
    """Two episodes side by side."""
    return rollout(GLIDER, SMALL.plan(GLIDER, key=KEY).policy, STARTS, key=KEY)


# How good.


def test_near_the_riccati_optimum(played):
    exact = RiccatiPlanner().plan(GLIDER, key=KEY)
    best = total(GLIDER, exact.policy, STARTS[0])
    found = float(jnp.sum(played[2][:, 0]))
    assert best * 1.05 <= found <= best + 1e-9
    # Planned once, from nothing, is a little worse than replanned.
    assert best * 1.1 <= SMALL.plan(GLIDER, key=KEY).value(STARTS[0]) <= best + 1e-9


def test_the_best_of_finitely_many_sequences():
    mdp = make(MeanModel(cost, glide), actions=FiniteSet([[-1.0], [0.0], [1.0]]), horizon=5)
    start = jnp.array([0.8, 0.5])
    every = jnp.asarray(list(itertools.product([-1.0, 0.0, 1.0], repeat=5)))
    play_all = jax.vmap(
        lambda plan: rollout(mdp, OpenLoopPolicy(plan[:, None]), start[None], key=KEY)[2]
    )
    best = float(jnp.max(jnp.sum(play_all(every), axis=(1, 2))))
    plan = MPCPlanner(horizon=5, samples=60).plan(mdp, key=KEY)
    assert total(mdp, plan.policy, start) == pytest.approx(best, abs=1e-9)
    assert plan.value(start) <= best + 1e-9
    actions = rollout(mdp, plan.policy, start[None], key=KEY)[1]
    assert set(np.unique(actions)) <= {-1.0, 0.0, 1.0}


def test_what_was_planned_before_helps():
    """Few draws, many keys: going on from the last plan is better than from nothing."""
    few = MPCPlanner(
        horizon=H, samples=16, elites=4, iterations=1, ilqr_iterations=0, first_rounds=1
    )
    start = jnp.array([0.9, -0.4])

    class Cold(type(few.plan(GLIDER, key=KEY).policy)):
        def decide(self, memory, states, period):
            return self.actions(states, period), memory

    def returns(kind):
        def one(key):
            return jnp.sum(rollout(GLIDER, kind(GLIDER, key, few), start[None], key=KEY)[2])

        return np.asarray(jax.jit(jax.vmap(one))(jax.random.split(KEY, 64)))

    warm, cold = returns(type(few.plan(GLIDER, key=KEY).policy)), returns(Cold)
    gain = warm - cold
    assert gain.mean() > 4 * gain.std() / np.sqrt(len(gain))


# Optimism.


@pytest.mark.parametrize(
    ("form", "optimism"), [("radius", "ball"), ("root", "box"), ("sides", "ball")]
)
def test_luck_reaches_what_actions_cannot(form, optimism):
    """Every step luck moves the state by 0.3: in a ball along a line, in a box along both axes."""
    planner = MPCPlanner(horizon=4, samples=60, elites=8, optimism=optimism)
    start = np.array([0.9, 0.9])
    rough = dataclasses.replace(planner, ilqr_iterations=0)
    plain = rough.plan(make(Unsure(jnp.asarray(0.3), "none"), horizon=4), key=KEY).value(start)
    assert plain == pytest.approx(4 * -1.5 * 0.81, abs=0.2)
    hoped = planner.plan(make(Unsure(jnp.asarray(0.3), form), horizon=4), key=KEY).value(start)
    side = 0.3 / np.sqrt(2) if form == "radius" else 0.3
    diagonal = 0.4 - sum(1.5 * (0.9 - t * side) ** 2 for t in range(4))
    assert hoped > plain + 1
    # Weights differ by axis, so in a ball a curve beats the diagonal, by little.
    assert diagonal - 0.2 <= hoped <= diagonal + 0.15


def test_a_metric_scales_the_ball_and_a_bonus_adds_to_the_reward():
    start = np.array([0.9, 0.9])
    base = make(Unsure(jnp.asarray(0.1)), horizon=3, metric=(3.0, 3.0), lipschitz=2.0)
    wide = make(Unsure(jnp.asarray(0.3)), horizon=3)
    planner = MPCPlanner(horizon=3, **ROUGH)
    assert planner.plan(base, key=KEY).value(start) == pytest.approx(
        planner.plan(wide, key=KEY).value(start), abs=1e-9
    )
    bonus = MPCPlanner(horizon=3, optimism="bonus", **ROUGH).plan(base, key=KEY)
    # Reward, its width and L times the radius at each of three steps, at an action near 0.
    assert bonus.value(start) == pytest.approx(3 * (-1.5 * 0.81 + 0.1 + 0.2), abs=0.05)


def test_rewards_stay_in_their_range():
    mdp = make(Unsure(jnp.asarray(0.3)), horizon=4, reward_range=(-9.0, -0.5))
    value = MPCPlanner(horizon=4, **ROUGH).plan(mdp, key=KEY).value([0.0, 0.0])
    assert value == pytest.approx(4 * -0.5, abs=1e-9)


# What a policy promises.


def test_same_key_same_actions_within_bounds():
    policy = SMALL.plan(GLIDER, key=KEY).policy
    states = jnp.asarray(np.random.default_rng(0).uniform(-5, 5, (20, 2)))
    act = jit(lambda policy, states: policy.actions(states, jnp.asarray(2)))
    actions = act(policy, states)
    np.testing.assert_array_equal(actions, act(SMALL.plan(GLIDER, key=KEY).policy, states))
    assert jnp.all(jnp.abs(actions) <= 1)
    rough = dataclasses.replace(
        SMALL, ilqr_iterations=0
    )  # polished, both keys come to the same top
    first, second = (
        act(rough.plan(GLIDER, key=jax.random.key(n)).policy, states[:2]) for n in (0, 1)
    )
    assert not np.allclose(first, second)


def test_episodes_side_by_side_and_outside_compiled_programs_agree(played):
    states, actions, *_ = played
    player = SMALL.plan(GLIDER, key=KEY).policy.player()
    assert isinstance(player, PolicyPlayer)
    for period in range(H):
        action = player(np.asarray(states[period, 1]), period)
        np.testing.assert_allclose(action, actions[period, 1], atol=1e-9)


def test_nothing_is_traced_again_for_another_model():
    traces = []

    class Counting(Scaled):
        def __call__(self, points):
            traces.append(1)
            return super().__call__(points)

    answers = []
    for strength in (0.1, 0.4, 0.8):
        mdp = make(Counting(jnp.asarray(strength)), horizon=3)
        key = jax.random.key(int(10 * strength))
        policy = MPCPlanner(horizon=3, samples=30, ilqr_iterations=0).plan(mdp, key=key)
        player = policy.policy.player()
        answers.append([player([1.0, 0.5], period)[0] for period in range(3)])
        if strength == 0.1:
            first = len(traces)
        # Only which widths there are is looked up, by shapes.
        assert len(traces) - first <= 2 * len(answers)
    assert answers[0] != answers[2]


def test_a_player_takes_another_model_within_the_episode():
    weak, strong = (make(Scaled(jnp.asarray(s)), horizon=4) for s in (1e-6, 0.4))
    planner = MPCPlanner(horizon=4, **ROUGH)
    player = planner.plan(weak, key=KEY).policy.player()
    assert abs(player([1.0, 1.0], 0)[0]) < 0.3  # an action costs, and moves nothing
    player.policy = planner.plan(strong, key=KEY).policy
    assert player([1.0, 1.0], 1)[0] < -0.3


def test_policies_without_a_memory_play_themselves():
    policy = OpenLoopPolicy(jnp.zeros((H, 1)))
    assert policy.player() is policy
    assert policy.reset(3) == ()


# The end of an episode.


def test_steps_after_the_episode_do_not_count():
    """Far ahead there is a prize; in the last periods it is out of reach and nothing moves."""

    def prize(z):
        return jnp.where(z[:, 0] > 2.9, 10.0, 0.0) - 0.01 * z[:, 1] ** 2

    mdp = make(
        MeanModel(prize, lambda z: z[:, :1] + z[:, 1:]),
        states=Box([0.0], [4.0]),
        horizon=6,
    )
    policy = MPCPlanner(horizon=6, **ROUGH).plan(mdp, key=KEY).policy
    act = jax.jit(lambda period: policy.actions(jnp.zeros((1, 1)), period)[0, 0])
    assert act(0) > 0.3  # 2.9 is reached in time
    assert abs(act(3)) < 0.2  # two moves count, and reach 2


def test_termination_ends_rewards_in_plans_and_rollouts():
    """+1 a step; beyond 1 the episode ends. Drifting there pays less than holding."""
    mdp = make(
        MeanModel(lambda z: jnp.ones(z.shape[0]), lambda z: z[:, :1] + 0.5 + z[:, 1:]),
        states=Box([-9.0], [9.0]),
        termination=lambda points, after: after[:, 0] > 1.0,
    )
    start = jnp.array([0.0])
    states, _, rewards, outcomes = rollout(
        mdp, OpenLoopPolicy(jnp.zeros((H, 1))), start[None], key=KEY
    )
    np.testing.assert_allclose(states[:4, 0, 0], [0.0, 0.5, 1.0, 1.5])
    np.testing.assert_allclose(states[4:, 0, 0], 1.5)
    np.testing.assert_allclose(outcomes[3:, 0, 0], 1.5)
    np.testing.assert_allclose(rewards[:, 0], [1, 1, 1, 0, 0, 0, 0, 0])
    plan = SMALL.plan(mdp, key=KEY)
    assert total(mdp, plan.policy, start) == H
    assert plan.value([0.0]) == H
    doomed = make(
        MeanModel(lambda z: jnp.ones(z.shape[0]), lambda z: z[:, :1] + 0.5),
        states=Box([-9.0], [9.0]),
        termination=lambda points, after: after[:, 0] > 1.0,
    )
    assert dataclasses.replace(SMALL, ilqr_iterations=0).plan(doomed, key=KEY).value([0.0]) == 3


def test_of_plans_that_last_the_one_that_comes_to_rest():
    """A cart on a short track, where all that does not end the episode is equal."""
    cart = make(
        MeanModel(
            lambda z: jnp.ones(z.shape[0]),
            lambda z: jnp.stack([z[:, 0] + 0.1 * z[:, 1], z[:, 1] + 0.1 * z[:, 2]], axis=1),
        ),
        states=Box([-9.0, -9.0], [9.0, 9.0]),
        horizon=30,
        termination=lambda points, after: jnp.abs(after[:, 0]) > 2.0,
    )
    planner = MPCPlanner(horizon=8, **ROUGH)
    states = rollout(cart, planner.plan(cart, key=KEY).policy, jnp.array([[0.0, 0.8]]), key=KEY)[0]
    assert np.abs(np.asarray(states)[-10:, 0, 1]).max() < 0.3


def test_particles_see_the_noise():
    """A cliff one noise deviation away: only with noise in the plan is a distance kept."""

    def edge(z):
        return jnp.where(z[:, 0] > 0, -10.0, z[:, 0])

    def make_cliff(particles):
        mdp = make(
            MeanModel(edge, lambda z: z[:, 1:]),
            states=Box([-1.0], [1.0]),
            horizon=3,
            transition_noise=Gaussian(0.1),
        )
        return MPCPlanner(horizon=3, particles=particles, **ROUGH).plan(mdp, key=KEY).policy

    careless, careful = (make_cliff(p)([-0.5], 0)[0] for p in (1, 16))
    assert -0.03 < careless <= 0
    assert careful < -0.08


# Laws.


@pytest.mark.parametrize("exponent", [0.0, 2.0])
def test_colour_has_variance_one_and_its_spectrum(exponent):
    steps = 20
    cover = colouring_matrix(steps, exponent) @ colouring_matrix(steps, exponent).T
    np.testing.assert_allclose(np.diag(cover), 1.0)
    if exponent == 0:
        np.testing.assert_allclose(cover, np.eye(steps), atol=0.06)
    else:
        assert cover[0, 1] > 0.9  # slow
        assert cover[0, -1] < 0.1  # and the end is not the beginning again


def test_frequencies_are_drawn_as_they_are():
    proposal = CategoricalProposal(5, ((0.0,), (1.0,), (2.0,)))
    shares = jnp.asarray(np.random.default_rng(0).dirichlet([1, 1, 1], size=5))
    noise = jax.random.normal(KEY, (4000, 5, 1))
    drawn = np.asarray(proposal.from_noise(shares, noise))[:, :, 0]
    for option in range(3):
        np.testing.assert_allclose((drawn == option).mean(axis=0), shares[:, option], atol=0.03)
    np.testing.assert_allclose(
        jnp.sum(proposal.fit(shares, jnp.asarray(drawn)[:9, :, None], 0.1), 1), 1
    )


# Bad input.


@pytest.mark.parametrize(
    ("words", "argument"),
    [
        ({"samples": 20, "elites": 10}, "samples"),
        ({"samples": 2.5}, "samples"),
        ({"horizon": 0}, "horizon"),
        ({"elites": 0}, "elites"),
        ({"iterations": 0}, "iterations"),
        ({"particles": 0}, "particles"),
        ({"reuse_fraction": 1.5}, "reuse_fraction"),
        ({"momentum": -0.1}, "momentum"),
        ({"exploration_fraction": 1.0}, "exploration_fraction"),
        ({"initial_std": 0.0}, "initial_std"),
        ({"noise_exponent": float("nan")}, "noise_exponent"),
        ({"optimism": "hope"}, "optimism"),
    ],
)
def test_settings_that_make_no_sense(words, argument, unchecked):
    with pytest.raises(ArgumentError, match=f"^{argument}: expected"):
        MPCPlanner(**words)


def test_what_cannot_be_planned():
    table = FiniteSet.range(3)
    tabular = make(
        MeanModel(lambda z: z[:, 0], lambda z: jnp.ones((z.shape[0], 3)) / 3),
        states=table,
        transition_noise=Categorical(table),
    )
    with pytest.raises(ArgumentError, match="'grid' for a table"):
        SMALL.plan(tabular, key=KEY)
    both = make(MeanModel(cost, glide), actions=join(a=Box([0.0], [1.0]), b=table))
    with pytest.raises(ArgumentError, match="a box or a finite set"):
        SMALL.plan(both, key=KEY)
    bonus = MPCPlanner(optimism="bonus")
    with pytest.raises(ArgumentError, match="where L is infinite"):
        bonus.plan(make(Unsure(jnp.asarray(0.1))), key=KEY)
    with pytest.raises(ArgumentError, match="for ellipsoids"):
        bonus.plan(make(Unsure(jnp.asarray(0.1), "root")), key=KEY)
    assert np.isnan(MPCPlanner(horizon=4).plan(GLIDER, key=KEY).value([0.0, 0.0]))
    assert MPCPlanner().query_points(GLIDER) is None


@pytest.mark.parametrize("informed", [True, False])
def test_of_plans_that_last_the_one_far_from_limits_is_taken(informed):
    """A cart drifts towards the end of its rail, beyond the horizon of the plan."""

    def drift(z):
        return jnp.stack([z[:, 0] + 0.02 * z[:, 1], z[:, 1] + 0.02 * z[:, 2]], axis=1)

    model = MeanModel(lambda z: jnp.ones(z.shape[0]), drift)
    actions = FiniteSet([[-1.0], [1.0]])
    mdp = make(
        model,
        actions=actions,
        horizon=40,
        termination=lambda points, after: jnp.abs(after[:, 0]) > 1.0,
        signals={"nearness": lambda points, after: after[:, 0] ** 2} if informed else {},
    )
    plan = dataclasses.replace(SMALL, horizon=10).plan(mdp, key=KEY)
    played = play(mdp, plan.policy, jnp.array([0.5, 0.5]), key=KEY)
    assert played.total == 40
    # Both brake. Only the planner that knows the limits turns back.
    assert (played.states[-1][1] < -0.05) == informed


def test_finite_actions_are_searched_longer():
    finite = make(MeanModel(cost, glide), actions=FiniteSet([[-1.0], [1.0]]))
    assert SMALL.search(finite).iterations == SMALL.finite_iterations > SMALL.iterations
    assert SMALL.search(GLIDER).iterations == SMALL.iterations


def test_a_followed_plan_is_at_least_as_good_after_a_disturbance():
    """A pole on its tip. The plan of the first period ends at rest, with feedback on the way."""

    def after(z):
        speed = z[:, 1] + 0.1 * (16.0 * jnp.sin(z[:, 0]) + 2.0 * z[:, 2])
        return jnp.stack([z[:, 0] + 0.1 * speed, speed], axis=1)

    mdp = MDP(
        MeanModel(lambda z: -(z[:, 0] ** 2) - 0.01 * z[:, 2] ** 2, after),
        states=Box([-4.0, -9.0], [4.0, 9.0]),
        actions=Box([-1.0], [1.0]),
        horizon=60,
        reward_noise=NO_NOISE,
        transition_noise=NO_NOISE,
    )
    values = []
    for follows in (False, True):
        planner = MPCPlanner(
            horizon=40, samples=13, iterations=1, ilqr_iterations=1, follows_plan=follows
        )
        policy = planner.plan(mdp, key=jax.random.key(0)).policy
        _, _, memory = policy.replan(policy.reset(1), jnp.zeros((1, 2)), 0)
        gains = [np.abs(leaf).max() for leaf in jax.tree.leaves(memory.refinement)]
        assert bool(gains) == follows
        _, value, _ = policy.replan(memory, jnp.array([[0.01, 0.0]]), 1)
        values.append(float(value[0]))
    assert values[1] >= values[0] - 1e-9
    assert values[1] > -0.05
