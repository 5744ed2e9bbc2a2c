"""Every learner keeps its contract; fixed kernels are learned in one compiled program."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.errors import ArgumentError, ConformanceError, UnknownPropertyError
from kernelmdp.learners import MCMC, FittedKernels, FixedKernels, Learner, check_learner
from kernelmdp.learners.conformance import small_problem
from kernelmdp.learners.counts import Counts
from kernelmdp.learners.least_squares import LinearQuadratic
from kernelmdp.mdp import Episode, play
from kernelmdp.mdp.policy import UniformPolicy

KEY = jax.random.key(0)


def some_episodes(env, count):
    keys = jax.random.split(KEY, count)
    return [
        env.play(UniformPolicy(env.mdp.actions, key), env.draw_start(key), key=key).on_host()
        for key in keys
    ]


@pytest.mark.parametrize(
    ("learner", "problem"),
    [
        (FixedKernels(), small_problem()),
        (FittedKernels(), small_problem().with_fitted_kernels()),
        (MCMC(km.priors.UnknownNoise()), small_problem()),
    ],
    ids=["fixed", "fitted", "mcmc"],
)
def test_conformance(learner, problem):
    report = check_learner(learner, problem=problem)
    assert report.name == learner.name
    assert len(report.checked) >= 10


class Forgetful(FixedKernels):
    """Changes the state it is given."""

    def update(self, state, episode, *, key):
        object.__setattr__(state, "beliefs", super().update(state, episode, key=key).beliefs)
        return state


class Certain(FixedKernels):
    """Hands out the mean for a sample."""

    def sample(self, state, *, key):
        return self.mean(state)


@pytest.mark.parametrize(
    ("learner", "promise"),
    [
        (Forgetful(), "leaves the old state as it was"),
        (Certain(), "another key gives another sample"),
    ],
)
def test_a_broken_promise_is_found(learner, promise):
    with pytest.raises(ConformanceError, match=promise):
        check_learner(learner)


@pytest.mark.parametrize("name", ["rkhs", "riverswim", "lqr-1d"])
def test_updates_of_fixed_kernels_compile_and_scan(name):
    """A pure function of arrays: one scan over episodes is the loop, but for rounding."""
    env = km.make(name)
    learner, episodes = FixedKernels(), some_episodes(env, 3)
    begin = learner.init(env.problem, key=KEY)
    looped = begin
    for episode in episodes:
        looped = learner.update(looped, episode, key=KEY)
    arrays, static = eqx.partition(begin, eqx.is_array)
    parts = [(e.states, e.actions, e.rewards, e.outcomes) for e in episodes]
    stacked = [jnp.stack([jnp.asarray(part[i]) for part in parts]) for i in range(4)]

    @jax.jit
    def scanned(arrays, stacked):
        def one(carry, rows):
            state = learner.update(eqx.combine(carry, static), Episode(*rows), key=KEY)
            return eqx.partition(state, eqx.is_array)[0], None

        return jax.lax.scan(one, arrays, stacked)[0]

    found = eqx.combine(scanned(arrays, tuple(stacked)), static)
    points = jnp.asarray(env.problem.points.spread_points(30))
    for one, other in zip(
        found.beliefs.predict_state(points), looped.beliefs.predict_state(points), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.beliefs.gains, looped.beliefs.gains, rtol=1e-9)


def test_counts_are_counted():
    env = km.make("riverswim")
    learner, state = Counts(), Counts().init(env.problem, key=KEY)
    episodes = some_episodes(env, 4)
    for episode in episodes:
        state = learner.update(state, episode, key=KEY)
    assert state.counts.sum() == 4 * env.mdp.horizon
    rewards, transitions, _ = state.estimates()
    np.testing.assert_allclose(transitions.sum(axis=2), 1.0)
    mean = learner.mean(state).model(jnp.asarray([[0.0, 1.0]]))
    assert float(mean.reward[0]) == pytest.approx(rewards[0, 1])
    np.testing.assert_allclose(mean.state[0], transitions[0, 1])
    drawn = learner.sample(state, key=KEY).model(jnp.asarray([[0.0, 1.0]])).state
    assert float(drawn.sum()) == pytest.approx(1.0)
    with pytest.raises(UnknownPropertyError, match="no confidence sets"):
        learner.plausible(state, km.Confidence(), episode=1)
    with pytest.raises(ArgumentError, match="finite states"):
        learner.init(km.make("rkhs").problem, key=KEY)


def test_least_squares_find_the_matrices():
    env = km.make("lqr-1d")
    learner, state = LinearQuadratic(), LinearQuadratic().init(env.problem, key=KEY)
    for episode in some_episodes(env, 200):
        state = learner.update(state, episode, key=KEY)
    points = jnp.asarray(env.problem.points.spread_points(20))
    truth, found = env.mdp.model(points), learner.mean(state).model(points)
    np.testing.assert_allclose(found.state, truth.state, atol=0.05)
    np.testing.assert_allclose(found.reward, truth.reward, atol=0.05)
    assert set(learner.info(state)) == set(learner.columns)


def test_a_known_end_stops_every_planner():
    """A signal of the model: what follows an end is worth nothing, on a grid and in MPC."""
    env = km.make("rkhs", horizon=4)
    ends = env.mdp.with_signals(termination=lambda z, after: after[:, 0] > -2.0)  # at once
    truth = env.mdp.model(jnp.asarray([[0.0, a] for a in np.linspace(-1, 1, 201)])).reward
    for planner in (km.GridPlanner(41, 21), km.MPCPlanner(horizon=4, samples=60)):
        plan = planner.plan(ends, start=[0.0], key=KEY)
        whole = planner.plan(env.mdp, start=[0.0], key=KEY)
        assert plan.value([0.0]) == pytest.approx(float(truth.max()), abs=0.02)
        assert whole.value([0.0]) > plan.value([0.0]) + 0.1
    policy = km.GridPlanner(41, 21).plan(ends, start=None, key=KEY).policy
    action = policy([0.0], 0)[0]
    reward = env.mdp.model(jnp.asarray([[0.0, action]])).reward[0]
    assert float(reward) == pytest.approx(float(truth.max()), abs=0.02)
    with pytest.raises(ArgumentError, match="where episodes end"):
        km.planners.RiccatiPlanner().plan(ends, start=None, key=KEY)


def test_other_signals_change_nothing_for_planners():
    env = km.make("rkhs", horizon=3)
    more = env.mdp.with_signals(cost=lambda z, after: z[:, 0])
    plans = [km.GridPlanner(21, 5).plan(mdp, start=None, key=KEY) for mdp in (env.mdp, more)]
    np.testing.assert_array_equal(plans[0].values, plans[1].values)


def test_learning_by_the_step_through_the_loop():
    agent = km.Greedy("rkhs", update="step", seed=0, planner=km.GridPlanner(21, 5))
    result = agent.learn(2, progress=False)
    assert np.isfinite(result.episodes["return"]).all()
    assert isinstance(agent.learner, Learner)
    assert agent.episode == 2


def test_the_certified_planner_by_name():
    env = km.make("rkhs", horizon=2)
    agent = km.Greedy(env, planner={"name": "certified", "max_terms": 2**20}, seed=0)
    agent.ask([0.0])
    plan = agent.planned
    low, high = plan.bounds([0.0])
    assert low <= plan.value([0.0]) <= high
    assert plan.error == pytest.approx((high - low) / 2)


def test_no_certificate_where_outputs_are_correlated():
    mixed = km.kernel("se(0.5) @ coregional([[1.0, 0.5], [0.5, 1.0]])")
    known = {"norm_reward": 1.0, "norm_transition": 1.0}
    problem = dataclasses.replace(km.make("rkhs-2d").problem, transition_kernel=mixed, **known)
    with pytest.raises(ArgumentError, match="where outputs are correlated"):
        km.planners.as_planner("certified", problem)


def test_play_and_episode_types_are_one():
    env = km.make("rkhs", horizon=3)
    episode = play(env.mdp, UniformPolicy(env.mdp.actions, KEY), env.draw_start(KEY), key=KEY)
    agent = km.Greedy(env, seed=0)
    agent.replay(episode)
    assert isinstance(agent.history[0], Episode)
    np.testing.assert_array_equal(agent.history[0].points, episode.points)
