"""Student-t noise: against quadrature, and calibrated.

Simulation-based calibration): truths drawn from the prior, ranked among draws
from the posterior that their data give, must have uniform ranks.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from kernelmdp.mdp import Gaussian, StudentT
from kernelmdp.numerics.modules import replace_fields
from kernelmdp.priors import HeavyTails, diagnostics, heavy_tails
from kernelmdp.priors.heavy_tails import ROOM, StudentPosterior, with_rows
from kernelmdp.priors.sufficient_statistics import Statistics
from tests.priors import toy

REPLICATIONS, DRAWS = 100, 9
PRIOR = HeavyTails(chains=DRAWS)  # of so many columns: one program for several tests


def law_of(size, degrees):
    features, targets = jnp.asarray(toy.FEATURES), jnp.asarray(toy.TARGETS)
    return StudentPosterior(features, targets, jnp.ones(4), jnp.asarray(size), degrees)


def log_density(x, size, degrees):
    residuals = (toy.TARGETS[None] - x @ toy.FEATURES.T) / size
    return stats.t(degrees).logpdf(residuals).sum(axis=1) - 0.5 * np.sum(x**2, axis=1)


def noise_of(count):
    """Of every replication; by NumPy, JAX's Gamma law takes seconds to compile."""
    drawn = np.random.default_rng(5).standard_t(3, size=(count, REPLICATIONS))
    return toy.SIZE * jnp.asarray(drawn)


@pytest.fixture
def one_segment(monkeypatch):
    """With so many columns some R̂ is always large. Less room: less to do."""
    monkeypatch.setattr(heavy_tails, "ROOM", 64)
    monkeypatch.setattr(diagnostics, "LARGEST_R_HAT", np.inf)
    monkeypatch.setattr(diagnostics, "LEAST_EFFECTIVE", 0.0)


def test_chains_match_quadrature():
    size, degrees, count = 0.2, 3.0, 800
    law = law_of(size, degrees)
    starts = jax.random.normal(jax.random.key(0), (count, 2))
    run = jax.jit(lambda key: law.chains(jnp.zeros(2), starts, 25, 4, key=key))
    _, drawn, last, tried, sound = run(jax.random.key(1))
    assert sound
    assert int(tried) >= count * 25 * 4
    # Last positions of chains are independent; means of chains are, too, but a twentieth of the
    # mass lies near the outlier, where a chain stays for long: their spread says little of it.
    places = toy.square()
    toy.assert_drawn_from(np.asarray(last), places, log_density(places, size, degrees))
    assert diagnostics.mixing(np.asarray(drawn)[:40, 40:])[0] < 1.1


def test_a_sweep_alone_is_invariant():
    """Started from the posterior by quadrature, it leaves it as it is."""
    size, degrees = 0.3, 4.0  # a Gamma shape that is no whole number
    law, x = law_of(size, degrees), toy.square()
    mass = np.exp(log_density(x, size, degrees))
    chosen = np.random.default_rng(0).choice(len(x), size=5_000, p=mass / mass.sum())
    keys = jax.random.split(jax.random.key(0), 5_000)
    after = jax.jit(jax.vmap(lambda w, k: law.sweep(w, key=k)))(jnp.asarray(x[chosen]), keys)
    for i in range(2):
        assert stats.ks_2samp(np.asarray(after[:, i]), x[chosen, i]).pvalue > 1e-3


def test_calibration(one_segment):
    columns = toy.columns(REPLICATIONS)
    weight_key, start_key, key = jax.random.split(jax.random.key(0), 3)
    truth = jax.random.normal(weight_key, (columns.rank, REPLICATIONS))
    features = columns.features(toy.POINTS)
    noise = noise_of(toy.N)
    start, _ = PRIOR.start(columns, toy.setting(StudentT(toy.SIZE)), "reward", key=start_key)
    (seen, _), _ = PRIOR.update(start, features, features @ truth + noise, key=key)
    drawn = toy.watched(columns, seen.positions)
    for true, values in zip(toy.watched(columns, truth), drawn, strict=True):
        assert toy.uniform_p(toy.ranks(true, values), DRAWS) > toy.LEAST


def test_calibration_finds_a_wrong_posterior():
    """Gaussian draws for Student-t noise, believed too small: ranks pile up at the ends."""
    columns = toy.columns(REPLICATIONS, size=0.5 * toy.SIZE)
    weight_key, key = jax.random.split(jax.random.key(4))
    truth = jax.random.normal(weight_key, (columns.rank, REPLICATIONS))
    features = columns.features(toy.POINTS)
    seen = Statistics.none(columns).after(features, features @ truth + noise_of(toy.N))
    spectrum = seen.spectrum()
    mean, spread = spectrum.moments(columns.sizes**2)
    drawn = mean[None] + spread[None] * jax.random.normal(key, (DRAWS, *mean.shape))
    values = toy.watched(columns, jnp.einsum("rq,dqp->drp", spectrum.vectors, drawn))
    assert toy.uniform_p(toy.ranks(toy.watched(columns, truth)[0], values[0]), DRAWS) < toy.LEAST


def test_chains_are_warm_started(one_segment):
    """With the same key, where a segment ends depends on where it starts, and on nothing else."""
    columns, key = toy.columns(REPLICATIONS), jax.random.key(0)
    features, targets = columns.features(toy.POINTS), jnp.zeros((toy.N, REPLICATIONS))
    start, _ = PRIOR.start(columns, toy.setting(StudentT(toy.SIZE)), "reward", key=key)
    first, _ = PRIOR.update(start, features, targets, key=key)
    again, _ = PRIOR.update(start, features, targets, key=key)
    run_segment = (replace_fields(start[0], positions=start[0].positions + 1.0), start[1])
    other, _ = PRIOR.update(run_segment, features, targets, key=key)
    assert np.array_equal(first[0].positions, again[0].positions)
    assert not np.array_equal(first[0].positions, other[0].positions)


def test_averages_are_as_close_as_the_information_says(one_segment):
    columns, rng = toy.columns(REPLICATIONS), np.random.default_rng(0)
    weights = jnp.asarray(rng.normal(size=(columns.rank, REPLICATIONS)))
    points = jnp.asarray(rng.uniform(size=(60, 1)))
    features = columns.features(points)
    noise = noise_of(60)
    setting, key = toy.setting(StudentT(toy.SIZE)), jax.random.key(0)
    start, _ = PRIOR.start(columns, setting, "reward", key=key)
    (seen, _), _ = PRIOR.update(start, features, features @ weights + noise, key=key)
    error = np.asarray(columns.features(toy.POINTS) @ (seen.average - weights))
    # The t law's information on its centre is (nu + 1)/(nu + 3)/s^2 per datum.
    information = (4 / 6) / toy.SIZE**2 * np.asarray(features.T @ features) + np.eye(columns.rank)
    across = np.asarray(columns.features(toy.POINTS))
    expected = np.sqrt(np.diag(across @ np.linalg.solve(information, across.T)))
    np.testing.assert_allclose(np.sqrt(np.mean(error**2, axis=1)), expected, rtol=0.25)


def test_room_for_rows_grows_and_padding_counts_for_nothing():
    columns = toy.columns(2)
    prior, key = HeavyTails(), jax.random.key(0)
    (seen, _), _ = prior.start(columns, toy.setting(), "reward", key=key)
    features = jax.random.normal(key, (150, columns.rank))
    targets = features[:, :2]
    for _ in range(3):
        before, seen = seen, with_rows(seen, features, targets)
    assert int(seen.count) == 450
    assert int(before.count) == 300  # nothing was changed in place
    assert seen.features.shape[0] == 2 * ROOM
    assert np.array_equal(seen.features[300:450], features)
    assert np.array_equal(seen.targets[150:300], targets)
    size, weights = jnp.asarray(0.3), jnp.ones(columns.rank)
    short = StudentPosterior(features[:4], targets[:4, 0], jnp.ones(4), size, 3.0)
    padding = jnp.concatenate([jnp.ones(4), jnp.zeros(4)])
    long = StudentPosterior(features[:8], targets[:8, 0], padding, size, 3.0)
    for one, other in zip(short.reweighted(weights), long.reweighted(weights), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    values = [law.log_likelihood(law.targets - law.features @ weights) for law in (short, long)]
    assert values[0] == pytest.approx(float(values[1]), rel=1e-12)


def test_gaussian_noise_gives_heavy_tails_of_the_same_deviation():
    prior = HeavyTails()
    np.testing.assert_allclose(prior.sizes(Gaussian(0.3), 1), 0.3 / np.sqrt(3))
    np.testing.assert_allclose(prior.sizes(StudentT(0.3, degrees=5.0), 2), [0.3, 0.3])
    assert prior.degrees_of(StudentT(0.3, degrees=5.0)) == 5.0
