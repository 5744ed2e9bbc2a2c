"""Call other people's environments: their exceptions and bad rewards become errors of ours."""

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from kernelmdp.errors import DataError, KernelMDPError


def environment_name(env: gymnasium.Env[Any, Any]) -> str:
    """Name an environment.

    Args:
        env: The environment.

    Returns:
        Its id, or the name of its class if it has none.

    >>> environment_name(gymnasium.make("CartPole-v1"))
    'CartPole-v1'
    """
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__


def call_environment(
    env: gymnasium.Env[Any, Any],
    where: str,
    method: Callable[..., Any],
    *values: Any,
    **options: Any,
) -> Any:
    """Call a method of an environment. Its exceptions become errors that name the step.

    Args:
        env: The environment.
        where: The step, for error messages.
        method: The method.
        *values: Its arguments.
        **options: Its keyword arguments.

    Returns:
        What the method returns.

    Raises:
        KernelMDPError: If the method raises an exception.
    """
    try:
        return method(*values, **options)
    except KernelMDPError:
        raise
    except Exception as error:
        message = " ".join(str(error).split()) or "no message"
        raise KernelMDPError(
            f"env: {environment_name(env)} raised {type(error).__name__} {where}: {message}"
        ) from error


def checked_reward(reward: Any, where: str) -> float:
    """Convert a reward to a finite number.

    Args:
        reward: The reward.
        where: The step, for error messages.

    Returns:
        The number.

    Raises:
        DataError: If it is none.

    >>> checked_reward(np.float32(0.5), "after step 0")
    0.5
    """
    try:
        number = np.asarray(reward, dtype=float).item()
    except (TypeError, ValueError):
        raise DataError("reward", "a number", f"{reward!r} {where}") from None
    if not math.isfinite(number):
        raise DataError("reward", "a finite number", f"{number} {where}")
    return number
