"""A warning for tasks where one given kernel keeps the other one from being fitted."""

import warnings
from collections.abc import Iterable

from kernelmdp.errors import ApproximationWarning

#: The settings of the two kernels, each with the other one.
OTHER = {"reward_kernel": "transition_kernel", "transition_kernel": "reward_kernel"}


def note_fixed_kernel(given: Iterable[str]) -> None:
    """Warn if one of two kernels is given where both would have been fitted.

    Args:
        given: The names of the settings that are given.

    Warns:
        ApproximationWarning: If there is one. Lengthscales of the other are then a guess.
    """
    names = list(given)
    if len(names) != 1:
        return
    warnings.warn(
        f"{names[0]} is given, so no kernel is fitted, and {OTHER[names[0]]} is a default with "
        f"guessed lengthscales: pass {OTHER[names[0]]} too, or kernel='auto' to fit both from "
        "where you start them",
        ApproximationWarning,
        stacklevel=5,
    )
