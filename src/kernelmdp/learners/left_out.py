"""How well a smooth regression predicts the rows that it is not given."""

import numpy as np
from jaxtyping import Float

#: Lengthscales, as shares of the root of the median squared distance of two rows.
LENGTHSCALES = (0.3, 1.0, 3.0)
#: Noise variances, as shares of the variance of the targets.
NOISES = (1e-4, 1e-2, 1e-1, 1.0)
#: Variance of the linear part. It is large beside the other part, whose variance is 1.
LINEAR_VARIANCE = 10.0


def left_out_errors(
    targets: Float[np.ndarray, "n p"],
    inputs: Float[np.ndarray, "n d"],
    linear: Float[np.ndarray, "n k"],
) -> Float[np.ndarray, " p"]:
    """Compute mean squared errors of each row, as all other rows predict it.

    The regression is a Gaussian process with a linear kernel and a squared exponential one. Of some
    lengthscales and noise variances, the best are taken for each column.

    Args:
        targets: What is predicted.
        inputs: Inputs of both kernels.
        linear: Inputs of the linear kernel only.

    Returns:
        The error of each column of the targets, in its unit squared.

    >>> x = np.linspace(0, 6, 60)[:, None]
    >>> bool(left_out_errors(np.sin(x), x, x)[0] < 1e-6)
    True
    """
    inputs = _standard(inputs)
    columns = np.concatenate([np.ones((len(targets), 1)), inputs, _standard(linear)], axis=1)
    centred, sizes = targets - targets.mean(axis=0), targets.std(axis=0)
    scaled = centred / np.maximum(sizes, 1e-300)
    squares = ((inputs[:, None, :] - inputs[None, :, :]) ** 2).sum(axis=-1)
    typical = np.median(squares[squares > 0]) if (squares > 0).any() else 1.0
    straight = LINEAR_VARIANCE * (columns @ columns.T) / columns.shape[1]
    best = np.full(targets.shape[1], np.inf)
    for lengthscale in LENGTHSCALES:
        smooth = np.exp(-squares / (2 * lengthscale**2 * typical))
        values, vectors = np.linalg.eigh(straight + smooth)
        for noise in NOISES:
            # The error of row i, without it, is (A y)_i / A_ii with A the inverse of K + noise.
            inverse = (vectors / (np.maximum(values, 0.0) + noise)) @ vectors.T
            errors = (inverse @ scaled) / np.diag(inverse)[:, None]
            best = np.minimum(best, np.mean(errors**2, axis=0))
    return best * sizes**2


def _standard(columns: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and variance 1. Constant ones are 0."""
    sizes = columns.std(axis=0)
    flat = sizes <= 1e-12 * np.abs(columns).max(axis=0, initial=0.0)
    return np.where(flat, 0.0, (columns - columns.mean(axis=0)) / np.where(flat, 1.0, sizes))
