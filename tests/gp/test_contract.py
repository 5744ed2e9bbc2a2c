"""What users may rely on: clear errors before anything changes, no retraces, bounded memory."""

import importlib
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.errors import ArgumentError, DataError, KernelMDPError, ShapeError
from kernelmdp.gp.ard import ARDKernels
from kernelmdp.gp.inducing_posterior import inducing_posterior

from .dense import Dense, assert_matches

BOX = km.Box([0.0, 0.0], [1.0, 1.0])
#: By its name in the package, the module is hidden behind the function.
POSTERIORS = importlib.import_module("kernelmdp.gp.posterior")


def make(engine="compiled", text="se(0.5)", **kwargs):
    if engine == "inducing":
        return on_inducing_points()
    return km.gp.posterior(
        km.kernel(text), **{"noise_variance": 0.1, "domain": BOX, "engine": engine} | kwargs
    )


def on_inducing_points():
    """Nine centres on the box, and no data yet."""
    numbers = np.full((1, 2), 0.5), np.ones(1), np.full(1, np.sqrt(0.1)), np.ones(2)
    shape = ARDKernels(*map(jax.numpy.asarray, numbers), angles=())
    centres = np.stack(np.meshgrid([0.0, 0.5, 1.0], [0.0, 0.5, 1.0]), axis=-1).reshape(-1, 2)
    empty = np.zeros((0, 2)), np.zeros((0, 1))
    return inducing_posterior(shape, centres, np.ones(9), *empty, scalar=True, block=16)


@pytest.mark.parametrize("engine", ["exact", "compiled", "inducing"])
@pytest.mark.parametrize(
    ("points", "targets", "error", "words"),
    [
        ([[0.1, 0.2, 0.3]], [1.0], ShapeError, ["points", "(n, 2)", "(1, 3)"]),
        ([0.1, 0.2], [1.0], ShapeError, ["points", "(n, d)", "(2,)"]),
        ([[0.1, 0.2]], [1.0, 2.0], ShapeError, ["targets", "(1,)", "(2,)"]),
        ([[0.1, 0.2]], [[1.0]], ShapeError, ["targets", "(1,)", "(1, 1)"]),
        ([[0.1, np.nan]], [1.0], DataError, ["points", "nan", "(0, 1)"]),
        ([[0.1, 0.2]], [np.inf], DataError, ["targets", "inf", "(0,)"]),
        ([["a", "b"]], [1.0], ArgumentError, ["numbers"]),
    ],
)
def test_bad_data_is_refused_and_nothing_changes(engine, points, targets, error, words):
    posterior = make(engine).condition([[0.5, 0.5]], [1.0])
    before = posterior.predict([[0.4, 0.4]])
    with pytest.raises(error) as caught:
        posterior.condition(points, targets)
    for word in words:
        assert word in str(caught.value)
    assert posterior.count == 1
    np.testing.assert_array_equal(posterior.predict([[0.4, 0.4]])[0], before[0])


@pytest.mark.parametrize(
    ("kwargs", "word"),
    [
        ({"noise_variance": 0.0}, "noise_variance"),
        ({"noise_variance": -1.0}, "noise_variance"),
        ({"noise_variance": np.nan}, "noise_variance"),
        ({"noise_variance": [0.1, 0.2]}, "noise_variance"),
        ({"engine": "magic"}, "engine"),
        ({"engine": "finite rank"}, "engine"),
        ({"dtype": "float16"}, "dtype"),
        ({"tolerance": -1.0}, "tolerance"),
        ({"rank_limit": 0}, "rank_limit"),
        ({"mean": "nonsense"}, "mean"),
        ({"dimension": 3}, "dimension"),
        ({"domain": None}, "dimension"),
    ],
)
def test_bad_settings_are_refused(kwargs, word):
    with pytest.raises(KernelMDPError) as caught:
        make(**{"engine": "auto"} | kwargs)
    assert word in str(caught.value)


def test_a_kernel_text_is_not_a_kernel(unchecked):
    with pytest.raises(ArgumentError, match=r"kernelmdp\.kernel"):
        km.gp.posterior("se(0.5)", noise_variance=0.1, domain=BOX)


def test_no_data_is_no_change():
    posterior = make()
    assert posterior.condition(np.zeros((0, 2)), np.zeros(0)).count == 0


def compilations(work):
    """Number of programs XLA compiles while ``work`` runs, and what it gives."""
    events = []
    listen = lambda name, *_, **__: events.append(name)  # noqa: E731
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        result = work()
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    return sum("backend_compile" in name for name in events), result


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        ("se(0.5)", "compiled"),
        ("quadratic", "finite rank"),
        ("se(0.5) @ coregional([[1.0, 0.2], [0.2, 1.0]])", "compiled"),
        ("se(0.5)", "inducing"),
    ],
)
def test_conditioning_200_times_compiles_nothing_after_the_second(text, engine):
    rng = np.random.default_rng(0)
    outputs = () if "@" not in text else (2,)
    posterior = make(engine, text)

    def step(p):
        p = p.condition(rng.random((50, 2)), rng.standard_normal((50, *outputs)))
        p.predict(rng.random((20, 2)))
        p.sample(key=jax.random.key(0))(rng.random((20, 2)))
        return p

    for _ in range(2):
        posterior = step(posterior)

    def rest():
        last = posterior
        for _ in range(198):
            last = step(last)
        return last

    compiled, last = compilations(rest)
    assert compiled == 0
    assert last.count == 200 * 50


def test_the_exact_engine_compiles_only_when_its_capacity_grows():
    rng = np.random.default_rng(0)
    posterior = make("exact")
    capacities, compiled = [], []
    for _ in range(24):

        def step(before=posterior):
            after = before.condition(rng.random((50, 2)), rng.standard_normal(50))
            after.predict(rng.random((20, 2)))
            return after

        count, posterior = compilations(step)
        compiled.append(count)
        capacities.append(posterior.engines[0].capacity)
    grew = np.diff([0, *capacities]) > 0
    assert sum(grew) <= 8
    assert all(count == 0 for count, g in zip(compiled[2:], grew[2:], strict=True) if not g)
    assert posterior.count == 1200


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's own accounting")
def test_memory_stays_bounded_over_a_hundred_thousand_points():
    program = """
import numpy as np, kernelmdp as km
posterior = km.gp.posterior(
    km.kernel("se(0.5)"), noise_variance=0.1, domain=km.Box([0.0, 0.0], [1.0, 1.0]))
rng = np.random.default_rng(0)
for _ in range(200):
    posterior = posterior.condition(rng.random((500, 2)), rng.standard_normal(500))
assert posterior.engine == "compiled" and posterior.count == 100_000
# Not getrusage: a child's figure there starts from its parent's.
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    assert int(done.stdout) < 2**20  # KiB


def test_a_large_first_batch_is_conditioned_on_in_place(monkeypatch):
    # Several tiles and panels, and a last tile that is not full.
    monkeypatch.setattr(POSTERIORS, "LARGE_BATCH", 300)
    monkeypatch.setattr("kernelmdp.gp.large_batches.TILE", 128)
    monkeypatch.setattr("kernelmdp.numerics.factorisation.PANEL", 96)
    rng = np.random.default_rng(0)
    points, targets, queries = rng.random((333, 2)), rng.standard_normal(333), rng.random((40, 2))
    for text, values in (
        ("se(0.5)", targets),
        ("se(0.5) @ coregional([[1.0, 0.2], [0.2, 1.0]])", np.stack([targets, -targets], axis=1)),
    ):
        after = make("exact", text).condition(points, values)
        assert after.count == 333
        oracle = Dense(km.kernel(text), points, values, 0.1, queries)
        assert_matches(after, oracle, queries, 1e-8)
        factor = np.asarray(after.engines[0].factor)
        np.testing.assert_array_equal(factor, np.tril(factor))
        more = after.condition(points[:20], values[:20])
        together = np.concatenate([points, points[:20]]), np.concatenate([values, values[:20]])
        assert_matches(more, Dense(km.kernel(text), *together, 0.1, queries), queries, 1e-8)


def test_a_large_batch_without_positive_definiteness_is_an_error(monkeypatch):
    monkeypatch.setattr(POSTERIORS, "LARGE_BATCH", 30)
    bad = km.kernels.Function(
        lambda x, y: -jax.numpy.dot(x, y), name="negative", variance_bound=1.0
    )
    posterior = km.gp.posterior(bad, noise_variance=0.1, dimension=2)
    with pytest.raises(km.errors.PositiveDefiniteError):
        posterior.condition(np.random.default_rng(0).random((40, 2)), np.ones(40))
    assert posterior.count == 0
