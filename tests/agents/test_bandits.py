"""H = 1: our agents against independent bandit algorithms of a few lines."""

import jax
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.agents import GPUCRL, PSRL, episode_key
from kernelmdp.confidence import Confidence, igp_ucb
from kernelmdp.envs import bandit
from kernelmdp.errors import ArgumentError
from tests.agents import tiny

ROUNDS, NOISE, NORM, DELTA = 100, 0.2, 2.0, 0.1
ARMS = np.linspace(-1, 1, 40)[:, None]
TRUTH = np.sin(3 * ARMS[:, 0]) * np.exp(-ARMS[:, 0])
NOISES = NOISE * np.random.default_rng(5).normal(size=ROUNDS)


def task(kernel, arms=ARMS, truth=TRUTH):
    table = jax.numpy.asarray(truth)
    points = jax.numpy.asarray(arms)

    def reward(actions):
        gaps = ((actions[:, None, :] - points[None]) ** 2).sum(axis=2)
        return table[gaps.argmin(axis=1)]

    return bandit(reward, km.FiniteSet(arms), km.kernel(kernel), noise=NOISE, norm=NORM)


def pulls(agent, arms=ARMS, truth=TRUTH):
    """The arms that an agent pulls, told rewards with the shared noise."""
    chosen = []
    for noise in NOISES:
        action = agent.ask([0.0])([0.0], 0)
        arm = int(np.abs(arms - action[None]).sum(axis=1).argmin())
        chosen.append(arm)
        agent.tell([[0.0], [0.0]], [arms[arm]], [truth[arm] + noise])
    return chosen


def first_arm(seed, count):
    """Before any data all arms tie: the agent's key decides."""
    return int(np.argmax(jax.random.uniform(episode_key(seed, 0), (count,))))


def gp_ucb(regulariser, beta):
    """GP-UCB on finitely many arms with an SE kernel, dense."""
    K = np.exp(-((ARMS - ARMS.T) ** 2) / (2 * 0.3**2))
    chosen, rewards = [first_arm(0, len(ARMS))], []
    for t in range(ROUNDS):
        rewards.append(TRUTH[chosen[t]] + NOISES[t])
        k, A = K[:, chosen], K[np.ix_(chosen, chosen)] + regulariser * np.eye(t + 1)
        mean = k @ np.linalg.solve(A, rewards)
        variance = 1 - np.einsum("ij,ji->i", k, np.linalg.solve(A, k.T))
        gain = 0.5 * np.linalg.slogdet(A / regulariser)[1]
        chosen.append(int(np.argmax(mean + beta(gain) * np.sqrt(np.maximum(variance, 0)))))
    return chosen[:ROUNDS]


@pytest.mark.parametrize("convention", ["ours", "paper", "igp-ucb"])
def test_gp_ucrl_is_gp_ucb(convention):
    log = np.log(1 / DELTA)
    if convention == "igp-ucb":
        confidence = igp_ucb(rounds=ROUNDS, noise=NOISE, norm=NORM, delta=DELTA)
        regulariser, noise, extra = 1 + 2 / ROUNDS, NOISE, 1.0
    else:
        name = "paper" if convention == "paper" else "noise"
        confidence = Confidence(
            beta="paper", regulariser=name, delta=DELTA, norm_reward=NORM, norm_transition=0.0
        )
        regulariser = 1.0 if convention == "paper" else NOISE**2
        noise, extra = NOISE / np.sqrt(regulariser), np.log(3)

    def beta(gain):
        return NORM + noise * np.sqrt(2 * (gain + extra + log))

    agent = GPUCRL(task("se(0.3)"), confidence=confidence, seed=0)
    assert pulls(agent) == gp_ucb(regulariser, beta)


def test_psrl_is_thompson_sampling_of_independent_arms():
    arms = np.arange(8.0)[:, None]
    truth = np.random.default_rng(1).normal(size=8)
    agent = PSRL(task("index(8)", arms, truth), seed=3)
    counts, sums, chosen = np.zeros(8), np.zeros(8), []
    for t in range(ROUNDS):
        draw_key, _ = jax.random.split(episode_key(3, t))
        reward_key, _ = jax.random.split(draw_key)
        normal = np.asarray(jax.random.normal(jax.random.split(reward_key, 1)[0], (8, 1)))[:, 0]
        variance = 1 / (1 + counts / NOISE**2)
        chosen.append(int(np.argmax(variance * sums / NOISE**2 + np.sqrt(variance) * normal)))
        counts[chosen[t]] += 1
        sums[chosen[t]] += truth[chosen[t]] + NOISES[t]
    assert pulls(agent, arms, truth) == chosen


def test_psrl_is_thompson_sampling_of_a_linear_bandit():
    arms = np.random.default_rng(2).normal(size=(30, 3))
    truth = arms @ np.array([0.5, -0.3, 0.8])
    agent = PSRL(task("linear", arms, truth), seed=4)
    weights, root, chosen = np.zeros(3), np.eye(3), []
    for t in range(ROUNDS):
        draw_key, _ = jax.random.split(episode_key(4, t))
        reward_key, _ = jax.random.split(draw_key)
        normal = np.asarray(jax.random.normal(jax.random.split(reward_key, 1)[0], (3, 1)))[:, 0]
        chosen.append(int(np.argmax(arms @ (weights + root @ normal))))
        row = arms[chosen[t]] @ root / NOISE
        c = np.sqrt(1 + row @ row)
        reward = truth[chosen[t]] + NOISES[t]
        weights = weights + root @ row * (reward - arms[chosen[t]] @ weights) / (NOISE * c**2)
        root = root - np.outer(root @ row, row) / (c * (c + 1))
    assert pulls(agent, arms, truth) == chosen


@pytest.mark.parametrize("name", ["bandit-branin", "bandit-rkhs"])
def test_no_arm_of_a_box_beats_the_optimum(name):
    environment = km.envs.make(name, seed=1)
    best = environment.optimal_value()
    arms = jax.numpy.asarray(environment.mdp.points.spread_points(20_000))
    assert float(jax.numpy.max(environment.known_reward(arms))) <= best.value + best.error


def test_learning_in_a_box_of_arms():
    environment = km.envs.make("bandit-rkhs", seed=1)
    best = environment.optimal_value()
    agent = GPUCRL(environment, seed=0)
    result = agent.learn(6, progress=False)
    regret = np.asarray(result.episodes["regret"])
    assert (regret >= -best.error).all()
    assert np.isfinite(regret).all()


def test_known_optima():
    top = km.envs.bandits.hartmann6(
        jax.numpy.array([[0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]])
    )
    np.testing.assert_allclose(top, km.envs.bandits.HARTMANN_OPTIMUM, atol=1e-5)
    place = np.array([[(np.pi + 5) / 15, 2.275 / 15]])
    np.testing.assert_allclose(
        km.envs.bandits.branin(jax.numpy.asarray(place)), km.envs.bandits.BRANIN_OPTIMUM, atol=1e-5
    )


def test_going_uphill_beats_the_arms_tried():
    environment = km.envs.make("bandit-branin")
    key = jax.random.key(0)
    few = km.planners.ArmPlanner(arms=64, steps=0).plan(environment.mdp, key=key)
    more = km.planners.ArmPlanner(arms=64).plan(environment.mdp, key=key)
    assert more.value([0.0]) > few.value([0.0])
    assert km.envs.bandits.BRANIN_OPTIMUM - more.value([0.0]) < 1e-3


def test_arms_need_one_state_and_one_period():
    with pytest.raises(ArgumentError, match="H = 1"):
        GPUCRL(tiny.problem(), planner="arms")
