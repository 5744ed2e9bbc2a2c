"""A check that a kernel keeps the contract of kernels."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.conformance import Checklist, ConformanceReport
from kernelmdp.domains import Domain
from kernelmdp.errors import KernelTextError
from kernelmdp.kernels.base import Kernel
from kernelmdp.kernels.text import kernel as kernel_of

#: Number of points at which the kernel is evaluated. All pairs are checked, so cost is quadratic.
POINTS = 60
#: Number of frequencies drawn from the spectral law. Their mean is then exact to about 0.02.
FREQUENCIES = 4000
#: Rounding error that is allowed, as a share of the variance.
SLACK = 1e-8
#: Number of standard errors by which a mean over frequencies may be off: a false alarm at 60
#: points is then improbable.
ERRORS = 6.0


def check_kernel(kernel: Kernel, domain: Domain) -> ConformanceReport:
    """Check at points of a domain that a kernel keeps the contract of kernels.

    A check at finitely many points is no proof. It finds most mistakes.

    Args:
        kernel: The kernel.
        domain: Where to check it.

    Returns:
        The checks that passed, and those that could not be made.

    Raises:
        ConformanceError: At the first check that fails.

    >>> from kernelmdp.domains import Box
    >>> print(check_kernel(kernel_of("linear"), Box([0.0], [1.0])))
    linear: 6 promises kept
      kept     k(x, y) = k(y, x)
      kept     a matrix of k has no negative eigenvalue
      kept     the variance is k(x, x), and at most its bound
      kept     distances of features are at most what the modulus and Λ allow
      kept     features multiply to k
      kept     the text form reads back as the kernel
      skipped  draws from the spectral law average to k: not stationary
    """
    bound = kernel.bind(domain.names)
    x = jnp.asarray(domain.spread_points(POINTS)[:POINTS], float)
    K = np.asarray(bound(x))
    variances = np.asarray(bound.diagonal(x))
    constants = kernel.constants(domain)
    tolerance = SLACK * max(float(variances.max()), 1e-300)
    checklist = Checklist()
    error = float(np.abs(K - K.T).max())
    checklist.require("k(x, y) = k(y, x)", bool(error <= tolerance), f"a difference of {error:.3g}")
    least = float(np.linalg.eigvalsh((K + K.T) / 2).min())
    checklist.require(
        "a matrix of k has no negative eigenvalue", least >= -len(x) * tolerance, f"{least:.3g}"
    )
    _check_variances(checklist, K, variances, constants.variance_bound, tolerance)
    _check_distances(checklist, np.asarray(x), K, constants)
    _check_features(checklist, bound, x, K, tolerance)
    _check_spectrum(checklist, bound, x, K)
    _check_text(checklist, kernel, x, K, domain)
    return checklist.result(str(kernel))


def _check_variances(
    checklist: Checklist, K: np.ndarray, variances: np.ndarray, bound: float, tolerance: float
) -> None:
    promise = "the variance is k(x, x), and at most its bound"
    error = float(np.abs(np.diag(K) - variances).max())
    holds = error <= tolerance and bool(variances.max() <= bound + tolerance)
    checklist.require(promise, holds, f"{error:.3g} apart, {variances.max():.3g} of {bound:.3g}")


def _check_distances(checklist: Checklist, x: np.ndarray, K: np.ndarray, constants: Any) -> None:
    promise = "distances of features are at most what the modulus and Λ allow"
    if math.isinf(constants.lipschitz) and math.isinf(constants.modulus(np.ones(x.shape[1]))):
        return checklist.skip(promise, "the kernel says nothing of them")
    squares = np.diag(K)[:, None] + np.diag(K)[None, :] - 2 * K
    for i, j in np.argwhere(np.triu(np.ones_like(K), 1)):
        allowed = min(
            constants.modulus(np.abs(x[i] - x[j])),
            constants.lipschitz * np.linalg.norm(x[i] - x[j]),
        )
        distance = math.sqrt(max(float(squares[i, j]), 0.0))
        if distance > allowed * (1 + 1e-9) + math.sqrt(SLACK):
            return checklist.require(
                promise, False, f"{distance:.3g} > {allowed:.3g} at {x[i]}, {x[j]}"
            )
    return checklist.require(promise, True, "")


def _check_features(
    checklist: Checklist, kernel: Kernel, x: Any, K: np.ndarray, tolerance: float
) -> None:
    promise = "features multiply to k"
    if math.isinf(kernel.feature_count(x.shape[1])):
        return checklist.skip(promise, "infinitely many")
    rows = np.asarray(jax.vmap(kernel.features)(x))
    error = float(np.abs(rows @ rows.T - K).max())
    return checklist.require(promise, error <= 100 * tolerance, f"a difference of {error:.3g}")


def _check_spectrum(checklist: Checklist, kernel: Kernel, x: Any, K: np.ndarray) -> None:
    promise = "draws from the spectral law average to k"
    if not kernel.stationary:
        return checklist.skip(promise, "not stationary")
    omega = kernel.frequencies(FREQUENCIES, x.shape[1], key=jax.random.key(0))
    cosines = np.cos(np.asarray((x - x[:1]) @ omega.T)) * K[0, 0]
    errors = np.abs(cosines.mean(axis=1) - K[:, 0])
    allowed = ERRORS * (cosines.std(axis=1) / math.sqrt(FREQUENCIES) + SLACK)
    return checklist.require(promise, bool((errors <= allowed).all()), f"{errors.max():.3g} off")


def _check_text(
    checklist: Checklist, kernel: Kernel, x: Any, K: np.ndarray, domain: Domain
) -> None:
    promise = "the text form reads back as the kernel"
    try:
        parsed = kernel_of(str(kernel))
    except KernelTextError:
        return checklist.skip(promise, "the grammar of kernels/text.py does not know it")
    error = float(np.abs(np.asarray(parsed.bind(domain.names)(x)) - K).max())
    return checklist.require(promise, error == 0.0, f"a difference of {error:.3g}")
