"""Families of kernels: the band in dense NumPy, coverage, elimination, files, errors."""

import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.confidence import AdaptiveConfidence, as_confidence
from kernelmdp.confidence.adaptive import stretched
from kernelmdp.confidence.dual_sets import MIXTURES, MULTIPLIERS
from kernelmdp.confidence.family_sets import Member, half_widths, role_sets
from kernelmdp.envs.rkhs import random_expansion
from kernelmdp.envs.unit_box import unit_domain
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments import RunConfig, audit, run, run_bound
from tests.agents import tiny

BOX = unit_domain(1)
NOISE = 0.1
KERNELS = ("0.5 * linear", "0.25 * quadratic")
# A family that compiles in a moment.
SMALL = {"name": "adaptive", "lengthscales": [1.0, 4.0], "norm_factors": [1.0, 4.0]}
MEMBERS = (Member(0, 1.0), Member(0, 4.0), Member(1, 1.0), Member(1, 4.0))


def posteriors(X, y, kernels=KERNELS):
    made = [km.gp.posterior(km.kernel(k), noise_variance=NOISE**2, domain=BOX) for k in kernels]
    return [each.condition(X, y) for each in made]


def sets_of(X, y, kernels=KERNELS, members=MEMBERS, delta=0.1):
    return role_sets(
        posteriors(X, y, kernels),
        members,
        squared_length=float(np.sum(y**2)) / NOISE**2,
        deviation=NOISE,
        log_odds=float(np.log(1 / delta)),
    )


def features(kernel, X):
    a, b = X.T
    if "linear" in kernel:
        return np.sqrt(0.5) * X
    return 0.5 * np.stack([a**2, b**2, np.sqrt(2) * a * b], axis=1)


def dense_squares(X, y, delta=0.1):
    """r(α)² of every member with matrices of the size of the data; the text of Theorem 11."""
    grams = [features(k, X) @ features(k, X).T for k in KERNELS]
    count, identity = len(KERNELS) * len(MIXTURES), np.eye(len(y))
    radii = []
    for K in grams:
        for c in MIXTURES:
            # The law N(0, σ²/(λc) K) with λ = σ², and noise σ².
            scaled = identity + K / (c * NOISE**2)
            value = y @ np.linalg.solve(scaled, y)
            radii.append(
                value
                + NOISE**2 * np.linalg.slogdet(scaled)[1]
                + 2 * NOISE**2 * np.log(count / delta)
            )
    squares = []
    for member in MEMBERS:
        K, row = grams[member.kernel], []
        for a in MULTIPLIERS:
            alpha = a * NOISE**2
            least = alpha * y @ np.linalg.solve(K + alpha * identity, y)
            row.append(alpha * member.norm**2 + min(radii) - least)
        squares.append(row)
    return np.array(squares)


def data(function, n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, function(X) + NOISE * rng.normal(size=n)


def linear(X):
    return X @ np.array([0.5, -0.4])


def test_the_band_is_that_of_dense_matrices():
    for seed, function in enumerate((linear, lambda X: 0.8 * X[:, 0] ** 2)):
        X, y = data(function, seed=seed)
        made, squares = sets_of(X, y), dense_squares(X, y)
        betas = np.sqrt(np.maximum(squares, 0)) / (np.sqrt(MULTIPLIERS) * NOISE)
        np.testing.assert_allclose(made.betas, betas, rtol=1e-5, atol=1e-4)
        np.testing.assert_array_equal(made.survives, squares.min(axis=1) >= 0)


def test_half_widths_are_the_least_over_regularisers():
    X, y = data(linear)
    made = sets_of(X, y)
    points = np.random.default_rng(1).uniform(-1, 1, size=(5, 2))
    widths = half_widths(made, MEMBERS, jnp.asarray(points))
    for number, member in enumerate(MEMBERS):
        F, Z = features(KERNELS[member.kernel], X), features(KERNELS[member.kernel], points)
        expected = np.full(5, np.inf)
        for beta, a in zip(made.betas[number], MULTIPLIERS, strict=True):
            alpha = a * NOISE**2
            inverse = np.linalg.inv(F.T @ F + alpha * np.eye(F.shape[1]))
            deviations = np.sqrt(alpha * np.einsum("ni,ij,nj->n", Z, inverse, Z))
            expected = np.minimum(expected, beta * deviations)
        np.testing.assert_allclose(widths[number], expected, rtol=1e-5)


def test_data_contradict_wrong_kernels_and_small_norms():
    X, y = data(lambda X: 0.8 * X[:, 0] ** 2, n=400)
    survives = sets_of(X, y).survives
    assert survives.tolist() == [False, False, False, True]  # norm 1.6, quadratic
    X, y = data(linear, n=400)  # norm 0.9, linear
    assert sets_of(X, y).survives.tolist() == [True, True, False, False]


def test_without_data_every_member_is_allowed():
    made = sets_of(np.zeros((0, 2)), np.zeros(0))
    assert made.survives.all()
    assert not made.contradicted


def test_a_family_without_the_truth_is_contradicted():
    X, y = data(lambda X: 50 * linear(X), n=400)  # norm 45
    made = sets_of(X, y)
    assert made.contradicted
    assert made.survives.all()  # the union is over all of them, and nothing is claimed


def test_the_truth_stays_in_its_member_and_its_member_survives():
    """At δ = 0.3, in 30 runs of data that are chosen where the right member is most uncertain."""
    kernels, delta, runs, failures = ("se(0.5)", "se(1.0)", "se(2.0)"), 0.3, 30, 0
    members = [Member(i, norm) for i in range(3) for norm in (2.0, 8.0)]
    grid = np.stack(np.meshgrid(np.linspace(-1, 1, 9), np.linspace(-1, 1, 9)), -1).reshape(-1, 2)
    priors = [
        km.gp.posterior(km.kernel(k), noise_variance=NOISE**2, domain=BOX, tolerance=1e-9)
        for k in kernels
    ]
    for seed in range(runs):
        rng, right = np.random.default_rng(seed), seed % 3
        f = random_expansion(
            km.kernel(kernels[right]), BOX, norm=2.0, sup_range=(0.5, 2.0),
            key=km.numerics.random_keys.episode_key(seed, 0),
        )  # fmt: skip
        values, state, squares = np.asarray(f(jnp.asarray(grid))), list(priors), 0.0
        for _ in range(4):
            made = role_sets(
                state, members, squared_length=squares / NOISE**2, deviation=NOISE,
                log_odds=float(np.log(1 / delta)),
            )  # fmt: skip
            inside = made.survives[2 * right]
            for posterior, beta in zip(made.posteriors[right], made.betas[2 * right], strict=True):
                mean, std = posterior.predict(grid)
                error = np.abs(values - np.asarray(mean).ravel())
                width = beta * np.asarray(std).ravel() + made.slacks[2 * right]
                inside = inside and bool(np.all(error <= width + 1e-9))
            if not inside:
                failures += 1
                break
            std = np.asarray(state[right].predict(grid)[1]).ravel()
            rows = np.argsort(std)[-10:]
            y = values[rows] + NOISE * rng.normal(size=10)
            state = [each.condition(grid[rows], y) for each in state]
            squares += float(np.sum(y**2))
    assert failures <= delta * runs


def test_the_union_contains_the_sets_of_its_members():
    agent = tiny.make(km.GPUCRL, confidence=SMALL, seed=1)
    agent.learn(2, progress=False)
    union = agent.confidence_sets().plausible
    points = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (20, 2)))
    whole = union(points)
    for number, member in enumerate(union.sets):
        part = member(points)
        if bool(union.allowed[0, number]):
            reach = jnp.abs(part.reward - whole.reward) + part.reward_width
            assert bool(jnp.all(reach <= whole.reward_width + 1e-9))
        if bool(union.allowed[1, number]):
            reach = jnp.abs(part.state - whole.state)[:, 0] + part.radius
            assert bool(jnp.all(reach <= whole.radius + 1e-9))


def test_balls_are_joined_in_two_dimensions():
    sets = AdaptiveConfidence(lengthscales=(3.0, 6.0))
    agent = km.GPUCRL(km.make("rkhs-2d", horizon=2), confidence=sets, seed=0)
    union = agent.confidence_sets().plausible
    points = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (5, 3)))
    whole = union(points)
    for member in union.sets:
        part = member(points)
        reach = jnp.linalg.norm(part.state - whole.state, axis=1) + part.radius
        assert bool(jnp.all(reach <= whole.radius + 1e-9))


def test_an_agent_says_for_which_truths_it_is_covered():
    agent = tiny.make(km.GPUCRL, confidence=SMALL)
    assert agent.coverage.covered
    assert "any truth in the family (reward: se(0.5) up to norm 6" in str(agent)
    assert agent.problem.norm_reward is None  # it knows the family alone
    assert "no regret bound is stated" in run_bound(agent).text
    certificate = agent.certificate()
    assert certificate.probability == pytest.approx(0.9)
    agent.totals["contradicted"] = 1.0
    assert "contradict every member" in str(agent.coverage)


def test_a_family_below_the_truth_is_not_covered():
    family = [("se(0.5)", 0.5)]
    sets = AdaptiveConfidence(reward_family=family, transition_family=family)
    agent = tiny.make(km.GPUCRL, confidence=sets)
    assert "below that of the system" in str(agent.coverage)


@pytest.mark.parametrize("text", ["se(0.5)", "se(0.5) @ index(1)"])
def test_a_transition_below_the_truth_is_not_covered_however_it_is_written(text):
    sets = AdaptiveConfidence(reward_family=[("se(0.5)", 50.0)], transition_family=[(text, 0.01)])
    assert "below that of the system" in str(km.GPUCRL("rkhs", confidence=sets, seed=0).coverage)


def test_the_family_may_be_written_in_a_study_file():
    mapping = {"name": "adaptive", "reward_family": [["se(0.5)", 2.0]], "delta": 0.2}
    rule = as_confidence(mapping)
    assert rule.reward_family == (("se(0.5)", 2.0),)
    assert rule.for_problem(tiny.environment().problem).family("reward") == [Member(0, 2.0)]


def test_a_loaded_agent_goes_on_bit_for_bit(tmp_path):
    sets = AdaptiveConfidence(lengthscales=(1.0, 2.0), norm_factors=(1.0, 4.0))
    whole, stopped = (tiny.make(km.GPUCRL, confidence=sets, seed=2) for _ in range(2))
    whole.learn(4, progress=False)
    stopped.learn(2, progress=False)
    stopped.save(tmp_path / "agent")
    loaded = km.load(tmp_path / "agent", task=tiny.environment())
    assert type(loaded.confidence) is AdaptiveConfidence
    loaded.learn(2, progress=False)
    assert tiny.same(loaded, whole)
    assert loaded.state.turns == whole.state.turns


def test_a_run_counts_members_and_passes_its_audit(tmp_path):
    config = RunConfig("rkhs", "gp-ucrl", 0, {}, {"confidence": SMALL})
    run(config, tmp_path, episodes=2)
    columns = km.experiments.replay.read_run(tmp_path).columns
    assert (columns["members_reward"] >= 1).all()
    assert columns["covered_reward"].all()
    report = audit(tmp_path)
    assert not [check.name for check in report.checks if check.holds is False]


def test_tables_have_families_too():
    problem = km.make("riverswim").problem
    family = {
        "reward_family": [(problem.reward_kernel, 4.0)],
        "transition_family": [(problem.transition_kernel, 4.0)],
    }
    agent = km.GPUCRL("riverswim", confidence=AdaptiveConfidence(**family), seed=0)
    agent.learn(2, progress=False)
    assert agent.sets.plausible.numbers() == {"members_reward": 1.0, "members_transition": 1.0}


def test_families_of_different_sizes():
    sets = AdaptiveConfidence(
        reward_family=[("se(0.5)", 2.0)], transition_family=[("se(0.5)", 2.0), ("se(1.0)", 2.0)]
    )
    agent = tiny.make(km.GPUCRL, confidence=sets)
    agent.learn(1, progress=False)
    assert agent.sets.plausible.numbers() == {"members_reward": 1.0, "members_transition": 2.0}


def test_lengthscales_are_stretched_and_nothing_else():
    kernel = km.kernel("2.0 * se(0.5)[0] + linear[1]")
    assert str(stretched(kernel, 4.0)) == "2.0 * se(2.0)[0] + linear[1]"
    with pytest.raises(ArgumentError, match="family of your own"):
        stretched(km.kernel("linear"), 2.0)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"scale": 0.1}, "scale"),
        ({"setting": "gp"}, "setting"),
        ({"shape": "ellipsoid"}, "ellipsoid"),
        ({"lengthscales": (0.0,)}, "lengthscales"),
        ({"reward_family": ["se(0.5)"]}, "pairs"),
        ({"reward_family": []}, "at least one"),
        ({"reward_family": [("se(0.5)", -1.0)]}, "positive"),
    ],
)
def test_bad_families_are_refused(settings, words):
    with pytest.raises(ArgumentError, match=words):
        AdaptiveConfidence(**settings)


def test_fitted_kernels_are_refused():
    with pytest.raises(ArgumentError, match="unless kernels are fixed"):
        km.GPUCRL("Pendulum-v1", confidence="adaptive")


@pytest.mark.parametrize("shorter", [0.25, 0.5])
def test_se_kernels_with_shorter_lengthscales_hold_longer_ones(shorter):
    """‖f‖_ℓ' ≤ (ℓ/ℓ')^{d/2} ‖f‖_ℓ; interpolants bound norms from below."""
    longer, rng = 1.0, np.random.default_rng(0)
    points = rng.uniform(-1, 1, size=(60, 2))
    gram, other = (np.asarray(km.kernels.SquaredExponential(s)(points)) for s in (longer, shorter))
    for _ in range(5):
        weights = rng.normal(size=60)
        values, norm = gram @ weights, np.sqrt(weights @ gram @ weights)
        least = np.sqrt(values @ np.linalg.solve(other + 1e-9 * np.eye(60), values))
        assert least <= (longer / shorter) * norm


def test_constraints_are_refused():
    with pytest.raises(ArgumentError, match="with constraints"):
        km.GPUCRL("rkhs", confidence="adaptive", constraints="state <= 0.5")
