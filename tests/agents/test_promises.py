"""What the theory promises, in runs: calibrated draws, and certificates above the regret."""

import copy

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp import GPUCRL, Box, FiniteSet, GridPlanner, Problem, kernels
from kernelmdp.information import maximum_gain
from kernelmdp.kernels.base import gram
from kernelmdp.learners import prior_beliefs
from kernelmdp.mdp import Gaussian, MeanModel, StateGrid, optimal_values, play, policy_values
from kernelmdp.mdp.policy import UniformPolicy
from kernelmdp.theory import theorem1
from kernelmdp.theory.certificates import (
    episode_gap,
    gap_certificate,
    sum_certificate,
    visited_widths,
)
from kernelmdp.theory.value_lemmas import coverage, posterior_ranks

NOISE = 0.2


def smooth_problem():
    kernel = kernels.SquaredExponential(1.0)
    box = Box([-1.0], [1.0])
    return Problem(
        name="smooth",
        states=box,
        actions=box,
        horizon=3,
        reward_kernel=kernel,
        transition_kernel=(0.3 * kernel) @ kernels.Index(1),
        reward=None,
        reward_noise=Gaussian(NOISE),
        transition_noise=Gaussian(NOISE),
    )


def test_posterior_draws_are_calibrated():
    """G 49: the rank of the true optimal value among those of posterior draws is uniform."""
    problem = smooth_problem()
    prior = prior_beliefs(problem)
    grid = StateGrid(problem.states, (13,), problem.transition_noise)
    action_set = jnp.linspace(-1, 1, 5)[:, None]
    start = jnp.zeros((1, 1))

    def value(model):
        return grid.value_at(optimal_values(problem.mdp(model), grid, action_set)[0], start)[0]

    @eqx.filter_jit
    def experience(key):
        truth_key, policy_key, *keys = jax.random.split(key, 4)
        truth = prior.sample(key=truth_key)
        mdp, policy = problem.mdp(truth), UniformPolicy(problem.actions, policy_key)
        episodes = [play(mdp, policy, start[0], key=k) for k in keys]
        points = jnp.concatenate(
            [jnp.concatenate([e.states[:-1], e.actions], axis=1) for e in episodes]
        )
        rewards = jnp.concatenate([e.rewards for e in episodes])
        return value(truth), points, rewards, jnp.concatenate([e.outcomes for e in episodes])

    @eqx.filter_jit
    def draws(beliefs, key):
        return jax.vmap(lambda k: value(beliefs.sample(key=k)))(jax.random.split(key, 99))

    ranks = []
    for repeat in range(150):
        first, second = jax.random.split(jax.random.fold_in(jax.random.key(1), repeat))
        true, points, rewards, outcomes = experience(first)
        after = prior.condition(np.asarray(points), np.asarray(rewards), np.asarray(outcomes))
        ranks.append(int(np.sum(np.asarray(draws(after, second)) < float(true))))
    check = posterior_ranks(ranks, draws=99)
    assert check.holds, check


# A toy so smooth that a dozen episodes say something.

H, EPISODES, DELTA, NORM = 2, 12, 0.1, 1.0
STATES = Box([-1.0], [1.0])
ACTIONS = FiniteSet(np.linspace(-1, 1, 3)[:, None])
KERNEL = kernels.SquaredExponential(2.0)


def toy_problem():
    # L ≤ span(V_2)/√(2πv), with |R| ≤ B_R: note B8.
    return Problem(
        name="toy",
        states=STATES,
        actions=ACTIONS,
        horizon=H,
        reward_kernel=KERNEL,
        transition_kernel=KERNEL @ kernels.Index(1),
        reward=None,
        reward_noise=Gaussian(NOISE),
        transition_noise=Gaussian(NOISE),
        norm_reward=NORM,
        norm_transition=NORM,
        lipschitz=2 * NORM * (H - 1) / np.sqrt(2 * np.pi * NOISE**2),
    )


class KernelExpansion(eqx.Module):
    centres: jax.Array
    weights: jax.Array

    def __call__(self, points):
        return gram(KERNEL, points, self.centres) @ self.weights


def draw_function(rng, points):
    """A function of norm exactly B."""
    weights = rng.normal(size=len(points))
    matrix = np.asarray(gram(KERNEL, jnp.asarray(points), jnp.asarray(points)))
    weights *= NORM / np.sqrt(weights @ matrix @ weights)
    return KernelExpansion(jnp.asarray(points), jnp.asarray(weights))


class Column(eqx.Module):
    function: KernelExpansion

    def __call__(self, points):
        return self.function(points)[:, None]


@pytest.fixture(scope="module")
def runs():
    """20 runs of GP-UCRL with valid sets: regret, both certificates, coverage."""
    problem = toy_problem()
    made = GPUCRL(problem, confidence="valid", planner=GridPlanner(state_points=41))
    z = problem.points.net(40)[0]
    grid = made.planner.grid(problem.mdp(made.beliefs.mean()))
    action_set = jnp.asarray(np.array(ACTIONS.points))
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = problem.mdp(MeanModel(draw_function(rng, z), Column(draw_function(rng, z))))
        best = np.asarray(optimal_values(truth, grid, action_set))[0, 0]
        agent = copy.copy(made)
        agent.history, agent.seed = [], seed
        rows = []
        for episode in range(EPISODES):
            policy = agent.ask()
            family = agent.sets.family(problem.mdp(agent.sets.plausible))
            worth = policy_values(truth, policy, grid)[0, 0]
            key = jax.random.fold_in(jax.random.key(seed), episode)
            told = play(truth, policy, jnp.asarray(grid.nodes[0]), key=key)
            rows.append(
                {
                    "regret": best - float(worth),
                    "gap": episode_gap(family, agent.planned, grid, grid.nodes[0]),
                    "widths": visited_widths(agent.sets, jnp.asarray(told.points)),
                    "ratio": max(agent.sets.containment(truth.model, jnp.asarray(z))),
                    "beta": (float(agent.sets.beta_reward), float(agent.sets.beta_transition)),
                }
            )
            agent.tell(told.states, told.actions, told.rewards, told.outcomes)
        found.append(rows)
    return problem, found


def share(promises):
    return np.mean(promises)


def test_valid_sets_hold_the_truth(runs):
    ratios = [[row["ratio"] for row in rows] for rows in runs[1]]
    assert share([max(each) <= 1 for each in ratios]) >= 1 - 2 * DELTA / 3
    assert coverage(ratios, miss_probability=2 * DELTA / 3).holds


def test_regret_is_below_both_certificates_and_the_theorem(runs):
    """G 52: regret ≤ certificate (i) ≤ improved Theorem 1, and regret ≤ certificate (ii)."""
    problem, found = runs
    martingale = NORM * np.sqrt(2 * np.log(3 / DELTA) * EPISODES * H * (H - 1) * (2 * H - 1) / 6)
    words = {"lipschitz": problem.lipschitz, "reward_bound": NORM, "horizon": H, "delta": DELTA}
    gains = {
        f"gain_{role}": maximum_gain(
            kernel, domain=problem.points, n=EPISODES * H, noise_variance=NOISE**2
        ).upper
        for role, kernel in (
            ("reward", problem.reward_kernel),
            ("transition", problem.transition_kernel),
        )
    }
    theorem = theorem1(
        horizon=H,
        episodes=EPISODES,
        norm_reward=NORM,
        norm_transition=NORM,
        reward_noise=NOISE,
        transition_noise=NOISE,
        lipschitz=problem.lipschitz,
        delta=DELTA,
        regulariser_reward=NOISE**2,
        regulariser_transition=NOISE**2,
        **gains,
    ).value
    first, second, third = [], [], []
    for rows in found:
        regret = sum(row["regret"] for row in rows)
        made = sum_certificate(*zip(*(row["widths"] for row in rows), strict=True), **words)
        assert made.parts["martingale"] == pytest.approx(martingale)
        first.append(-1e-6 <= regret <= made.total)
        second.append(made.total <= theorem)
        third.append(regret <= gap_certificate([row["gap"] for row in rows], delta=DELTA).total)
    assert share(first) >= 1 - DELTA
    assert all(second)
    assert share(third) >= 1 - DELTA


def test_every_episode_is_below_its_gap(runs):
    """G 60: episode regret ≤ optimistic plan − pessimistic value of the policy."""
    good = [all(row["regret"] <= row["gap"] + 1e-9 for row in rows) for rows in runs[1]]
    assert share(good) >= 1 - DELTA
    # The gap means something: it falls well below the trivial 2 B H.
    last = np.mean([rows[-1]["gap"] for rows in runs[1]])
    assert last < 0.75 * 2 * NORM * H


def test_beta_never_decreases(runs):
    for rows in runs[1]:
        betas = np.array([row["beta"] for row in rows])
        assert (np.diff(betas, axis=0) >= -1e-12).all()
