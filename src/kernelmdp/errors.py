"""Errors of the library: each names the argument, what was expected and what came."""

from typing import Any


class KernelMDPError(Exception):
    """Base of every error this library raises on purpose."""


class ArgumentError(KernelMDPError, ValueError):
    """An argument is not what the function needs; nothing was changed."""

    def __init__(self, argument: str, expected: str, got: Any) -> None:
        self.argument = argument
        self.expected = expected
        self.got = got
        super().__init__(f"{argument}: expected {expected}, got {got}")


class ShapeError(ArgumentError):
    """An array has the wrong shape."""


class DataError(ArgumentError):
    """Data that is not finite."""


class DomainError(ArgumentError):
    """A point lies outside the domain on which a kernel was compiled."""


class KernelTextError(ArgumentError):
    """A kernel text does not parse; ``position`` is the offset of the first wrong character."""

    def __init__(self, text: str, position: int, expected: str, got: str) -> None:
        self.position = position
        pointer = " " * position + "^"
        super().__init__("text", expected, f"{got} at position {position}\n  {text}\n  {pointer}")


class UnknownPropertyError(KernelMDPError):
    """A kernel was asked for something it does not have, such as features of infinite rank."""


class CompilationError(KernelMDPError):
    """A kernel could not be compiled to the rank and tolerance asked for."""


class PositiveDefiniteError(KernelMDPError, ArithmeticError):
    """A matrix lost positive definiteness; the object that was asked stays valid."""


class CheckpointError(KernelMDPError):
    """A file is not a saved agent, or one of another problem; nothing was changed."""


class StorageError(KernelMDPError):
    """A folder cannot be written to, such as on a full disk; what it holds is as it was."""


class ConformanceError(KernelMDPError, AssertionError):
    """An agent breaks one of the promises that are made of all agents."""

    def __init__(self, promise: str, found: str) -> None:
        self.promise = promise
        self.found = found
        super().__init__(f"promised: {promise}; found: {found}")


class ApproximationWarning(UserWarning):
    """A result is approximate in a way the caller may not expect."""


class RecoveryWarning(UserWarning):
    """A run had been ended in the middle; what was found of it, and what is played again."""
