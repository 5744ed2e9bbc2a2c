"""Episodes and steps that the model did not expect."""

import warnings

import numpy as np
from jaxtyping import Bool, Float

from kernelmdp.errors import ApproximationWarning
from kernelmdp.learners.fitted_settings import FittedSettings
from kernelmdp.mdp.prediction_errors import PredictionErrors


def surprising_steps(errors: PredictionErrors, settings: FittedSettings) -> Bool[np.ndarray, " n"]:
    """Find a few steps that were predicted far worse than the rest of their episode.

    A collision with an end stop is one. Smooth kernels can only explain it as a fast change with
    some other coordinate, and then they predict all other steps badly.

    Args:
        errors: The errors of the episode.
        settings: ``surprise_error``, and those that begin with ``outlier``.

    Returns:
        Which steps they are, and those that follow them. If they are not few, the model is at
        fault, and there are none.

    >>> steps = np.array([0.01] * 30 + [2.0, 0.1])
    >>> surprising_steps(PredictionErrors(0.4, 0.4, steps), FittedSettings()).nonzero()[0].tolist()
    [30, 31]
    """
    usual = settings.outlier_factor * float(np.quantile(errors.steps, 0.75))
    surprising = errors.steps > max(settings.surprise_error, usual)
    if np.mean(surprising) > settings.outlier_share:
        return np.zeros(len(surprising), bool)
    return np.convolve(surprising, np.ones(settings.outlier_steps + 1))[: len(surprising)] > 0


def warn_if_surprised(
    errors: PredictionErrors, earlier: Float[np.ndarray, "l k"], settings: FittedSettings
) -> None:
    """Warn if an episode was predicted far worse than the episodes before.

    Args:
        errors: The errors of the episode.
        earlier: Numbers of all episodes before. The first column is the error one step ahead.
        settings: ``surprise_error``, ``surprise_factor`` and ``surprise_memory``.
    """
    recent = earlier[-settings.surprise_memory :, 0]
    usual = max(settings.surprise_factor * float(recent.max(initial=0.0)), settings.surprise_error)
    if len(recent) == settings.surprise_memory and errors.one_step > usual:
        warnings.warn(
            f"the model predicted an episode badly: the error of a step was {errors.one_step:.2g} "
            f"of the change of the state, before that at most {recent.max():.2g}; either the "
            "system has changed, or the episode went where it is not known",
            ApproximationWarning,
            stacklevel=4,
        )


def warn_if_changed(
    deviations: float,
    error: float,
    earlier: Float[np.ndarray, " l"],
    settings: FittedSettings,
) -> None:
    """Warn if an episode is farther from its predictions than uncertainty and noise explain.

    An episode in an unknown region is uncertain, and no reason for a warning. Where the model was
    sure, the plant has changed. Small errors are no reason either: without noise a model is surer
    than it is right.

    Args:
        deviations: How many predicted standard deviations the episode is from its predictions.
        error: Its error one step ahead, as a share of the change of the state.
        earlier: The deviations of all episodes before.
        settings: ``change`` and ``surprise_memory``.
    """
    recent = earlier[-settings.surprise_memory :]
    usual = settings.change.deviations * max(1.0, float(recent.max(initial=0.0)))
    known = len(recent) == settings.surprise_memory
    if known and deviations > usual and error > settings.change.error:
        warnings.warn(
            f"the plant seems to have changed: an episode is {deviations:.0f} standard deviations "
            f"from its predictions, before that at most {recent.max():.1f}; if changes last, "
            "forgetting=0.5 gives old episodes less and less weight",
            ApproximationWarning,
            stacklevel=4,
        )
