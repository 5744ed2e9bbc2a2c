"""Plausible families: centres and widths against dense algebra, nets, slack, and compilation."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.confidence import Confidence, Plausible, as_confidence
from kernelmdp.confidence.shapes import root
from kernelmdp.mdp import MDP, NO_NOISE, Gaussian, MeanModel

from ..gp.dense import Dense
from .problems import BOX, beliefs, data

NOISE = Gaussian(0.2)
COMMON = {"horizon": 5, "domain": BOX, "reward_noise": NOISE, "transition_noise": NOISE}
B = "[[1.0, 0.4], [0.4, 0.8]]"
FORMS = {
    "shared": "se(0.6) @ index(2)",
    "rotated": f"se(0.6) @ coregional({B})",
    "singular": "se(0.6) @ coregional([[1.0, 1.0], [1.0, 1.0]])",
    "independent": "independent(se(0.6), 2.0 * matern(2.5, 0.4))",
    "dense": f"se(0.6) @ coregional({B}) + linear @ index(2)",
}
SCALE = np.array([0.5, 2.0])


def filled(form, seed=0, **options):
    held = beliefs(FORMS[form], scale=SCALE, identity=True, **options)
    points, rewards, outcomes = data(10, 2, seed=seed)
    return held.condition(points, rewards, outcomes), points, rewards, outcomes


look = eqx.filter_jit(lambda model, points: model(jnp.asarray(points)))


@pytest.mark.parametrize("form", FORMS)
def test_widths_match_the_dense_form(form):
    held, points, rewards, outcomes = filled(form)
    queries = data(10, 2, seed=1)[0]
    reward = Dense(km.kernel("se(0.5)"), points, rewards, 0.04, queries)
    residuals = (outcomes - points[:, :2]) / SCALE
    state = Dense(km.kernel(FORMS[form]), points, residuals, 0.04, queries)
    beta_reward = np.sqrt(1.5**2 + 2 * (np.log(30) + reward.gain))
    proxy = 0.2 / 0.5  # the noise of the axis with the smaller unit
    beta = np.sqrt(2.0**2 + (proxy / 0.2) ** 2 * 2 * (np.log(30) + state.gain))
    sigma = state.output_covariance
    trace = beta * np.sqrt(np.trace(sigma, axis1=1, axis2=2))
    top = beta * np.sqrt(np.linalg.eigvalsh(sigma)[:, -1])
    for shape, radius in (("trace", trace), ("lmax", top), ("ellipsoid", None), ("box", None)):
        sets = Confidence(shape=shape, norm_reward=1.5, norm_transition=2.0).sets(
            held, episode=3, **COMMON
        )
        assert float(sets.beta_transition) == pytest.approx(beta, rel=1e-9)
        prediction = look(sets.plausible, queries)
        np.testing.assert_allclose(prediction.reward, reward.mean, atol=1e-9)
        wanted = beta_reward * np.sqrt(reward.variance)
        np.testing.assert_allclose(prediction.reward_width, wanted, atol=1e-8)
        np.testing.assert_allclose(prediction.state, queries[:, :2] + SCALE * state.mean, atol=1e-8)
        if radius is not None:
            np.testing.assert_allclose(prediction.radius, radius, atol=1e-7)
            continue
        assert prediction.radius is None
        if shape == "box":
            sides = beta * np.sqrt(np.diagonal(sigma, axis1=1, axis2=2))
            np.testing.assert_allclose(prediction.sides, SCALE * sides, atol=1e-7)
            widest = np.linalg.norm(sides, axis=1)  # half the diagonal
            np.testing.assert_allclose(sets.half_widths(jnp.asarray(queries))[1], widest, atol=1e-7)
            continue
        found = np.asarray(prediction.root) @ np.swapaxes(prediction.root, 1, 2)
        np.testing.assert_allclose(found, beta**2 * sigma * np.outer(SCALE, SCALE), atol=1e-6)
        np.testing.assert_allclose(sets.half_widths(jnp.asarray(queries))[1], top, atol=1e-6)


def test_a_root_with_slack_holds_ellipsoid_plus_ball():
    for form in ("singular", "dense"):
        held = filled(form)[0]
        queries = jnp.asarray(data(5, 2, seed=2)[0])
        std = held.transition.predict(queries)[1]
        sigma = np.asarray(held.transition.output_covariance(queries))
        for beta, slack in ((1.5, 0.3), (1.5, 1e-6), (0.0, 0.3)):
            numbers = jnp.asarray(beta), jnp.asarray(slack)
            M = np.asarray(eqx.filter_jit(root)(held.transition, queries, std, *numbers))
            for angle in np.linspace(0, np.pi, 50):
                u = np.array([np.cos(angle), np.sin(angle)])
                wanted = beta * np.sqrt(np.maximum(u @ sigma @ u, 0)) + slack
                reach = np.linalg.norm(M @ u, axis=1)
                assert np.all(reach >= wanted - 1e-9)
                longest = beta * np.sqrt(np.linalg.eigvalsh(sigma)[:, -1]) + slack
                assert np.all(reach <= 1.15 * longest + 1e-9)  # and is not far too large


def test_first_episode_is_the_prior():
    paper = as_confidence("paper")
    held = beliefs("se(0.6) @ index(2)", noise=(5.0, 10.0))
    sets = paper.sets(held, episode=1, **COMMON)
    oracle = 1.0 + 0.2 * np.sqrt(2 * np.log(30) / np.array([5, 10]))
    assert float(sets.beta_reward) == pytest.approx(oracle[0], abs=1e-14)
    assert float(sets.beta_transition) == pytest.approx(oracle[1], abs=1e-14)
    prediction = sets.plausible(jnp.asarray(data(4, 2)[0]))
    np.testing.assert_array_equal(prediction.reward, 0.0)
    np.testing.assert_array_equal(prediction.state, 0.0)
    np.testing.assert_allclose(prediction.reward_width, oracle[0], rtol=1e-14)
    np.testing.assert_allclose(prediction.radius, oracle[1] * np.sqrt(2), rtol=1e-14)


def test_the_paper_end_to_end():
    """λ = H and mH, β from the maximum gain on a table, where the gain is known exactly."""
    H, m, episode = 5, 2, 2
    table = km.join(state=km.FiniteSet.range(3, 2), action=km.FiniteSet.range(2))
    onehot = km.kernels.OneHot(3, 2, 2)
    kernel = onehot @ km.kernels.Index(m)
    paper = dataclasses.replace(as_confidence("paper"), norm_reward=1.5, norm_transition=2.5)
    reward_lambda, transition_lambda = paper.regularisers(H, m, 0.04, 0.04)
    assert (reward_lambda, transition_lambda) == (H, m * H)
    held = beliefs(
        kernel,
        domain=table,
        reward_kernel=onehot,
        noise=(reward_lambda, transition_lambda),
        engine="finite rank",
    )
    n = (episode - 1) * H
    points, rewards, outcomes = data(n, m, domain=table)
    held = held.condition(points, rewards, outcomes)
    sets = paper.sets(held, **(COMMON | {"domain": table, "horizon": H}), episode=episode)

    def gain(noise):  # n points spread evenly over 12 cells
        c, r = divmod(n, 12)
        return 0.5 * ((12 - r) * np.log(1 + c / noise) + r * np.log(1 + (c + 1) / noise))

    for found, B_, noise, gained in (
        (sets.beta_reward, 1.5, H, gain(H)),
        (sets.beta_transition, 2.5, m * H, m * gain(m * H)),
    ):
        oracle = B_ + 0.2 / np.sqrt(noise) * np.sqrt(2 * (np.log(30) + gained))
        assert oracle <= float(found) <= oracle + 0.005
    queries = jnp.asarray(table.net(100)[0])
    dense = Dense(kernel, points, outcomes, float(m * H), queries)
    radius = sets.plausible(queries).radius
    wanted = float(sets.beta_transition) * np.sqrt(dense.variance.sum(axis=1))
    np.testing.assert_allclose(radius, wanted, atol=1e-9)
    assert sets.coverage.covered


def test_the_maximum_gain_is_computed_once(monkeypatch):
    from kernelmdp.confidence import gains

    line = km.Box([0.0], [1.0])
    kernel = km.kernel("se(0.5) @ index(2)")

    def ask():
        return [
            gains.gain_before(kernel, line, 0.6, horizon=6, episode=episode)
            for episode in range(1, 4)
        ]

    first = ask()
    K = np.asarray(km.kernel("se(0.5)")(np.linspace(0, 1, 12)[:, None]))
    attained = 2 * 0.5 * np.linalg.slogdet(np.eye(12) + K / 0.6)[1]
    assert attained <= first[-1] <= 1.3 * attained

    def refuse(*_, **__):
        raise AssertionError("computed again")

    monkeypatch.setattr(gains.dual_certificates.CertificateLadder, "bound", refuse)
    monkeypatch.setattr(gains, "upper_bounds", refuse)
    assert ask() == first
    assert first[0] == 0.0
    assert np.all(np.diff(first) >= 0)


@pytest.mark.parametrize(
    "form",
    [
        "se(0.5) @ coregional([[1.0, 0.1], [0.1, 1.0]])",
        "independent(se(0.5), se(0.5))",
        "se(0.5) @ index(2) + se(0.5) @ coregional([[1.0, 0.1], [0.1, 1.0]])",
    ],
)
def test_the_gain_curve_bounds_attained_gains(form):
    from kernelmdp.confidence import gains

    kernel, line, noise = km.kernel(form), km.Box([0.0], [1.0]), np.array([1.0, 1.2])
    found = gains.gain_before(kernel, line, noise, horizon=12, episode=2)
    x = np.linspace(0, 1, 12)[:, None]
    rows = np.sqrt(np.tile(noise, 12))
    K = np.asarray(kernel(x)) / rows[:, None] / rows[None, :]
    attained = 0.5 * np.linalg.slogdet(np.eye(24) + K)[1]
    assert attained <= found <= 2 * attained


@pytest.mark.parametrize("gain", ["maximum", "realised"])
@pytest.mark.parametrize("setting", ["rkhs", "gp"])
def test_beta_never_decreases(setting, gain):
    table = km.join(state=km.FiniteSet.range(3, 2), action=km.FiniteSet.range(2))
    onehot = km.kernels.OneHot(3, 2, 2)
    confidence = Confidence(setting=setting, gain=gain, norm_reward=1.0, norm_transition=1.0)
    for domain in (table, BOX) if setting == "gp" else (table,):
        held = beliefs("se(0.5) @ index(2)", domain=domain)
        if domain is table:
            held = beliefs(
                onehot @ km.kernels.Index(2), domain=table, reward_kernel=onehot, noise=(5.0, 10.0)
            )
        betas = []
        for episode in range(1, 4):
            common = COMMON | {"domain": domain}
            sets = confidence.sets(held, episode=episode, **common)
            betas.append([float(sets.beta_reward), float(sets.beta_transition)])
            held = held.condition(*data(5, 2, domain=domain, seed=episode))
        assert np.all(np.diff(betas, axis=0) >= 0)
        assert np.all(betas[-1] > np.array(betas[0]) + 0.001)


def test_gp_sets_look_at_the_cell_centre():
    held, points, rewards, outcomes = filled("rotated")
    slope, episode = 1.7, 2
    sets = Confidence(setting="gp", shape="trace").sets(
        held, episode=episode, slope=slope, **COMMON
    )
    queries = data(9, 2, seed=3)[0]
    queries[0], queries[1] = 1.0, 0.0  # corners belong to the last and the first cell
    counts = np.array([np.ceil(2 * 2 * 4 * slope)] * 2 + [np.ceil(2 * 1 * 4 * slope)])
    centres = (np.minimum(np.floor(queries * counts), counts - 1) + 0.5) / counts
    assert np.all(np.abs(queries - centres).sum(axis=1) <= 1 / (2 * episode**2 * slope))
    log_cells = np.sum(np.log(counts))
    beta = np.sqrt(2 * (log_cells + np.log(np.pi**2 * episode**2 / 0.1)))
    assert float(sets.beta_reward) == pytest.approx(beta, rel=1e-12)
    assert float(sets.beta_transition) == pytest.approx(np.sqrt(beta**2 + 2 * np.log(2)), rel=1e-12)

    prediction = look(sets.plausible, queries)
    reward = Dense(km.kernel("se(0.5)"), points, rewards, 0.04, centres)
    np.testing.assert_allclose(prediction.reward, reward.mean, atol=1e-9)
    np.testing.assert_allclose(
        prediction.reward_width, beta * np.sqrt(reward.variance) + 1 / 4, atol=1e-8
    )
    residuals = (outcomes - points[:, :2]) / SCALE
    state = Dense(km.kernel(FORMS["rotated"]), points, residuals, 0.04, centres)
    # The offset is known, and taken where the point is.
    np.testing.assert_allclose(prediction.state, queries[:, :2] + SCALE * state.mean, atol=1e-8)
    wanted = float(sets.beta_transition) * np.sqrt(state.variance.sum(axis=1)) + np.sqrt(2) / 4
    np.testing.assert_allclose(prediction.radius, wanted, atol=1e-7)


def test_gp_sets_on_finite_and_mixed_domains():
    states = km.FiniteSet(np.random.default_rng(0).random((9, 2)))
    table = km.join(state=states, action=km.FiniteSet.range(2))
    held = beliefs("se(0.5) @ index(2)", domain=table)
    gp = Confidence(setting="gp", shape="trace")
    sets = gp.sets(held, episode=3, **(COMMON | {"domain": table}))
    oracle = np.sqrt(2 * np.log(18 * np.array([1, 2]) * np.pi**2 * 9 / (2 * 0.1)))
    assert float(sets.beta_reward) == pytest.approx(oracle[0], rel=1e-12)
    assert float(sets.beta_transition) == pytest.approx(oracle[1], rel=1e-12)
    z = jnp.asarray(table.net(100)[0])
    np.testing.assert_allclose(sets.half_widths(z)[0], oracle[0], rtol=1e-12)  # no slack

    mixed = km.join(state=km.Box([0.0, 0.0], [1.0, 2.0]), action=km.FiniteSet([[0.1], [0.7]]))
    held = beliefs("se(0.5) @ index(2)", domain=mixed)
    sets = gp.sets(held, episode=2, slope=1.3, **(COMMON | {"domain": mixed}))
    cells = np.ceil(2 * 2 * 4 * 1.3) * np.ceil(2 * 2 * 2 * 4 * 1.3) * 2
    beta = np.sqrt(2 * np.log(cells * np.pi**2 * 4 / 0.1))
    assert float(sets.beta_reward) == pytest.approx(beta, rel=1e-12)
    at = sets.plausible.net(jnp.asarray([[0.2, 0.3, 0.7]]))
    assert float(at[0, 2]) == 0.7


def test_scale_multiplies_beta_and_nothing_else():
    held = filled("shared")[0]
    valid = as_confidence("valid").sets(held, episode=2, **COMMON)
    practical = as_confidence({"name": "practical", "beta": "mixture"}).sets(
        held, episode=2, **COMMON
    )
    assert float(practical.beta_reward) == pytest.approx(0.1 * float(valid.beta_reward), rel=1e-14)
    points = jnp.asarray(data(4, 2)[0])
    np.testing.assert_allclose(
        practical.half_widths(points)[1], 0.1 * valid.half_widths(points)[1], rtol=1e-12
    )
    np.testing.assert_array_equal(practical.plausible(points).state, valid.plausible(points).state)


def mdp_of(model, **changes):
    return MDP(
        model,
        states=BOX.factors[0][1],
        actions=BOX.factors[1][1],
        horizon=5,
        reward_noise=NOISE,
        transition_noise=NO_NOISE,
        **({"reward_range": (-0.5, 0.7), "lipschitz": 3.0} | changes),
    )


def test_family_keeps_the_mdp_and_measures_in_the_scale():
    held = filled("shared")[0]
    sets = as_confidence("valid").sets(held, episode=2, **COMMON)
    family = sets.family(mdp_of(held.mean()))
    assert isinstance(family.model, Plausible)
    assert family.metric == (0.5, 2.0)
    assert (family.horizon, family.states, family.transition_noise) == (
        5,
        BOX.factors[0][1],
        NO_NOISE,
    )
    # |U(p) − U(p')| ≤ 3 |p − p'|, and |p − p'| ≤ 2 |(p − p')/scale|.
    assert float(family.lipschitz) == 6.0
    assert float(sets.family(mdp_of(held.mean(), metric=(0.5, 2.0))).lipschitz) == 3.0
    assert np.isinf(float(sets.family(mdp_of(held.mean(), lipschitz=np.inf)).lipschitz))
    # Rewards are cut to the range, and only there.
    points = jnp.asarray(data(40, 2, seed=5)[0])
    cut, free = family.model(points), sets.plausible(points)
    low, high = free.reward - free.reward_width, free.reward + free.reward_width
    np.testing.assert_allclose(cut.reward - cut.reward_width, np.clip(low, -0.5, 0.7), atol=1e-12)
    np.testing.assert_allclose(cut.reward + cut.reward_width, np.clip(high, -0.5, 0.7), atol=1e-12)
    assert np.any(np.asarray(high) > 0.7)
    np.testing.assert_array_equal(cut.radius, free.radius)


@pytest.mark.parametrize(
    "confidence",
    [
        Confidence(shape="ellipsoid"),
        Confidence(shape="box"),
        Confidence(setting="gp"),
    ],
    ids=["ellipsoid", "box", "gp"],
)
def test_one_program_for_all_episodes(confidence):
    held = beliefs(
        "(linear + constant(1.0)) @ index(2)",
        reward_kernel="linear + constant(1.0)",
        engine="finite rank",
    )
    traces = []

    @eqx.filter_jit
    def use(mdp, z):
        traces.append(1)
        prediction = mdp.model(z)
        return prediction.reward + prediction.reward_width, prediction.state

    points = jnp.asarray(data(6, 2)[0])
    seen = []
    for episode in range(1, 5):
        sets = confidence.sets(held, episode=episode, **COMMON)
        seen.append(np.asarray(use(sets.family(mdp_of(held.mean())), points)[0]))
        held = held.condition(*data(5, 2, seed=episode))
    assert len(traces) == 1
    assert not np.allclose(seen[0], seen[-1])


def test_normalising_changes_neither_centre_nor_width():
    """(k, B, λ) and (k/κ, √κ B, λ/κ) say the same (math G54)."""
    kernel = km.kernel("3.0 * se(0.6) + quadratic")
    kappa = kernel.variance_bound(BOX)
    results = []
    for c in (1.0, kappa):
        held = beliefs(
            (kernel * (1 / c)) @ km.kernels.Index(2),
            reward_kernel=kernel * (1 / c),
            noise=(0.04 / c, 0.09 / c),
        ).condition(*data(10, 2))
        root_c = float(np.sqrt(c))
        for shape in ("trace", "lmax"):
            chosen = Confidence(norm_reward=1.2 * root_c, norm_transition=0.7 * root_c, shape=shape)
            sets = chosen.sets(held, episode=3, **COMMON)
            prediction = sets.plausible(jnp.asarray(data(6, 2, seed=9)[0]))
            results.append([prediction.reward, prediction.reward_width, prediction.radius])
    for first, second in ((0, 2), (1, 3)):
        for a, b in zip(results[first], results[second], strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)


def test_coverage_of_known_reward_and_of_a_far_model():
    held = beliefs("se(0.6) @ index(2)", reward=lambda z: z[:, 0])
    sets = as_confidence("valid").sets(held, episode=1, **COMMON)
    points = jnp.asarray(data(6, 2)[0])
    near = MeanModel(lambda z: z[:, 0], lambda z: 0.5 * z[:, :2])
    found = sets.containment(near, points)
    assert found.reward_ratio == 0.0
    beta = np.sqrt(1 + 2 * np.log(20))
    assert found.transition_ratio == pytest.approx(
        float(np.max(np.linalg.norm(0.5 * points[:, :2], axis=1))) / beta, rel=1e-9
    )
    assert sets.contains(near, points)
    far = MeanModel(lambda z: z[:, 0] + 1e-3, lambda z: 0.5 * z[:, :2])
    assert sets.containment(far, points).reward_ratio == np.inf
    assert not sets.contains(far, points)
    away = MeanModel(lambda z: z[:, 0], lambda z: z[:, :2] + 9.0)
    assert not sets.containment(away, points).transition
