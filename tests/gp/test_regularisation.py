"""Posteriors for other regularisers, from one posterior, against posteriors of the data."""

import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.gp.regularisation import has_spectrum, with_regularisers

BOX = km.Box([0.0, 0.0], [1.0, 1.0])
TABLE = km.FiniteSet.range(5)
MULTIPLIERS = (1.0, 10.0, 300.0)
FORMS = {
    "compiled": ("se(0.5)", BOX),
    "features": ("quadratic", BOX),
    "outputs": ("se(0.5) @ index(2)", BOX),
    "table": ("index(5) @ index(2)", TABLE),
}


def filled(form, regulariser):
    text, domain = FORMS[form]
    rng = np.random.default_rng(0)
    prior = km.gp.posterior(
        km.kernel(text), noise_variance=regulariser, domain=domain, tolerance=1e-10
    )
    points = rng.random((12, 2)) if domain is BOX else rng.integers(0, 5, (12, 1)).astype(float)
    targets = rng.standard_normal((12, 2))
    return (
        prior.condition(points, targets if prior.outputs == 2 else targets[:, 0]),
        points,
        targets,
    )


@pytest.mark.parametrize("form", FORMS)
def test_posteriors_for_other_regularisers(form):
    posterior, points, _ = filled(form, 0.04)
    assert has_spectrum(posterior)
    found, spectrum = with_regularisers(posterior, MULTIPLIERS)
    for multiplier, ours in zip(MULTIPLIERS, found, strict=True):
        theirs = filled(form, 0.04 * multiplier)[0]
        for a, b in zip(ours.predict(points), theirs.predict(points), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)
        gain = float(spectrum.gain(multiplier))
        assert gain == pytest.approx(theirs.information_gain, rel=1e-5)


@pytest.mark.parametrize("form", ["features", "outputs"])
def test_the_spectrum_knows_how_well_functions_fit(form):
    """m(a) − m(a') from b and e, for m(a) = a yᵀ(K + a)⁻¹y in units of λ."""
    posterior, points, targets = filled(form, 0.04)
    _, spectrum = with_regularisers(posterior, MULTIPLIERS)
    kernel = km.kernel(FORMS[form][0].removesuffix(" @ index(2)"))
    K, y = np.asarray(kernel(points)) / 0.04, targets[:, : posterior.outputs] / 0.2
    misfit = [a * np.sum(y * np.linalg.solve(K + a * np.eye(12), y)) for a in (1.0, 10.0)]
    change = spectrum.weights(1.0) - spectrum.weights(10.0)
    found = float(np.sum(np.asarray(spectrum.coefficients * change)))
    assert found == pytest.approx(misfit[1] - misfit[0], rel=1e-6)


def test_the_mixture_of_sections_matches_its_dense_form():
    posterior, points, targets = filled("compiled", 0.04)
    _, spectrum = with_regularisers(posterior, MULTIPLIERS)
    centres = np.asarray(posterior.engines[0].basis.centres)
    values = np.asarray(km.kernel("se(0.5)")(points, centres))
    K = 3.0 * values @ values.T / len(centres) / 0.04
    mean, gain = spectrum.section_prior(3.0, 2.0)
    inside = np.eye(12) + K / 2.0
    assert float(gain) == pytest.approx(0.5 * np.linalg.slogdet(inside)[1], rel=1e-6)
    y = targets[:, 0] / 0.2
    fitted = y @ y - 1.0 * np.sum(np.asarray(spectrum.coefficients * mean))
    assert fitted == pytest.approx(y @ np.linalg.solve(inside, y), rel=1e-5)


def test_engines_without_a_spectrum():
    exact = km.gp.posterior(km.kernel("se(0.5)"), noise_variance=0.04, dimension=2)
    assert not has_spectrum(exact)
    own = km.kernel("se(0.5) @ index(2)")
    unequal = km.gp.posterior(own, noise_variance=np.array([0.04, 0.09]), domain=BOX)
    assert not has_spectrum(unequal)
