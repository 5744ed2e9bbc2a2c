"""What every kernel promises, checked on a domain: for kernels of ours and for those of others."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.conformance import Checklist, Conformance
from kernelmdp.domains import Domain
from kernelmdp.errors import KernelTextError
from kernelmdp.kernels.base import Kernel
from kernelmdp.kernels.text import kernel as kernel_of

#: Points at which the kernel is looked at, and frequencies drawn from its spectral law.
POINTS, FREQUENCIES = 60, 4000
#: Round-off that is no broken promise, as a share of the variance.
SLACK = 1e-8
#: Standard errors that a mean over frequencies may be off by.
ERRORS = 6.0


def check_kernel(kernel: Kernel, domain: Domain) -> Conformance:
    """Check a kernel against what is promised of kernels, at points spread over a domain.

    Raises ``ConformanceError`` at the first promise that is broken. A check at finitely many points
    proves nothing; it finds most mistakes.

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
    x = jnp.asarray(domain.spread(POINTS)[:POINTS], float)
    K = np.asarray(bound(x))
    variances = np.asarray(bound.diagonal(x))
    constants = kernel.constants(domain)
    size = SLACK * max(float(variances.max()), 1e-300)
    checklist = Checklist()
    off = float(np.abs(K - K.T).max())
    checklist.require("k(x, y) = k(y, x)", bool(off <= size), f"a difference of {off:.3g}")
    least = float(np.linalg.eigvalsh((K + K.T) / 2).min())
    checklist.require(
        "a matrix of k has no negative eigenvalue", least >= -len(x) * size, f"{least:.3g}"
    )
    _variances(checklist, K, variances, constants.variance_bound, size)
    _distances(checklist, np.asarray(x), K, constants)
    _features(checklist, bound, x, K, size)
    _spectrum(checklist, bound, x, K)
    _text(checklist, kernel, bound, x, K, domain)
    return checklist.result(str(kernel))


def _variances(
    checklist: Checklist, K: np.ndarray, variances: np.ndarray, bound: float, size: float
) -> None:
    promise = "the variance is k(x, x), and at most its bound"
    off = float(np.abs(np.diag(K) - variances).max())
    kept = off <= size and bool(variances.max() <= bound + size)
    checklist.require(promise, kept, f"{off:.3g} apart, {variances.max():.3g} of {bound:.3g}")


def _distances(checklist: Checklist, x: np.ndarray, K: np.ndarray, constants: Any) -> None:
    promise = "distances of features are at most what the modulus and Λ allow"
    if math.isinf(constants.lipschitz) and math.isinf(constants.modulus(np.ones(x.shape[1]))):
        return checklist.skip(promise, "the kernel says nothing of them")
    squares = np.diag(K)[:, None] + np.diag(K)[None, :] - 2 * K
    for i, j in np.argwhere(np.triu(np.ones_like(K), 1)):
        allowed = min(
            constants.modulus(np.abs(x[i] - x[j])),
            constants.lipschitz * np.linalg.norm(x[i] - x[j]),
        )
        apart = math.sqrt(max(float(squares[i, j]), 0.0))
        if apart > allowed * (1 + 1e-9) + math.sqrt(SLACK):
            return checklist.require(
                promise, False, f"{apart:.3g} > {allowed:.3g} at {x[i]}, {x[j]}"
            )
    return checklist.require(promise, True, "")


def _features(checklist: Checklist, kernel: Kernel, x: Any, K: np.ndarray, size: float) -> None:
    promise = "features multiply to k"
    if math.isinf(kernel.feature_count(x.shape[1])):
        return checklist.skip(promise, "infinitely many")
    rows = np.asarray(jax.vmap(kernel.features)(x))
    off = float(np.abs(rows @ rows.T - K).max())
    return checklist.require(promise, off <= 100 * size, f"a difference of {off:.3g}")


def _spectrum(checklist: Checklist, kernel: Kernel, x: Any, K: np.ndarray) -> None:
    promise = "draws from the spectral law average to k"
    if not kernel.stationary:
        return checklist.skip(promise, "not stationary")
    omega = kernel.frequencies(FREQUENCIES, x.shape[1], key=jax.random.key(0))
    waves = np.cos(np.asarray((x - x[:1]) @ omega.T)) * K[0, 0]
    off = np.abs(waves.mean(axis=1) - K[:, 0])
    far = ERRORS * (waves.std(axis=1) / math.sqrt(FREQUENCIES) + SLACK)
    return checklist.require(promise, bool((off <= far).all()), f"{off.max():.3g} off")


def _text(
    checklist: Checklist, kernel: Kernel, bound: Kernel, x: Any, K: np.ndarray, domain: Domain
) -> None:
    promise = "the text form reads back as the kernel"
    try:
        again = kernel_of(str(kernel))
    except KernelTextError:
        return checklist.skip(promise, "the grammar of kernels/text.py does not know it")
    off = float(np.abs(np.asarray(again.bind(domain.names)(x)) - K).max())
    return checklist.require(promise, off == 0.0, f"a difference of {off:.3g}")
