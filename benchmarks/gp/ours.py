"""kernelmdp as a contender, and probes that need a fresh process: memory and retraces.

`python ours.py memory`, `... large` and `... retraces` print one line of JSON each.
"""

from __future__ import annotations

import copy
import json
import resource
import sys
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from problem import (
    APPENDED,
    DIMENSION,
    LARGEST,
    LENGTHSCALE,
    NOISE_VARIANCE,
    Array,
    Contender,
    data,
    target,
)

LARGE_PREDICTED = 1_000  # points predicted from the largest exact posterior


def prior(**options: Any) -> Any:
    import kernelmdp as km

    return km.gp.posterior(
        km.kernels.SquaredExponential(lengthscale=LENGTHSCALE),
        noise_variance=NOISE_VARIANCE,
        domain=km.Box(low=[0] * DIMENSION, high=[1] * DIMENSION),
        **options,
    )


class Ours(Contender):
    """As it comes: compiled to finite rank, float64."""

    name = "kernelmdp"
    library = "kernelmdp"
    packages = ("kernelmdp", "jax", "jaxlib")
    rows = frozenset({"append", "predict", "draw"})
    options: ClassVar[dict[str, str]] = {}

    def __init__(self, X: Array, y: Array) -> None:
        self.posterior = prior(**self.options).condition(X, y)

    def facts(self) -> dict[str, Any]:
        rank = float(self.posterior.rank)  # infinite in the exact engine
        return {
            "engine": str(self.posterior.engine),
            "rank": int(rank) if np.isfinite(rank) else None,
            "error": float(self.posterior.error),
        }

    def append(self, X: Array, y: Array) -> Ours:
        twin = copy.copy(self)
        twin.posterior = self.posterior.condition(X, y)
        return twin

    def predict(self, Z: Array) -> tuple[Array, Array]:
        mean, std = self.posterior.predict(Z)
        return np.asarray(mean), np.asarray(std)

    def draw(self, Z: Array, seed: int) -> Array:
        import jax

        return np.asarray(self.posterior.sample(key=jax.random.key(seed))(Z))

    def draws(self, Z: Array, count: int) -> Array:
        return np.stack([self.draw(Z, seed) for seed in range(count)])


class OursFloat32(Ours):
    name = "kernelmdp float32"
    options: ClassVar[dict[str, str]] = {"dtype": "float32"}


class OursExact(Ours):
    name = "kernelmdp exact"
    rows = frozenset({"append", "predict"})  # a draw is what the finite rank is for
    options: ClassVar[dict[str, str]] = {"engine": "exact"}


CONTENDERS: tuple[type[Contender], ...] = (Ours, OursFloat32, OursExact)


def _episodes(count: int) -> Any:
    rng = np.random.default_rng(1)
    for _ in range(count):
        X = rng.random((APPENDED, DIMENSION))
        yield X, target(X) + np.sqrt(NOISE_VARIANCE) * rng.standard_normal(APPENDED)


def _peak_bytes() -> dict[str, int]:
    """VmHWM where there is one: Linux lets ru_maxrss of a child start at its parent's peak."""
    unit = 1 if sys.platform == "darwin" else 1024
    maxrss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    peak = maxrss
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                peak = int(line.split()[1]) * 1024
    return {"peak_bytes": peak, "ru_maxrss_bytes": maxrss}


def memory(calls: int = 2_000) -> dict[str, Any]:
    """Peak resident memory of 10^5 points in calls of 50, in the compiled engine."""
    posterior = prior(engine="compiled")
    before = _peak_bytes()["peak_bytes"]
    for X, y in _episodes(calls):
        posterior = posterior.condition(X, y)
    mean, _ = posterior.predict(np.full((1, DIMENSION), 0.5))
    return {
        "points": calls * APPENDED,
        "calls": calls,
        **_peak_bytes(),
        "peak_bytes_before_data": before,
        "mean_error": float(abs(np.asarray(mean)[0] - target(np.full((1, DIMENSION), 0.5))[0])),
    }


def large(points: int = LARGEST) -> dict[str, Any]:
    """Peak resident memory of the exact posterior of many points, and of a prediction from it."""
    import time

    known = data(points)
    posterior = prior(engine="exact")
    begin = time.perf_counter()
    posterior = posterior.condition(known.X, known.y)
    conditioned = time.perf_counter()
    mean, _ = posterior.predict(known.Z[:LARGE_PREDICTED])
    predicted = np.asarray(mean)
    return {
        "points": points,
        **_peak_bytes(),
        "condition_seconds": conditioned - begin,
        "predicted": LARGE_PREDICTED,
        "predict_seconds": time.perf_counter() - conditioned,
        "mean_error": float(np.abs(predicted - target(known.Z[:LARGE_PREDICTED])).max()),
    }


def retraces(calls: int = 200) -> dict[str, Any]:
    """Compilations and traces after the second of many episodes of condition, predict, draw."""
    import jax

    events: Counter[str] = Counter()

    def listen(event: str, duration_secs: float, **kwargs: Any) -> None:
        events[event.rsplit("/", 1)[-1]] += 1

    jax.monitoring.register_event_duration_secs_listener(listen)
    posterior, Z = prior(), np.random.default_rng(2).random((100, DIMENSION))
    first: dict[str, int] = {}
    for index, (X, y) in enumerate(_episodes(calls)):
        if index == 2:
            first = dict(events)
            events.clear()
        posterior = posterior.condition(X, y)
        mean, _ = posterior.predict(Z)
        value = posterior.sample(key=jax.random.key(index))(Z)
        np.asarray(mean), np.asarray(value)
    return {
        "calls": calls,
        "compilations_first_two": first.get("backend_compile_duration", 0),
        "compilations_after": events["backend_compile_duration"],
        "traces_after": events["jaxpr_trace_duration"],
    }


if __name__ == "__main__":
    probes = {"memory": memory, "large": large, "retraces": retraces}
    print(json.dumps(probes[sys.argv[1]]()))
