"""Several outputs: every layout against the dense form on rows (t, i)."""

import numpy as np
import pytest

import kernelmdp as km

from .dense import Dense, assert_matches

BOX = km.Box([0.0, 0.0], [1.0, 1.0])
B = [[1.0, 0.4, -0.2], [0.4, 0.8, 0.1], [-0.2, 0.1, 0.5]]
SINGULAR = [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.3]]
SMOOTH, FINITE = "se(0.6)", "(linear + constant(1.0))"


def forms(k):
    return {
        "identity": f"{k} @ index(3)",
        "coregional": f"{k} @ coregional({B})",
        "singular": f"{k} @ coregional({SINGULAR})",
        "independent": f"independent({k}, 2.0 * {k}, {k} * linear[0])",
        "sum": f"{k} @ coregional({B}) + quadratic @ index(3)",
    }


def data(n=12):
    rng = np.random.default_rng(3)
    return rng.random((n, 2)), rng.standard_normal((n, 3)), rng.random((6, 2))


# Every form with each engine; noise that differs by output where that changes the layout.
OWN = [0.05, 0.2, 0.01]
LAYOUTS = [
    *(("exact", SMOOTH, form, 0.05) for form in forms("")),
    *(("exact", SMOOTH, form, OWN) for form in ("identity", "coregional")),
    *(("finite rank", FINITE, form, 0.05) for form in ("identity", "coregional", "sum")),
    ("finite rank", FINITE, "independent", OWN),
]


@pytest.mark.parametrize(("engine", "part", "form", "noise"), LAYOUTS)
def test_every_layout_matches_the_dense_form(engine, part, form, noise):
    kernel = km.kernel(forms(part)[form])
    points, targets, queries = data()
    prior = km.gp.posterior(kernel, noise_variance=noise, domain=BOX, engine=engine)
    posterior = prior.condition(points[:6], targets[:6]).condition(points[6:], targets[6:])
    assert posterior.engine == engine
    assert posterior.count == 12
    assert posterior.outputs == 3
    if (engine, form, noise) == ("exact", "coregional", 0.05):
        assert len(posterior.engines) == 3  # three N x N factors, not one 3N x 3N
    oracle = Dense(kernel, points, targets, noise, queries)
    assert_matches(posterior, oracle, queries, 1e-9)


@pytest.mark.parametrize("form", ["coregional", "independent"])
def test_compiled_outputs_are_close_to_exact_ones(form):
    kernel = km.kernel(forms(SMOOTH)[form])
    points, targets, queries = data()
    posterior = km.gp.posterior(kernel, noise_variance=0.05, domain=BOX, tolerance=1e-8)
    assert posterior.engine == "compiled"
    oracle = Dense(kernel, points, targets, 0.05, queries)
    assert_matches(posterior.condition(points, targets), oracle, queries, 1e-5)


def test_next_state_mean_learns_increments():
    kernel = km.kernel("se(0.6) @ index(2)")
    points, _, queries = data()
    following = points + 0.1 * np.sin(points[:, ::-1])
    oracle = Dense(kernel, points, following, 1e-3, queries, mean=lambda z: np.asarray(z))
    prior = km.gp.posterior(
        kernel, noise_variance=1e-3, domain=BOX, mean="identity", engine="exact"
    )
    np.testing.assert_allclose(prior.predict(queries)[0], queries)
    assert_matches(prior.condition(points, following), oracle, queries, 1e-8)


def test_mixed_domain_of_box_and_finite_actions():
    domain = km.join(state=km.Box([0.0], [1.0]), action=km.FiniteSet([[0.0], [1.0], [2.0]]))
    kernel = km.kernel(
        "se(0.4)[state] * coregional([[1.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 1.0]])[action]"
    )
    posterior = km.gp.posterior(kernel, noise_variance=0.01, domain=domain, tolerance=1e-9)
    assert posterior.engine == "compiled"
    assert posterior.error_kind == "certified"
    rng = np.random.default_rng(0)
    points = np.c_[rng.random(20), rng.integers(0, 3, 20)]
    targets = rng.standard_normal(20)
    queries = np.c_[rng.random(9), rng.integers(0, 3, 9)]
    oracle = Dense(kernel.bind(domain.names), points, targets, 0.01, queries)
    assert_matches(posterior.condition(points, targets), oracle, queries, 1e-6)
