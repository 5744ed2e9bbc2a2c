"""Convert what users pass as settings: rewards, functions by name, bounds and noise."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelmdp.errors import ArgumentError, KernelMDPError
from kernelmdp.mdp import Noise
from kernelmdp.mdp.noise import as_noise
from kernelmdp.numerics.checks import float_array, with_suggestion
from kernelmdp.registry import import_object, is_reference


def as_reward(reward: object, truth: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Convert the setting ``reward`` to a function.

    Args:
        reward: "learned", "known" or a function.
        truth: The environment's mean reward, if it is known.

    Returns:
        None for "learned", the environment's function for "known", or the user's function.

    Raises:
        ArgumentError: If it is none of these, or "known" where the reward is not known.
    """
    if callable(reward):
        return reward
    if reward == "learned":
        return None
    if reward == "known" and truth is not None:
        return truth
    expected = "'learned', a function of points (n, d), or 'known' where it is"
    got = repr(reward) if reward == "known" else with_suggestion(reward, ("learned", "known"))
    raise ArgumentError("reward", expected, got)


def imported(value: object, kind: str) -> Any:
    """Import what is given as ``module:Name``, alone or in a list.

    Args:
        value: A setting, such as a kernel or a function.
        kind: Its kind, for error messages.

    Returns:
        The object that is named, made if it is a class. Or what was given.
    """
    if isinstance(value, list | tuple):
        return type(value)(imported(each, kind) for each in value)
    if not (isinstance(value, str) and is_reference(value)):
        return value
    target: Any = import_object(value, kind)
    return target() if isinstance(target, type) else target


def as_bounds(reward_bounds: object) -> tuple[float, float]:
    """Convert the setting ``reward_bounds``.

    Args:
        reward_bounds: Two numbers.

    Returns:
        The lower and the higher one.

    Raises:
        ArgumentError: If they are not two numbers in this order.
    """
    bounds = np.asarray(float_array(reward_bounds, "reward_bounds"))
    if bounds.shape != (2,) or not bounds[0] < bounds[1]:
        raise ArgumentError("reward_bounds", "two numbers, the lower one first", reward_bounds)
    return float(bounds[0]), float(bounds[1])


def as_noise_law(noise: object) -> Noise:
    """Convert the setting ``noise``.

    Args:
        noise: A noise law, or standard deviations.

    Returns:
        The law.

    Raises:
        ArgumentError: If it is neither.
    """
    try:
        return as_noise(noise)
    except KernelMDPError:
        raise
    except (TypeError, ValueError):
        raise ArgumentError("noise", "a noise law or a standard deviation", repr(noise)) from None
