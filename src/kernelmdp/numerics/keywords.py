"""Suggest the right keyword where a function or class gets one that it does not have."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from kernelmdp.numerics.checks import with_suggestion

C = TypeVar("C", bound=Callable[..., Any])

#: Keywords that people know from Stable-Baselines3, and what they do here.
HABITS = {
    ("learn", "total_timesteps"): "pass episodes: learning is counted in episodes",
    ("predict", "deterministic"): "leave it out, as predict never explores",
    ("predict", "state"): "leave it out: pass the period instead",
}


def suggests_keywords(target: C) -> C:
    """Decorate a function or class so that a misspelt keyword is a TypeError with a suggestion.

    Python says only that the keyword is unexpected, before version 3.13.

    Args:
        target: The function, or a class with a constructor of its own.

    Returns:
        The function with the check, or the same class.

    >>> @suggests_keywords
    ... def wait(seconds=1.0):
    ...     return seconds
    >>> wait(second=2)
    Traceback (most recent call last):
    TypeError: wait() has no keyword 'second'; did you mean 'seconds'?
    """
    if isinstance(target, type):
        target.__init__ = _checked(target.__init__, target.__name__)
        return cast(C, target)
    return cast(C, _checked(target, target.__name__))


def _checked(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    parameters = inspect.signature(function).parameters
    known = [each for each in parameters if each not in ("self", "cls")]

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        for keyword in keywords:
            if keyword not in parameters:
                habit = HABITS.get((name, keyword))
                text = with_suggestion(keyword, known) if habit is None else f"{keyword!r}; {habit}"
                raise TypeError(f"{name}() has no keyword {text}")
        return function(*arguments, **keywords)

    return call
