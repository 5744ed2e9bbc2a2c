"""Immutable pytrees, a ``jit`` for them, changed copies of them, and evaluation in chunks."""

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from kernelmdp.numerics.kept_programs import KeptProgram
from kernelmdp.numerics.tracing import is_traced

M = TypeVar("M")
P = ParamSpec("P")
R = TypeVar("R")

#: Major and minor version of JAX.
JAX_VERSION = tuple(map(int, jax.__version__.split(".")[:2]))
#: Types of the leaves that ``jit`` passes to the program; all other leaves are constants in it.
ARRAYS = (jax.Array, np.ndarray, np.generic)
#: Number of compiled programs that each function keeps, one for each structure of arguments. It
#: bounds the memory of a process that makes many agents, one after another.
PROGRAM_CACHE_SIZE = 16
#: Compiler options for programs that spend their time in matrix libraries. Other versions of JAX
#: may not know them, and an unknown option is an error.
MATRIX_COMPILATION = (
    {"xla_cpu_use_fusion_emitters": False, "xla_cpu_prefer_vector_width": "512"}
    if JAX_VERSION == (0, 10)
    else {}
)
#: Compiler options for programs with little arithmetic.
QUICK_COMPILATION = {"xla_backend_optimization_level": 0, **MATRIX_COMPILATION}


class Module(eqx.Module):
    """A frozen dataclass that is a pytree, as ``equinox.Module`` is, with plain methods.

    Equinox wraps every bound method into a pytree. At each call this takes longer than the
    arithmetic of a small update, so this class does without it.
    """

    if not TYPE_CHECKING:
        __getattribute__ = object.__getattribute__


def jit(
    function: Callable[P, R],
    *,
    compiler_options: Mapping[str, Any] | None = None,
    stored: bool = False,
) -> Callable[P, R]:
    """Compile a function whose arguments are any pytrees.

    Arrays are traced. All other leaves are constants of the program, so a new value of one compiles
    a new program. This is ``equinox.filter_jit`` at a third of its cost per call, and it does not
    wait for the result.

    The function keeps the programs for the last ``PROGRAM_CACHE_SIZE`` combinations of structure
    and constants. So a process that makes many agents, one after another, does not grow.

    Args:
        function: The function. Leaves of its arguments that are not arrays must be hashable. Its
            result must hold arrays only.
        compiler_options: Options of the compiler. They have no effect on a call within another
            compiled function.
        stored: Whether programs are kept whole, which saves the time of tracing in a new process. A
            call takes some microseconds longer.

    Returns:
        The compiled function, with the same signature.
    """
    knows_level = stored or bool(compiler_options)

    @functools.lru_cache(maxsize=PROGRAM_CACHE_SIZE)
    def program(
        structure: Any, constants: tuple[tuple[bool, Any], ...], outermost: bool
    ) -> Callable[..., Any]:
        def arguments(arrays: list[Any]) -> Any:
            remaining = iter(arrays)
            leaves = [next(remaining) if is_array else leaf for is_array, leaf in constants]
            return jax.tree.unflatten(structure, leaves)

        def run(arrays: list[Any]) -> Any:
            args, kwargs = arguments(arrays)
            return function(*args, **kwargs)

        run.__name__ = run.__qualname__ = function.__name__
        options = dict(compiler_options or {}) if outermost else {}
        if not (stored and outermost):
            return jax.jit(run, compiler_options=options or None)

        return KeptProgram(f"{function.__module__}.{function.__name__}", run, arguments, options)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = jax.tree.flatten((args, kwargs))
        arrays = [leaf for leaf in leaves if isinstance(leaf, ARRAYS)]
        constants = tuple((True, None) if isinstance(x, ARRAYS) else (False, x) for x in leaves)
        # Within another compiled function a new array is traced.
        outermost = not (knows_level and isinstance(jnp.asarray(0.0), jax.core.Tracer))
        return program(structure, constants, outermost)(arrays)

    return call


def kept_jit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a large function, and keep its programs whole between processes.

    Args:
        function: As for ``jit``.

    Returns:
        The compiled function, with the same signature.
    """
    return jit(function, stored=True)


def quick_jit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that does little arithmetic, such as one that draws a few numbers.

    The compiler does not optimise. It takes a quarter of the time, and loops run several times
    slower. Calls of matrix libraries are as fast as ever.

    Args:
        function: As for ``jit``.

    Returns:
        The compiled function, with the same signature.
    """
    return jit(function, compiler_options=QUICK_COMPILATION, stored=True)


def small_jit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a small function of numbers, arrays and keys that is called in every episode.

    The compiler does not optimise. A call takes a tenth of the time of the others here, because
    numbers are not constants of the program and the program is not kept whole.

    Args:
        function: The function. Its arguments are numbers, arrays and keys. Inside another program
            at least one of them is traced.

    Returns:
        The compiled function, with the same signature.
    """
    # JAX refuses compiler options inside another program.
    inside, outside = jax.jit(function), jax.jit(function, compiler_options=QUICK_COMPILATION)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return (inside if is_traced(args, kwargs) else outside)(*args, **kwargs)

    return call


def matrix_jit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that spends its time in matrix libraries.

    The compiler takes half of the time, because it fuses loops less well.

    Args:
        function: As for ``jit``.

    Returns:
        The compiled function, with the same signature.
    """
    return jit(function, compiler_options=MATRIX_COMPILATION, stored=True)


def replace_fields(module: M, **fields: Any) -> M:
    """Return a copy of a module with some fields changed, without running its constructor.

    Use it instead of ``dataclasses.replace`` in steps taken every episode: a constructor costs more
    than the arithmetic of an update. The new values are not checked.

    Args:
        module: The module.
        **fields: New values of fields, by name.

    Returns:
        The changed copy. Fields that are not named are shared with ``module``.

    Raises:
        AttributeError: If the module has no field of a name.
    """
    # ``copy.copy`` would not do: Equinox keeps what its ``__new__`` makes until a constructor runs.
    copied = object.__new__(type(module))
    copied.__dict__.update(module.__dict__)
    for name, value in fields.items():
        if name not in copied.__dict__:
            raise AttributeError(f"{type(module).__name__} has no field {name!r}")
        copied.__dict__[name] = value
    return copied


def map_chunks(function: Callable[[jax.Array], Any], points: jax.Array, size: int) -> Any:
    """Return ``function(points)``, evaluated on chunks of at most ``size`` rows.

    New large arrays cost more in page faults than the arithmetic that fills them. A loop reuses its
    buffers, which avoids this and bounds memory.

    Args:
        function: Maps rows to a pytree of arrays with as many rows. Rows must be independent.
        points: The rows, (n, ...).
        size: Largest number of rows of a chunk.

    Returns:
        The result of a single call with all rows.
    """
    count = points.shape[0]
    if count <= size:
        return function(points)
    results = lax.map(function, split_into_chunks(points, size))
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:count], results)


def split_into_chunks(points: jax.Array, size: int) -> jax.Array:
    """Return rows in chunks of equal size; the last row is repeated to fill the last chunk.

    Zeros cannot fill it, because they may lie outside a kernel's domain.

    Args:
        points: The rows, (n, ...).
        size: Largest number of rows of a chunk.

    Returns:
        The rows as (chunks, rows of a chunk, ...).
    """
    count = points.shape[0]
    chunks = -(-count // size)
    size = -(-count // chunks)  # Equal sizes keep the number of repeated rows small.
    index = jnp.minimum(jnp.arange(chunks * size), count - 1)
    return points[index].reshape(chunks, size, *points.shape[1:])
