"""Errors and warnings of the library.

An error about an argument names the argument, what was expected and what was passed.

>>> import kernelmdp as km
>>> try:
...     km.make("riverswin")
... except km.errors.ArgumentError as error:
...     print(error.got)
'riverswin'; did you mean 'riverswim'?
"""

from typing import Any


class KernelMDPError(Exception):
    """Base class of all errors of this library.

    >>> issubclass(ShapeError, KernelMDPError)
    True
    """


class ArgumentError(KernelMDPError, ValueError):
    """An argument is invalid. Nothing was changed.

    The error has its arguments as attributes.

    Args:
        argument: Name of the argument.
        expected: What was expected, in words.
        got: What was passed instead.

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
    """Data contain NaN or infinity.

    >>> print(DataError("rewards", "finite numbers", "nan at step 3"))
    rewards: expected finite numbers, got nan at step 3
    """


class ObservationError(ArgumentError):
    """A controller cannot act on an observation. Its period and its log are unchanged.

    >>> print(ObservationError("observation", "finite numbers", "nan"))
    observation: expected finite numbers, got nan
    """


class StaleControllerError(KernelMDPError):
    """Nobody asked a controller for an action for longer than its watchdog allows.

    >>> print(StaleControllerError("the controller is stale; call reset()"))
    the controller is stale; call reset()
    """


class DomainError(ArgumentError):
    """A point lies outside the domain on which a kernel was compiled.

    >>> print(DomainError("points", "points inside the box", "2.0"))
    points: expected points inside the box, got 2.0
    """


class KernelTextError(ArgumentError):
    """The text of a kernel cannot be parsed.

    Args:
        text: The text.
        position: Offset of the first wrong character. It is an attribute of the error too.
        expected: What was expected there, in words.
        got: What is there instead.

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
    """A kernel does not have the requested property, such as a finite feature map.

    >>> print(UnknownPropertyError("se(1.0) has no finite feature map"))
    se(1.0) has no finite feature map
    """


class CompilationError(KernelMDPError):
    """A kernel could not be compiled to the requested rank and tolerance.

    >>> issubclass(CompilationError, KernelMDPError)
    True
    """


class PositiveDefiniteError(KernelMDPError, ArithmeticError):
    """A matrix is not positive definite in floating point. The object itself stays valid.

    >>> issubclass(PositiveDefiniteError, ArithmeticError)
    True
    """


class CheckpointError(KernelMDPError):
    """A file is not a saved agent, or is one of another problem. Nothing was changed.

    >>> print(CheckpointError("agent.kmdp: saved for another problem"))
    agent.kmdp: saved for another problem
    """


class StorageError(KernelMDPError):
    """A folder cannot be written to, for example on a full disk. Its files are unchanged.

    >>> print(StorageError("runs/x: no space is left"))
    runs/x: no space is left
    """


class ConformanceError(KernelMDPError, AssertionError):
    """A kernel, planner, environment or agent breaks a promise of its interface.

    The error has its arguments as attributes.

    Args:
        promise: The promise, in words.
        observed: What was observed instead.

    >>> print(ConformanceError("the same seed gives the same run", "other states"))
    promised: the same seed gives the same run; found: other states
    """

    def __init__(self, promise: str, observed: str) -> None:
        self.promise = promise
        self.observed = observed
        super().__init__(f"promised: {promise}; found: {observed}")


class ApproximationWarning(UserWarning):
    """A result is approximate in a way that you may not expect.

    >>> issubclass(ApproximationWarning, UserWarning)
    True
    """


class RecoveryWarning(UserWarning):
    """A run was interrupted. The message says what was recovered and what is repeated.

    >>> issubclass(RecoveryWarning, UserWarning)
    True
    """


class ObservationWarning(UserWarning):
    """A coordinate of the observations tells nothing, repeats another one, or leaves its bounds.

    >>> issubclass(ObservationWarning, UserWarning)
    True
    """


class SafetyWarning(UserWarning):
    """Something that the safety of a run rests on did not hold.

    >>> issubclass(SafetyWarning, UserWarning)
    True
    """
