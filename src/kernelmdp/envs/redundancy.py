"""Find coordinates of observations that tell nothing, or only what another one tells."""

import numpy as np

#: How far a coordinate may be from a multiple of another one, as a share of its range, and still
#: repeat it. It allows for rounding to 32 bits.
ROUNDING = 1e-6
#: Different values that a coordinate must have had to repeat another one. Any two points lie on a
#: line, and a goal has one value in each episode.
LEAST_VALUES = 3


def constant_coordinates(observations: np.ndarray) -> list[int]:
    """Find the coordinates that never change.

    Args:
        observations: Observations as rows, (n, m).

    Returns:
        Their numbers.

    >>> constant_coordinates(np.array([[1.0, 5.0], [2.0, 5.0]]))
    [1]
    """
    return [int(axis) for axis in np.flatnonzero(np.ptp(observations, axis=0) == 0)]


def repeated_coordinates(observations: np.ndarray) -> list[tuple[int, int, float, float]]:
    """Find the coordinates that are multiples of an earlier one, up to a constant.

    Coordinates with fewer than three different values are left out.

    Args:
        observations: Observations as rows, (n, m).

    Returns:
        For each its number i, the number j < i of the first coordinate that it repeats, and the
        factor a and the constant b of x_i = a x_j + b.

    >>> x = np.array([0.0, 1.0, 4.0])
    >>> repeated_coordinates(np.stack([x, x**2, 1 - 2 * x], axis=1))
    [(2, 0, -2.0, 1.0)]
    """
    ranges = np.ptp(observations, axis=0)
    ranges[[len(np.unique(column)) < LEAST_VALUES for column in observations.T]] = 0.0
    repeated: list[tuple[int, int, float, float]] = []
    for i in np.flatnonzero(ranges > 0):
        for j in np.flatnonzero(ranges[:i] > 0):
            # The factor that the extremes of x_j suggest. A fit would give the same, less exactly.
            first, last = observations[:, j].argmin(), observations[:, j].argmax()
            factor = (observations[last, i] - observations[first, i]) / ranges[j]
            constant = observations[first, i] - factor * observations[first, j]
            error = observations[:, i] - (factor * observations[:, j] + constant)
            if np.abs(error).max() <= ROUNDING * ranges[i]:
                repeated.append((int(i), int(j), float(factor), float(constant)))
                break
    return repeated


def relation(name: str, factor: float, constant: float) -> str:
    """Say what a coordinate is in terms of another one.

    Args:
        name: The name of the other one, x.
        factor: a.
        constant: b.

    Returns:
        The words for a x + b. Numbers are rounded.

    >>> relation("speed", -1.0, 0.0), relation("speed", 2.0, 0.5)
    ('minus speed', '2 times speed plus 0.5')
    """
    multiples = {"1": name, "-1": f"minus {name}"}
    multiple = multiples.get(f"{factor:.4g}", f"{factor:.4g} times {name}")
    if f"{constant:.4f}" in ("0.0000", "-0.0000"):
        return multiple
    return f"{multiple} {'plus' if constant > 0 else 'minus'} {abs(constant):.4g}"
