"""The oracle: Gaussian-process regression written out densely in NumPy, rows (t, i) for outputs."""

import numpy as np


class Dense:
    """Posterior of f with kernel matrix K after rows y with noise variances (a vector)."""

    def __init__(self, kernel, points, targets, noise, queries, mean=None):
        gram = lambda a, b: np.asarray(kernel(np.asarray(a), np.asarray(b)))  # noqa: E731
        targets = np.asarray(targets, dtype=float)
        outputs = 1 if targets.ndim == 1 else targets.shape[1]
        zero = lambda z: np.zeros((len(z), outputs))  # noqa: E731
        mean = mean or zero
        rows = np.tile(np.broadcast_to(np.asarray(noise, dtype=float), outputs), len(points))
        K = gram(points, points)
        residual = targets.reshape(len(points), outputs) - mean(points)
        across = gram(queries, points)
        solved = np.linalg.solve(K + np.diag(rows), np.c_[residual.reshape(-1), across.T])
        self.mean = (across @ solved[:, 0]).reshape(len(queries), outputs) + mean(queries)
        self.covariance = gram(queries, queries) - across @ solved[:, 1:]
        self.variance = np.diag(self.covariance).reshape(len(queries), outputs)
        blocks = self.covariance.reshape(len(queries), outputs, len(queries), outputs)
        self.output_covariance = np.stack([blocks[t, :, t, :] for t in range(len(queries))])
        whitened = K / np.sqrt(rows[:, None] * rows[None, :])
        self.gain = 0.5 * np.linalg.slogdet(np.eye(len(K)) + whitened)[1]
        if targets.ndim == 1:
            self.mean, self.variance = self.mean[:, 0], self.variance[:, 0]


class Projected:
    """The projected process ("DTC") on centres U, one output after another.

    Q(a, b) = K(a, U) K(U, U)⁻¹ K(U, b) stands for K between data and anything; the prior at the
    queries keeps what Q leaves out. ``jitter`` is added to K(U, U).
    """

    def __init__(self, kernels, centres, jitters, points, targets, noises, queries):
        n, m = len(queries), len(kernels)
        self.mean, self.covariances, self.gain = np.zeros((n, m)), np.zeros((m, n, n)), 0.0
        for i, kernel in enumerate(kernels):
            inside = np.asarray(kernel(centres)) + jitters[i] * np.eye(len(centres))
            data, here = np.asarray(kernel(points, centres)), np.asarray(kernel(queries, centres))
            low = data @ np.linalg.solve(inside, data.T)
            across = here @ np.linalg.solve(inside, data.T)
            solved = np.linalg.solve(
                low + np.diag(noises[:, i]), np.c_[np.asarray(targets)[:, i], across.T]
            )
            self.mean[:, i] = across @ solved[:, 0]
            self.covariances[i] = np.asarray(kernel(queries)) - across @ solved[:, 1:]
            scaled = low / np.sqrt(np.outer(noises[:, i], noises[:, i]))
            self.gain += 0.5 * np.linalg.slogdet(np.eye(len(low)) + scaled)[1]
        self.variance = np.stack([np.diag(c) for c in self.covariances], axis=1)
        blocks = np.einsum("mnk,mj->nmkj", self.covariances, np.eye(m))
        self.covariance = blocks.reshape(n * m, n * m)
        self.output_covariance = np.stack([np.diag(row) for row in self.variance])


def assert_matches(posterior, oracle, queries, tolerance):
    mean, std = posterior.predict(queries)
    np.testing.assert_allclose(mean, oracle.mean, atol=tolerance, rtol=0)
    np.testing.assert_allclose(np.asarray(std) ** 2, oracle.variance, atol=tolerance, rtol=0)
    np.testing.assert_allclose(
        posterior.covariance(queries), oracle.covariance, atol=tolerance, rtol=0
    )
    np.testing.assert_allclose(
        posterior.output_covariance(queries), oracle.output_covariance, atol=tolerance, rtol=0
    )
    assert abs(posterior.information_gain - oracle.gain) < max(tolerance, 1e-9)
