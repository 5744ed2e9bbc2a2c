"""Programs that are kept whole between processes: neither traced nor compiled again.

JAX keeps what it compiled, but a new process traces every function again to find out which program
it is. For large functions this takes longer than reading the program. Here the name of a program is
made from all that it depends on. This is the function and the source of this library, versions of
JAX and others, JAX's settings, and the arguments. Of arrays only shapes and types matter.
Arguments of classes from elsewhere, whose source may change, make no name. JAX then traces them.
"""

import functools
import hashlib
import io
import os
import pathlib
import pickle
import tempfile
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jaxlib
import numpy as np
from jax.experimental.serialize_executable import deserialize_and_load, serialize

from kernelmdp.numerics.compiled_programs import COMPILATIONS, processor_name
from kernelmdp.numerics.factorisation import cholesky

#: Packages whose classes and functions may be part of an argument. Their versions, or the source of
#: this library, are part of a program's name.
KNOWN_PACKAGES = frozenset({"kernelmdp", "jax", "jaxlib", "numpy", "equinox", "ml_dtypes"})
#: Modules of Python's library that are safe in the same way.
KNOWN_MODULES = frozenset({"builtins", "collections", "copyreg", "functools", "pathlib"})
#: Settings of JAX that say where programs are kept. No program depends on them.
FOLDER_SETTINGS = ("compilation_cache", "persistent_cache")
#: Length of the digest before a stored program, which tells a damaged file.
DIGEST_SIZE = hashlib.sha256().digest_size


class _ArrayType(NamedTuple):
    """Takes the place of an array in a program's name."""

    shape: tuple[int, ...]
    dtype: str


class _UnknownClassError(Exception):
    """An argument contains something from elsewhere."""


class _ArgumentPickler(pickle.Pickler):
    """Pickles arguments, and refuses classes and functions from elsewhere."""

    def reducer_override(self, obj: Any) -> Any:
        module = getattr(obj, "__module__", None) or type(obj).__module__
        if module.partition(".")[0] not in KNOWN_PACKAGES and module not in KNOWN_MODULES:
            raise _UnknownClassError(module)
        return NotImplemented


class KeptProgram:
    """A function of arrays whose compiled program is kept in the folder of programs.

    Args:
        name: The name of the function, with its module.
        run: The function, from a list of arrays to a pytree of arrays.
        arguments: What the function's arguments are, given leaves in place of the arrays.
        compiler_options: Options of the compiler.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[list[Any]], Any],
        arguments: Callable[[list[Any]], Any],
        compiler_options: dict[str, Any],
    ) -> None:
        self._name, self._run, self._arguments = name, run, arguments
        self._options = compiler_options
        self._programs: dict[tuple[Any, ...], Callable[[list[Any]], Any]] = {}

    def __call__(self, arrays: list[Any]) -> Any:
        """Run the program.

        Args:
            arrays: The arrays of the arguments.

        Returns:
            The result of the function.
        """
        key = tuple((array.shape, array.dtype) for array in arrays)
        program = self._programs.get(key)
        if program is None:
            types = tuple(_ArrayType(shape, str(dtype)) for shape, dtype in key)
            program = self._programs[key] = self._program(types, arrays)
        return program(arrays)

    def _program(self, types: tuple[_ArrayType, ...], arrays: list[Any]) -> Callable[..., Any]:
        """Read the program for these arrays, or compile and keep it."""
        path = self.path(types)
        if path is None:
            return jax.jit(self._run, compiler_options=self._options or None)
        stored = _read(path)
        if stored is not None:
            _load_matrix_libraries()
            COMPILATIONS.count_read()
            program, in_tree, out_tree, result = pickle.loads(stored)
            return _unflattened(deserialize_and_load(program, in_tree, out_tree), result)
        return self._compiled(path, arrays)

    def _compiled(self, path: pathlib.Path, arrays: list[Any]) -> Callable[..., Any]:
        """Compile the program, and keep it."""
        structure: Any = None

        def run_flat(arrays: list[Any]) -> list[Any]:
            nonlocal structure
            leaves, structure = jax.tree.flatten(self._run(arrays))
            return leaves

        # JAX keeps programs by their name too, so it does not know a program with a new name.
        run_flat.__name__ = path.stem.rpartition(".")[2].replace("-", "_")
        jitted = jax.jit(run_flat, compiler_options=self._options or None)
        read = COMPILATIONS.read
        compiled = jitted.lower(arrays).compile()
        result = jax.tree.unflatten(structure, range(structure.num_leaves))
        # A program that JAX has read is not whole, and cannot be written again.
        if COMPILATIONS.read == read:
            _write(path, pickle.dumps((*serialize(compiled), result)))
        return _unflattened(compiled, result)

    def path(self, types: tuple[_ArrayType, ...]) -> pathlib.Path | None:
        """Return the file of a program.

        Args:
            types: Shapes and types of the arrays.

        Returns:
            The file, which may not exist. None if the program is not kept.
        """
        folder = jax.config.values["jax_compilation_cache_dir"]
        # JAX can keep its own programs elsewhere, in a bucket for example.
        if folder is None or not os.access(folder, os.R_OK | os.W_OK):
            return None
        file = io.BytesIO()
        pickler = _ArgumentPickler(file)
        # An object that occurs twice is written twice, so that equal arguments give equal bytes.
        pickler.fast = True
        try:
            pickler.dump((self._arguments(list(types)), self._options))
        except (_UnknownClassError, pickle.PicklingError, AttributeError, TypeError):
            return None  # there is no name for it, as for a function within a function
        digest = hashlib.sha256(_environment() + file.getvalue()).hexdigest()[:32]
        return pathlib.Path(folder) / f"{self._name}-{digest}.program"


def _unflattened(program: Callable[..., Any], result: Any) -> Callable[[list[Any]], Any]:
    """Make a program that returns leaves return a pytree with the structure of ``result``."""
    structure = jax.tree.structure(result)
    return lambda arrays: jax.tree.unflatten(structure, program(arrays))


@functools.cache
def _load_matrix_libraries() -> None:
    """Make JAX load LAPACK, as it does when it traces a decomposition. Read programs call it."""
    jax.jit(cholesky).lower(jax.ShapeDtypeStruct((1, 1), np.float64))


def _environment() -> bytes:
    """All that programs depend on apart from arguments."""
    settings = {
        name: value
        for name, value in jax.config.values.items()
        if not any(part in name for part in FOLDER_SETTINGS)
    }
    return _source() + repr((sorted(settings.items()), os.environ.get("XLA_FLAGS"))).encode()


@functools.cache
def _source() -> bytes:
    """A digest of the source of this library, of versions and of the processor."""
    package = pathlib.Path(__file__).parents[1]
    digest = hashlib.sha256()
    versions = (jax.__version__, jaxlib.__version__, np.__version__, eqx.__version__)
    digest.update(repr((*versions, processor_name())).encode())
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode() + path.read_bytes())
    return digest.digest()


def _read(path: pathlib.Path) -> bytes | None:
    """The content of a file, or None if there is none or it is damaged."""
    if not path.exists():
        return None
    content = path.read_bytes()
    digest, stored = content[:DIGEST_SIZE], content[DIGEST_SIZE:]
    return stored if hashlib.sha256(stored).digest() == digest else None


def _write(path: pathlib.Path, content: bytes) -> None:
    """Write a file at once: other processes see all of it or nothing. A full disk only warns."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(hashlib.sha256(content).digest() + content)
        pathlib.Path(file.name).replace(path)
    except OSError as error:
        warnings.warn(f"{path}: the compiled program is not kept ({error})", stacklevel=2)
