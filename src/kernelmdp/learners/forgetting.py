"""Forgetting old episodes, for plants that change."""

import numpy as np
from jaxtyping import Float, Int

#: An episode whose weight is below this is left out. What is left counts as a twentieth of a new
#: episode or more, and the data do not grow without end.
LEAST_WEIGHT = 0.05


def age_weights(ages: Int[np.ndarray, " n"], forgetting: float) -> Float[np.ndarray, " n"]:
    """Compute the weights of episodes by their age.

    A row of weight w counts as one whose noise variance is larger by 1/w.

    Args:
        ages: How many episodes came later.
        forgetting: A number of episodes of at least 1, a share below 1 that is lost with each later
            episode, or 0.

    Returns:
        1 for episodes among the last ones and 0 for older ones; or (1 − share)^age, and 0 from
        where that is below ``LEAST_WEIGHT``.

    >>> age_weights(np.array([3, 2, 1, 0]), 2.0).tolist()
    [0.0, 0.0, 1.0, 1.0]
    >>> age_weights(np.array([20, 1, 0]), 0.25).tolist()
    [0.0, 0.75, 1.0]
    """
    if forgetting == 0:
        return np.ones(len(ages))
    if forgetting >= 1:
        return (ages < forgetting).astype(float)
    weights = (1 - forgetting) ** ages
    return np.where(weights >= LEAST_WEIGHT, weights, 0.0)
