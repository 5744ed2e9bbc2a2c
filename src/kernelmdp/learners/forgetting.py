"""Forgetting how a plant was, for plants that change.

Old episodes lose weight in the regression of the motion: a row of weight w counts as one whose
noise variance is larger by 1/w. Where the plant was since, new rows decide. Where it was not, old
rows still tell more than nothing. Rewards are not forgotten: what is wanted does not wear.
"""

import numpy as np
from jaxtyping import Float, Int

#: Where weights end. Ten thousand old rows then count as one new row, but noise is often so small
#: that they still tell of regions that were not visited since.
LEAST_WEIGHT = 1e-4
#: Kernels are fitted to rows of at least this weight. Older ones contradict new ones, and a fit
#: would take the difference for noise.
FIT_WEIGHT = 0.05


def age_weights(ages: Int[np.ndarray, " n"], forgetting: float) -> Float[np.ndarray, " n"]:
    """Compute the weights of episodes by their age.

    Args:
        ages: How many episodes came later.
        forgetting: A number of episodes of at least 1, a share below 1 that is lost with each later
            episode, or 0.

    Returns:
        1 for episodes among the last ones and 0 for older ones; or (1 − share)^age, and at least
        ``LEAST_WEIGHT``.

    >>> age_weights(np.array([3, 2, 1, 0]), 2.0).tolist()
    [0.0, 0.0, 1.0, 1.0]
    >>> age_weights(np.array([90, 1, 0]), 0.25).tolist()
    [0.0001, 0.75, 1.0]
    """
    if forgetting == 0:
        return np.ones(len(ages))
    if forgetting >= 1:
        return (ages < forgetting).astype(float)
    return np.maximum((1 - forgetting) ** ages, LEAST_WEIGHT)
