"""Theorems 16 to 19: every line of their proofs by numbers, and the bounds against simple forms."""

import itertools
import math

import jax
import mpmath
import numpy as np
import pytest
import scipy

import kernelmdp as km
from kernelmdp.confidence import Supremum
from kernelmdp.errors import ArgumentError
from kernelmdp.gp.compilation import compile_kernel
from kernelmdp.theory import theorem1, theorem4, theorem16, theorem17, theorem18, theorem19
from kernelmdp.theory.noise_theorems import episode_martingale, martingale_part, noise_slopes
from kernelmdp.theory.sampling_theorem import rank_of, saturated

BOX = km.join(state=km.Box([-1.0], [1.0]), action=km.Box([-1.0], [1.0]))
TOY = {
    "horizon": 2,
    "norm_reward": 1,
    "norm_transition": 1,
    "reward_noise": 0.2,
    "transition_noise": 0.2,
    "reward_kernel": "se(2.0)",
    "transition_kernel": "se(2.0)",
    "domain": BOX,
}


def gain_of(rank):
    return lambda n, regulariser: rank / 2 * math.log1p(n / (rank * regulariser))


def draw(seed):
    rng = np.random.default_rng(seed)
    return {
        "horizon": int(rng.integers(2, 20)),
        "episodes": int(10 ** rng.uniform(0.5, 6)),
        "norm_reward": rng.uniform(0.1, 5),
        "norm_transition": rng.uniform(0.1, 5),
        "reward_noise": rng.uniform(0.05, 2),
        "transition_noise": rng.uniform(0.05, 2),
        "gain_reward": gain_of(rng.uniform(1, 30)),
        "gain_transition": gain_of(rng.uniform(1, 30)),
        "variance_bound_reward": rng.uniform(0.1, 1),
        "variance_bound_transition": rng.uniform(0.1, 1),
    }


# Lemma 12: the noise smooths values.


@pytest.mark.parametrize("seed", range(5))
def test_noise_bounds_value_differences(seed):
    """Both forms, for random bounded V behind a projection, by quadrature."""
    rng = np.random.default_rng(seed)
    sigma = rng.uniform(0.05, 1)
    noise = np.linspace(-9, 9, 20_001) * sigma
    weights = scipy.stats.norm.pdf(noise, scale=sigma)
    weights /= weights.sum()
    knots, heights = np.sort(rng.uniform(-1, 1, 12)), rng.uniform(-2, 3, 12)

    def moments(p):
        values = np.interp(np.clip(p + noise, -1, 1), knots, heights)
        mean = weights @ values
        return mean, weights @ (values - mean) ** 2

    span = heights.max() - heights.min()
    for _ in range(200):
        p, q = rng.uniform(-1, 1, 2)
        distance = abs(p - q) / sigma
        (left, _), (right, variance) = moments(p), moments(q)
        variation = 2 * scipy.stats.norm.cdf(distance / 2) - 1
        assert variation <= distance / math.sqrt(2 * math.pi) + 1e-12
        assert abs(left - right) <= span * variation + 1e-6
        square = math.expm1(min(distance**2, 600.0))
        assert abs(left - right) <= math.sqrt(variance * square) + 1e-6


def test_total_variation_is_attained():
    """V = sign: no smaller constant would do."""
    sigma, gap = 0.3, 0.05
    left, right = (2 * scipy.stats.norm.cdf(x / sigma) - 1 for x in (gap / 2, -gap / 2))
    assert left - right == pytest.approx(
        2 * (2 * scipy.stats.norm.cdf(gap / (2 * sigma)) - 1), rel=1e-12
    )


def test_chi_square_of_two_gaussians():
    for distance in (0.1, 0.7, 1.5):
        integral = mpmath.quad(
            lambda x, d=distance: mpmath.npdf(x, d, 1) ** 2 / mpmath.npdf(x), [-20, 0, 20]
        )
        assert float(integral - 1) == pytest.approx(math.expm1(distance**2), rel=1e-9)


# Lemma 13: the width of an episode and its gain.


def test_variances_of_an_episode_are_bounded_by_its_gain():
    rng = np.random.default_rng(0)
    for _ in range(200):
        factor = rng.normal(size=(5, rng.integers(1, 6))) * 10 ** rng.uniform(-2, 1)
        matrix, regulariser = factor @ factor.T, 10 ** rng.uniform(-2, 1)
        gain = np.linalg.slogdet(np.eye(5) + matrix / regulariser)[1]
        assert np.trace(matrix) <= regulariser * math.expm1(gain) * (1 + 1e-9)
        slopes = rng.uniform(size=5)
        widths = slopes @ np.sqrt(np.diag(matrix))
        assert widths <= math.sqrt(slopes @ slopes * regulariser * math.expm1(gain)) * (1 + 1e-9)


# Lemma 13: episodes that are given up. Everything is exact in a small table.


@pytest.mark.parametrize("seed", range(20))
def test_giving_up_bounds_the_regret(seed):
    """V̄_1 − V^π_1 ≤ E[Σ_{j<θ} e_j⁺ + 2B(H − θ + 1)], for every stopping rule of visited points."""
    rng = np.random.default_rng(seed)
    S, periods, B = 3, 3, 1.0
    P = rng.dirichlet(np.ones(S), size=(periods, S))
    R = rng.uniform(-B, B, (periods, S))
    left = np.arange(periods, -1, -1)
    value = np.zeros((periods + 1, S))
    for h in reversed(range(periods)):
        value[h] = R[h] + P[h] @ value[h + 1]
    planned = np.zeros((periods + 1, S))
    for h in range(periods):
        planned[h] = np.minimum(value[h] + rng.exponential(1.0, S), B * left[h])
    excess = np.array([planned[h] - R[h] - P[h] @ planned[h + 1] for h in range(periods)])
    level = rng.uniform(0, 2)
    total = 0.0
    for path in itertools.product(range(S), repeat=periods - 1):
        states = (0, *path)
        chance = np.prod([P[h, states[h], states[h + 1]] for h in range(periods - 1)])
        cost, spent = 0.0, 0.0
        for h, state in enumerate(states):
            spent += max(excess[h, state], 0.0)
            if spent > level:
                cost += 2 * B * left[h]
                break
            cost += max(excess[h, state], 0.0)
        assert cost <= max(2 * B * periods, level + 2 * B * (periods - 1)) + 1e-12
        total += chance * cost
    assert planned[0, 0] - value[0, 0] <= total + 1e-12


# Lemma 15: the martingale.


def test_martingale_fails_as_seldom_as_promised():
    """Costs of 0 or K: the three bounds hold with probability 1 − δ."""
    rng = np.random.default_rng(0)
    delta, tau, most = 0.1, 200, 2.0
    failures, runs = 0, 4000
    for chance in (0.005, 0.05, 0.5):
        costs = rng.binomial(tau, chance, runs) * most
        for total in np.unique(costs):
            added = episode_martingale(float(total), 0.0, math.log(1 / delta), 1.0, 1, tau)
            failures += int((costs == total).sum()) * (most * tau * chance > total + added)
    # Here the bound may look at the total, so it is even allowed to choose u by it.
    assert failures / (3 * runs) <= delta


def test_martingale_part_is_the_least():
    log_odds, tau = 3.4, 100
    for periods in (2, 5, 20):
        added = martingale_part(50.0, 1.0, log_odds, 1.0, periods, tau)
        azuma = math.sqrt(2 * log_odds * tau * periods * (periods - 1) * (2 * periods - 1) / 6)
        most = max(2 * periods, 1 + 2 * (periods - 1))
        growing = min(
            u / -math.expm1(-u) * 50 - 50 + most * log_odds / -math.expm1(-u)
            for u in np.logspace(-4, 2, 2000)
        )
        assert added <= azuma
        assert added >= min(azuma, most * math.sqrt(log_odds * tau / 2), growing) * (1 - 1e-9)
    assert martingale_part(50.0, 1.0, log_odds, 1.0, 1, tau) == 0.0


# Theorem 19, step 2: the law of total variance, exact in a table.


@pytest.mark.parametrize("seed", range(10))
def test_variances_add_up_to_that_of_the_sum(seed):
    rng = np.random.default_rng(seed)
    S, periods = 3, 4
    P = rng.dirichlet(np.ones(S), size=(periods, S))
    R = rng.uniform(-1, 1, (periods, S))
    left = np.arange(periods, -1, -1)
    value = np.zeros((periods + 1, S))
    for h in reversed(range(periods)):
        value[h] = R[h] + P[h] @ value[h + 1]
    planned = np.zeros((periods + 1, S))
    for h in reversed(range(periods)):
        lower = R[h] + P[h] @ planned[h + 1]  # so that no excess is negative
        planned[h] = np.minimum(lower + rng.exponential(0.2, S), left[h])
    excess = np.array([planned[h] - R[h] - P[h] @ planned[h + 1] for h in range(periods)])
    assert (excess >= -1e-12).all()
    level = rng.uniform(0.1, 1.0)
    variances = squares = mean = 0.0
    most = 0.0
    for path in itertools.product(range(S), repeat=periods - 1):
        states = (0, *path)
        chance = np.prod([P[h, states[h], states[h + 1]] for h in range(periods - 1)])
        spent, sum_, variance = 0.0, 0.0, 0.0
        for h, state in enumerate(states):
            if spent + excess[h, state] > level:
                sum_ += planned[h, state]
                break
            spent += excess[h, state]
            variance += P[h, state] @ planned[h + 1] ** 2 - (P[h, state] @ planned[h + 1]) ** 2
            sum_ += R[h, state]
        most = max(most, spent)
        variances += chance * variance
        mean += chance * (sum_ + spent)
        squares += chance * (sum_ + spent) ** 2
    # The path may end where the last state is drawn; V_{H+1} = 0 has no variance.
    assert variances == pytest.approx(squares - mean**2, abs=1e-10)
    assert math.sqrt(max(variances, 0.0)) <= periods - 1 + level / 2 + 1e-12


# Theorem 18, step 2: the weights of a draw.


def test_weights_of_a_draw_and_the_truth():
    """(w_l − w*)ᵀΣ⁻¹(w_l − w*) has the mean 2r, and it bounds every difference."""
    rng = np.random.default_rng(0)
    r = 6
    factor = rng.normal(size=(r, r))
    covariance = factor @ factor.T
    draws = rng.multivariate_normal(np.zeros(r), covariance, size=(20_000, 2))
    difference = draws[:, 0] - draws[:, 1]
    squares = np.einsum("ni,ij,nj->n", difference, np.linalg.inv(covariance), difference)
    assert squares.mean() == pytest.approx(2 * r, abs=4 * squares.std() / math.sqrt(20_000))
    features = rng.normal(size=(50, r))
    deviations = np.sqrt(np.einsum("ni,ij,nj->n", features, covariance, features))
    errors = np.abs(difference[:200] @ features.T)
    assert (errors <= np.sqrt(squares[:200, None]) * deviations * (1 + 1e-9)).all()


def test_moments_of_rewards_on_rare_events():
    """E[X 1_A] ≤ p E X + s√p for P(A) = p and Var X ≤ s²."""
    rng = np.random.default_rng(0)
    draws = np.abs(rng.normal(size=(100_000, 20))).max(axis=1)  # a supremum with s = 1
    assert draws.var() <= 1
    for p in (0.01, 0.1, 0.4):
        top = np.sort(draws)[-int(p * len(draws)) :]
        assert top.sum() / len(draws) <= p * draws.mean() + math.sqrt(p)


def test_ranks():
    assert rank_of(km.kernel("linear @ index(3)"), km.Box([-1.0] * 2, [1.0] * 2)) == (6, False)
    kernel = km.kernel("se(1.0) @ index(2)")
    one = compile_kernel(km.kernel("se(1.0)"), BOX).rank
    assert rank_of(kernel, BOX) == (2 * one, True)
    box = km.Box([-1.0] * 2, [1.0] * 2)
    # A sum has both parts in every output; independent outputs have one each.
    both = km.kernel("linear @ index(2) + quadratic @ index(2)")
    assert rank_of(both, box) == (2 * (2 + 3), False)
    assert rank_of(km.kernel("independent(linear, quadratic)"), box) == (2 + 3, False)


# The theorems.


@pytest.mark.parametrize("seed", range(20))
def test_theorem_16_is_at_most_theorem_1(seed):
    """With the same L, λ and β."""
    p, L = draw(seed), 10 ** np.random.default_rng(seed).uniform(-1, 1)
    old = theorem1(**p, lipschitz=L, beta="mixture")
    new = theorem16(**p, lipschitz=L)
    trivial = old.trivial + new.parts["martingale"]
    assert new.value <= min(old.value, trivial) * 1.01
    assert theorem16(**p).value >= new.value * 0.99
    assert theorem16(**p, anytime=True).value >= theorem16(**p).value * 0.999


@pytest.mark.parametrize("seed", range(10))
def test_theorem_16_for_many_episodes(seed):
    """By hand: 2β_R√(HT·2γ_Rλ)/√H and 2β_P w √… for gains that are small beside τ."""
    p = draw(seed) | {"episodes": 10**9}
    bound = theorem16(**p, regulariser_reward=1.0, regulariser_transition=1.0)
    H, tau = p["horizon"], p["episodes"]
    odds = math.log(30)
    B = p["norm_reward"] * math.sqrt(p["variance_bound_reward"])
    total = 0.0
    squares = H, float((noise_slopes(H, B, p["transition_noise"]) ** 2).sum())
    for role, square in zip(("reward", "transition"), squares, strict=True):
        gain, last = (p[f"gain_{role}"](n * H, 1.0) for n in (tau, tau - 1))
        beta = math.sqrt(p[f"norm_{role}"] ** 2 + 2 * p[f"{role}_noise"] ** 2 * (odds + last))
        total += 2 * beta * math.sqrt(square * tau * math.expm1(2 * gain / tau) * tau)
    assert bound.parts["learning"] == pytest.approx(total, rel=0.01)


def test_slopes():
    slopes = noise_slopes(4, 1.5, 0.2)
    assert slopes == pytest.approx(
        [2 * 1.5 * k / (0.2 * math.sqrt(2 * math.pi)) for k in (3, 2, 1)], rel=1e-12
    )
    assert (noise_slopes(4, 1.5, 0.2, 5.0) == 5.0).all()
    assert len(noise_slopes(1, 1.0, 0.1)) == 0


def test_a_bonus_costs_more_than_a_search():
    p = draw(3)
    assert theorem16(**p, optimism="bonus").value >= theorem16(**p).value * 0.999
    with pytest.raises(ArgumentError, match="lipschitz"):
        theorem16(**p, optimism="bonus", lipschitz=1.0)


@pytest.mark.parametrize("periods", [2, 3, 20])
def test_a_bonus_is_paid_in_the_last_period_too(periods):
    """By hand: Σ_h ((w_1 + w_h)/2)² over h = 1..H with w_H = 0, for very many episodes."""
    p = draw(3) | {"episodes": 10**12, "horizon": periods, "gain_reward": 0.0}
    bonus = theorem16(**p, optimism="bonus").parts["learning"]
    search = theorem16(**p).parts["learning"]
    w = np.arange(periods - 1, -1, -1.0)
    expected = math.sqrt(float((((w[0] + w) / 2) ** 2).sum() / (w**2).sum()))
    assert bonus / search == pytest.approx(expected, rel=1e-3)
    assert bonus <= 1.33 * search


@pytest.mark.parametrize("seed", range(10))
def test_theorem_17_has_no_martingale(seed):
    p = draw(seed)
    bound = theorem17(**p)
    B = p["norm_reward"] * math.sqrt(p["variance_bound_reward"])
    assert bound.parts["failure"] == pytest.approx(8 / 3 * B)
    assert set(bound.parts) == {"learning", "failure"}
    assert bound.probability == "expectation"


@pytest.mark.parametrize("seed", range(10))
def test_theorem_18_by_a_search_on_a_grid(seed):
    p = draw(seed)
    for name in ("norm_reward", "norm_transition"):
        del p[name]
    rng = np.random.default_rng(seed)
    ranks, size = rng.integers(1, 50, 2), Supremum(*rng.uniform(0.5, 2, 2), rigorous=True)
    bound = theorem18(
        **p, rank_reward=int(ranks[0]), rank_transition=int(ranks[1]), reward_supremum=size
    )
    H, tau = p["horizon"], p["episodes"]
    second = math.hypot(size.expected, size.deviation)
    squares = H, float((noise_slopes(H, second, p["transition_noise"]) ** 2).sum())

    def sums(role, index, c):
        noise = p[f"{role}_noise"] ** 2
        gain = p[f"gain_{role}"](tau * H, noise)
        most = math.log1p(H * p[f"variance_bound_{role}"] / noise)
        limit = min(c, most)
        growth = math.expm1(limit) / limit
        value = 2 * math.sqrt(ranks[index] * tau * squares[index] * noise * growth * gain)
        return value, 0.0 if math.isinf(c) else 2 * gain / c

    best = math.inf
    limits = [*np.logspace(-3, 1.2, 120), math.inf]
    rewards = [sums("reward", 0, c) for c in limits]
    transitions = [sums("transition", 1, c) for c in limits]
    for (first, ended), (second_sum, also) in itertools.product(rewards, transitions):
        count = ended + also
        loss = H * (2 * size.expected * count + size.deviation * math.sqrt(count * tau))
        mass = tau * H * (H - 1) * size.expected
        spread = second_sum * math.sqrt(2 * math.pi) / mass
        second_sum = mass * (2 * scipy.stats.norm.cdf(spread / 2) - 1)
        best = min(best, first + second_sum + loss)
    assert best * 0.9 <= bound.value <= best * 1.05


def test_saturated_sums_by_jensen():
    """Random weights and distances: Σ m ψ(x) ≤ Mψ(Σ m x/M)."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        weights, distances = rng.exponential(size=50), 10 ** rng.uniform(-2, 1, 50)
        exact = weights @ (2 * scipy.stats.norm.cdf(distances / 2) - 1)
        linear = weights @ distances / math.sqrt(2 * math.pi)
        assert exact <= saturated(linear, weights.sum()) * (1 + 1e-12)
        assert saturated(linear, weights.sum()) <= linear * (1 + 1e-12)
        # A bound of the mass is enough: the value grows with it.
        assert saturated(linear, weights.sum()) <= saturated(linear, 2 * weights.sum())


def test_known_rewards_cost_nothing_to_learn():
    p = draw(1)
    for name in ("norm_reward", "norm_transition"):
        del p[name]
    p |= {"gain_reward": 0.0, "reward_bound": 1.0, "rank_transition": 5}
    parts = theorem18(**p).parts
    assert parts["reward"] == 0.0
    assert parts["transition"] > 0


def test_an_episode_costs_at_most_its_spans():
    """The rewards 2BH, the transitions BH(H − 1): without L, and however wide the sets are."""
    words = dict(TOY, horizon=4, norm_transition=1e6)
    bound = theorem16(episodes=10**6, **words)
    assert bound.parts["learning"] <= 1.01 * (
        1e6 * 4 * 3
        + theorem16(
            episodes=10**6, **(words | {"gain_transition": 0.0, "transition_kernel": None})
        ).parts["learning"]
    )


def test_bars():
    """What docs/results.md says of the smooth toy, with closed-form gains."""
    by_noise = {"regulariser_reward": 0.04, "regulariser_transition": 0.04}
    assert 2 * theorem16(episodes=500, lipschitz=0.4, **TOY).first_useful <= 100
    assert 2 * theorem16(episodes=500, lipschitz=0.4, **TOY, **by_noise).first_useful <= 400
    assert 2 * theorem16(episodes=500, **TOY).first_useful <= 400
    old = theorem1(episodes=500, lipschitz=0.4, beta="mixture", **TOY, **by_noise)
    assert 2 * old.first_useful >= 10_000
    without = {name: value for name, value in TOY.items() if not name.startswith("norm")}
    assert 2 * theorem18(episodes=500, **without).first_useful <= 200
    assert 2 * theorem4(episodes=500, **without).first_useful >= 10_000


def test_variances_pay_for_long_episodes_only():
    def ratio(horizon, episodes):
        words = {
            **{"horizon": horizon, "episodes": episodes, "norm_reward": 1, "norm_transition": 1},
            **{"reward_noise": 0.2, "transition_noise": 0.2},
            **{"gain_reward": gain_of(20), "gain_transition": gain_of(20)},
        }
        return theorem19(**words).value / theorem16(**words).value

    assert ratio(2, 10**8) > 1.2
    # Without the lower order, the ratio of the two is 2.17/√H and a little more.
    assert ratio(50, 10**14) < 0.45


def test_regret_of_psrl_is_below_theorem_18():
    """The mean over truths of a prior of rank 2."""
    kernel = km.kernel("0.3*linear")
    episodes, regrets = 12, []
    for seed in range(6):
        kernels = {"reward_kernel": kernel, "transition_kernel": kernel}
        env = km.make("gp-prior", seed=seed, horizon=3, **kernels)
        result = km.PSRL(env, seed=seed).learn(episodes, progress=False)
        regrets.append(float(result.episodes["cumulative_regret"][-1]))
    bound = theorem18(
        horizon=3,
        episodes=episodes,
        reward_noise=0.1,
        transition_noise=0.1,
        domain=env.mdp.points,
        **kernels,
    )
    assert 0 <= np.mean(regrets) < bound.value
    assert jax.tree.leaves(bound.parts)
