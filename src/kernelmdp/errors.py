"""Errors of the library: each names the argument, what was expected and what came.

>>> import kernelmdp as km
>>> try:
...     km.make("riverswin")
... except km.errors.ArgumentError as error:
...     print(error.got)
'riverswin'; did you mean 'riverswim'?
"""

from typing import Any


class KernelMDPError(Exception):
    """Base of every error this library raises on purpose.

    >>> issubclass(ShapeError, KernelMDPError)
    True
    """


class ArgumentError(KernelMDPError, ValueError):
    """An argument is not what the function needs; nothing was changed.

    >>> print(ArgumentError("noise", "a positive number", -1))
    noise: expected a positive number, got -1
    """

    def __init__(self, argument: str, expected: str, got: Any) -> None:
        self.argument = argument
        self.expected = expected
        self.got = got
        super().__init__(f"{argument}: expected {expected}, got {got}")


class ShapeError(ArgumentError):
    """An array has the wrong shape.

    >>> print(ShapeError("start", "a state of 2 numbers", "shape (3,)"))
    start: expected a state of 2 numbers, got shape (3,)
    """


class DataError(ArgumentError):
    """Data that is not finite.

    >>> print(DataError("rewards", "finite numbers", "nan at step 3"))
    rewards: expected finite numbers, got nan at step 3
    """


class DomainError(ArgumentError):
    """A point lies outside the domain on which a kernel was compiled.

    >>> print(DomainError("points", "points inside the box", "2.0"))
    points: expected points inside the box, got 2.0
    """


class KernelTextError(ArgumentError):
    """A kernel text does not parse; ``position`` is the offset of the first wrong character.

    >>> print(KernelTextError("se(", 3, "a number", "the end"))
    text: expected a number, got the end at position 3
      se(
         ^
    """

    def __init__(self, text: str, position: int, expected: str, got: str) -> None:
        self.position = position
        pointer = " " * position + "^"
        super().__init__("text", expected, f"{got} at position {position}\n  {text}\n  {pointer}")


class UnknownPropertyError(KernelMDPError):
    """A kernel was asked for something it does not have, such as features of infinite rank.

    >>> print(UnknownPropertyError("se(1.0) has no finite feature map"))
    se(1.0) has no finite feature map
    """


class CompilationError(KernelMDPError):
    """A kernel could not be compiled to the rank and tolerance asked for.

    >>> issubclass(CompilationError, KernelMDPError)
    True
    """


class PositiveDefiniteError(KernelMDPError, ArithmeticError):
    """A matrix lost positive definiteness; the object that was asked stays valid.

    >>> issubclass(PositiveDefiniteError, ArithmeticError)
    True
    """


class CheckpointError(KernelMDPError):
    """A file is not a saved agent, or one of another problem; nothing was changed.

    >>> print(CheckpointError("agent.kmdp: saved for another problem"))
    agent.kmdp: saved for another problem
    """


class StorageError(KernelMDPError):
    """A folder cannot be written to, such as on a full disk; what it holds is as it was.

    >>> print(StorageError("runs/x: no space is left"))
    runs/x: no space is left
    """


class ConformanceError(KernelMDPError, AssertionError):
    """A kernel, planner, environment or agent breaks a promise that is made of all of its kind.

    >>> print(ConformanceError("the same seed gives the same run", "other states"))
    promised: the same seed gives the same run; found: other states
    """

    def __init__(self, promise: str, found: str) -> None:
        self.promise = promise
        self.found = found
        super().__init__(f"promised: {promise}; found: {found}")


class ApproximationWarning(UserWarning):
    """A result is approximate in a way the caller may not expect.

    >>> issubclass(ApproximationWarning, UserWarning)
    True
    """


class RecoveryWarning(UserWarning):
    """A run had been ended in the middle; what was found of it, and what is played again.

    >>> issubclass(RecoveryWarning, UserWarning)
    True
    """
