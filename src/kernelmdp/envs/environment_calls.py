"""Call other people's environments: their exceptions and bad rewards become errors of ours."""

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from kernelmdp.errors import ArgumentError, DataError, KernelMDPError


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


def require_environment(env: Any) -> None:
    """Check that an object is an environment of Gymnasium, with both of its spaces.

    Args:
        env: The object.

    Raises:
        ArgumentError: If it is none. The message says what to do.

    >>> require_environment(gymnasium.make("CartPole-v1"))
    """
    if not isinstance(env, gymnasium.Env):
        expected = "a gymnasium.Env or the id of one"
        if hasattr(env, "reset") and hasattr(env, "step"):
            expected += (
                "; derive your class from gymnasium.Env, and wrap one of the old package gym with "
                "gymnasium.make('GymV26Environment-v0', env=env) after importing shimmy"
            )
        raise ArgumentError("env_or_id", expected, repr(env))
    for kind in ("observation", "action"):
        space = getattr(env, f"{kind}_space", None)
        if not isinstance(space, gymnasium.Space):
            expected = (
                f"an attribute {kind}_space, such as gymnasium.spaces.Box(low, high, (n,)), "
                "set in the class or in __init__"
            )
            raise ArgumentError("env", expected, repr(space))


def reset_environment(env: gymnasium.Env[Any, Any], **options: Any) -> Any:
    """Reset an environment, and check what it returns.

    Args:
        env: The environment.
        **options: ``seed`` and ``options``.

    Returns:
        The first observation.

    Raises:
        ArgumentError: If the environment has the old interface, in which ``reset`` has no seed or
            returns the observation alone.

    >>> reset_environment(gymnasium.make("CartPole-v1"), seed=0).shape
    (4,)
    """
    try:
        returned = call_environment(env, "at the start", env.reset, **options)
    except KernelMDPError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        expected = "a method reset(self, *, seed=None, options=None)"
        raise ArgumentError("env", expected, f"another one ({error})") from None
    if not (isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], dict)):
        expected = "reset to return (observation, info), where info may be {}"
        raise ArgumentError("env", expected, f"a {type(returned).__name__}")
    return returned[0]


def step_environment(env: gymnasium.Env[Any, Any], where: str, action: Any) -> Any:
    """Play one step of an environment, and check what it returns.

    Args:
        env: The environment.
        where: The step, for error messages.
        action: The action.

    Returns:
        Observation, reward, terminated, truncated and info.

    Raises:
        ArgumentError: If the environment returns something else, such as the four values of the
            old interface.

    >>> env = gymnasium.make("CartPole-v1")
    >>> _ = env.reset(seed=0)
    >>> len(step_environment(env, "after step 0", 1))
    5
    """
    returned = call_environment(env, where, env.step, action)
    if not (isinstance(returned, tuple) and len(returned) == 5):
        expected = "step to return (observation, reward, terminated, truncated, info)"
        got = f"{len(returned)} values" if isinstance(returned, tuple) else type(returned).__name__
        raise ArgumentError("env", expected, f"{got} {where}")
    return returned


def time_limit(env: gymnasium.Env[Any, Any]) -> int | None:
    """Return the time limit of an environment: of its id, or of a ``TimeLimit`` around it.

    Args:
        env: The environment.

    Returns:
        The number of steps; None if there is no limit.

    >>> time_limit(gymnasium.wrappers.TimeLimit(gymnasium.make("CartPole-v1"), 30))
    30
    """
    limits = [env.spec.max_episode_steps] if env.spec is not None else []
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, gymnasium.wrappers.TimeLimit):
            limits.append(env._max_episode_steps)
        env = env.env
    return min((limit for limit in limits if limit is not None), default=None)


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
