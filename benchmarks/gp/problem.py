"""The common problem of the GP benchmark: data, the exact answer, and what a contender offers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import cdist

Array = NDArray[np.float64]

DIMENSION = int(os.environ.get("GP_DIMENSION", "4"))  # another one: benchmarks/compare
LENGTHSCALE = 0.5  # half the side of the box
NOISE_VARIANCE = 0.01
TRAIN = 2_000
APPENDED = 50  # one episode
TEST = 10_000
LARGEST = 20_000  # for the row on growth with the data
SEED = 20_240_501


class Contender:
    """A fitted GP with the hyper-parameters above, as a user of one library would hold it.

    Every method returns NumPy arrays or a contender whose work is done: lazy and asynchronous
    libraries have to be forced inside the method, or the clock reads only the dispatch.
    """

    name: ClassVar[str]
    library: ClassVar[str]  # one process per library
    packages: ClassVar[tuple[str, ...]]  # whose versions are recorded
    rows: ClassVar[frozenset[str]]  # of "append", "predict", "draw"
    draw_points: ClassVar[int] = TEST  # fewer only where 10,000 are hopeless

    def __init__(self, X: Array, y: Array) -> None:
        raise NotImplementedError

    def append(self, X: Array, y: Array) -> Contender:
        """A new contender that also knows (X, y); the old one must stay as it was."""
        raise NotImplementedError

    def mean(self, Z: Array) -> Array:
        return self.predict(Z)[0]  # where the library cannot leave out the std

    def predict(self, Z: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of f, noise not included."""
        raise NotImplementedError

    def draw(self, Z: Array, seed: int) -> Array:
        """One posterior function at Z, shape (len(Z),)."""
        raise NotImplementedError

    def draws(self, Z: Array, count: int) -> Array:
        """Many functions at Z, shape (count, len(Z)); for the covariance, never timed."""
        raise NotImplementedError

    def facts(self) -> dict[str, Any]:
        """What a reader of the results wants to know besides."""
        return {}


@dataclass(frozen=True)
class Data:
    X: Array
    y: Array
    X_new: Array
    y_new: Array
    Z: Array


def target(X: Array) -> Array:
    """Smooth, not additive, of the order of the prior's standard deviation."""
    x, y, z, w = (X[:, i % X.shape[1]] for i in range(4))
    result: Array = np.sin(4.0 * x + y) * np.cos(3.0 * z) + 0.5 * w**2 - y * w
    return result


def data(n: int = TRAIN) -> Data:
    """The first n training points of one fixed stream; appended and test points never change."""
    train, appended, test, noise = (
        np.random.default_rng(s) for s in np.random.SeedSequence(SEED).spawn(4)
    )
    X = train.random((LARGEST, DIMENSION))[:n]
    X_new = appended.random((APPENDED, DIMENSION))
    noises = np.sqrt(NOISE_VARIANCE) * noise.standard_normal(LARGEST + APPENDED)
    y, y_new = target(X) + noises[:n], target(X_new) + noises[LARGEST:]
    return Data(X, y, X_new, y_new, test.random((TEST, DIMENSION)))


def kernel(A: Array, B: Array) -> Array:
    result: Array = np.exp(-0.5 * cdist(A, B, "sqeuclidean") / LENGTHSCALE**2)
    return result


class Reference:
    """The exact posterior in float64 by the textbook formula: the judge, not a contender."""

    def __init__(self, X: Array, y: Array) -> None:
        self.X = X
        self.factor = cholesky(kernel(X, X) + NOISE_VARIANCE * np.eye(len(X)), lower=True)
        self.whitened = solve_triangular(self.factor, y, lower=True)

    def predict(self, Z: Array, chunk: int = 1_000) -> tuple[Array, Array]:
        means, variances = [], []
        for start in range(0, len(Z), chunk):  # in chunks only to keep the memory small
            V = solve_triangular(self.factor, kernel(self.X, Z[start : start + chunk]), lower=True)
            means.append(V.T @ self.whitened)
            variances.append(1.0 - np.einsum("ij,ij->j", V, V))
        return np.concatenate(means), np.sqrt(np.concatenate(variances))

    def covariance(self, Z: Array) -> Array:
        V = solve_triangular(self.factor, kernel(self.X, Z), lower=True)
        result: Array = kernel(Z, Z) - V.T @ V
        return result


def prediction_errors(got: tuple[Any, Any], exact: tuple[Array, Array]) -> dict[str, float]:
    """Errors of the std relative to the exact std, of the mean in units of the exact std."""
    std = np.abs(np.asarray(got[1], dtype=float) / exact[1] - 1.0)
    mean = np.abs(np.asarray(got[0], dtype=float) - exact[0]) / exact[1]
    errors = {
        "std_max": std.max(),
        "std_q99": np.quantile(std, 0.99),
        "mean_max": mean.max(),
        "mean_q99": np.quantile(mean, 0.99),
    }
    return {name: _finite(value) for name, value in errors.items()}


def _finite(error: float) -> float:
    return float(np.nan_to_num(error, nan=1e30, posinf=1e30))  # JSON knows no NaN


class DrawJudge:
    """How far the covariance of draws is from the exact one, and how far exact draws would be.

    After 2,000 observations the posterior variance is a thousandth of the prior's, so an error
    of 2 % of the *prior* variance would excuse anything. What counts is the largest entry in
    units of the posterior variances, and the scale: the mean variance of whitened draws, less 1,
    which has far less Monte-Carlo error. That error is found by judging exact draws alike.
    """

    def __init__(self, mean: Array, covariance: Array, draws: int) -> None:
        self.mean, self.covariance = mean, covariance
        self.root = cholesky(covariance + 1e-14 * np.eye(len(covariance)), lower=True)
        rng = np.random.default_rng(SEED)
        ideal = [rng.standard_normal((draws, len(mean))) @ self.root.T for _ in range(200)]
        self.noise = np.quantile([self._entry_and_scale(x) for x in ideal], 0.99, axis=0)

    def _entry_and_scale(self, centred: Array) -> tuple[float, float]:
        unit = np.sqrt(np.diag(self.covariance))
        entry = (centred.T @ centred / len(centred) - self.covariance) / np.outer(unit, unit)
        whitened = solve_triangular(self.root, centred.T, lower=True)
        return float(np.abs(entry).max()), float(abs(np.mean(whitened**2) - 1.0))

    def errors(self, samples: Array) -> dict[str, float]:
        centred = np.nan_to_num(np.asarray(samples, dtype=float) - self.mean, nan=1e15)
        entry, scale = self._entry_and_scale(centred)
        absolute = centred.T @ centred / len(centred) - self.covariance
        return {
            "over_posterior_variance": entry,
            "monte_carlo_q99": float(self.noise[0]),
            "scale": scale,
            "scale_monte_carlo_q99": float(self.noise[1]),
            "over_prior_variance": float(np.abs(absolute).max()),  # the prior variance is 1
        }
