"""Programs that are kept whole: read by the next process, and never the wrong one."""

import errno
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp.domains import Box
from kernelmdp.kernels import SquaredExponential
from kernelmdp.numerics import kept_programs
from kernelmdp.numerics.modules import Module, jit

TRACED: list[str] = []


def scaled(kernel, factor, x):
    TRACED.append("scaled")
    return {"sum": jnp.sum(factor * x), "diagonal": kernel.diagonal(x), "kernel": kernel}


class Foreign(Module):
    """A class of a user, whose source may change."""

    number: jax.Array

    def diagonal(self, x):
        return self.number * jnp.sum(x, axis=1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    before = jax.config.values["jax_compilation_cache_dir"]
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    known = frozenset({"kernelmdp", "jax", "jaxlib", "numpy", "equinox", "ml_dtypes"})
    monkeypatch.setattr(kept_programs, "KNOWN_PACKAGES", known)
    yield tmp_path
    jax.config.update("jax_compilation_cache_dir", before)


def new_process(*arguments):
    """Call a function that was just compiled for the first time, and say whether it was traced."""
    before = len(TRACED)
    result = jit(scaled, stored=True)(*arguments)
    return result, len(TRACED) > before


X = np.arange(6.0).reshape(3, 2)


def test_the_next_process_does_not_trace(folder):
    kernel = SquaredExponential(0.5)
    first, traced = new_process(kernel, 2.0, X)
    assert traced
    second, traced = new_process(kernel, 2.0, X + 0.0)
    assert not traced
    assert jax.tree.structure(first) == jax.tree.structure(second)
    jax.tree.map(np.testing.assert_array_equal, first, second)
    # Numbers of the kernel are arrays: one program serves them all.
    other, traced = new_process(SquaredExponential(0.25), 2.0, X)
    assert not traced
    assert float(other["kernel"].lengthscale) == 0.25


@pytest.mark.parametrize(
    "arguments",
    [
        (SquaredExponential(0.5), 3.0, X),  # a constant
        (SquaredExponential(0.5), 2.0, X[:2]),  # a shape
        (SquaredExponential(0.5), 2.0, X.astype(np.float32)),  # a type
        (SquaredExponential([0.5, 0.5]), 2.0, X),  # the shape of a parameter
    ],
)
def test_whatever_a_program_depends_on_is_in_its_name(folder, arguments):
    new_process(SquaredExponential(0.5), 2.0, X)
    assert new_process(*arguments)[1]


def test_settings_of_jax_are_in_the_name(folder):
    new_process(SquaredExponential(0.5), 2.0, X)
    with jax.default_matmul_precision("float32"):
        jax.config.update("jax_debug_nans", True)
        try:
            assert new_process(SquaredExponential(0.5), 2.0, X)[1]
        finally:
            jax.config.update("jax_debug_nans", False)


def test_classes_and_functions_from_elsewhere_have_no_name(folder):
    for _ in range(2):
        result, traced = new_process(Foreign(jnp.asarray(2.0)), 2.0, X)
        assert traced
        np.testing.assert_allclose(result["diagonal"], 2 * X.sum(axis=1))
    assert not list(folder.glob("*.program"))


def test_a_damaged_file_is_not_used(folder):
    new_process(SquaredExponential(0.5), 2.0, X)
    (file,) = folder.glob("*.program")
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    result, traced = new_process(SquaredExponential(0.5), 2.0, X)
    assert traced
    assert float(result["sum"]) == 2 * X.sum()


def test_a_full_disk_is_no_error(folder, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(kept_programs.tempfile, "NamedTemporaryFile", full)
    with pytest.warns(UserWarning, match="not kept .*No space left"):
        result, _ = new_process(SquaredExponential(0.5), 2.0, X)
    assert float(result["sum"]) == 2 * X.sum()


def test_a_folder_that_is_not_there_keeps_nothing(folder):
    jax.config.update("jax_compilation_cache_dir", str(folder / "none"))
    assert float(new_process(SquaredExponential(0.5), 2.0, X)[0]["sum"]) == 2 * X.sum()


def test_within_another_function_it_is_traced_with_it(folder):
    function = jit(scaled, stored=True)
    total = jax.jit(lambda x: function(SquaredExponential(0.5), 2.0, x)["sum"])(X)
    assert float(total) == 2 * X.sum()
    assert not list(folder.glob("*.program"))


def test_equal_arguments_have_equal_names(folder):
    """Whether an object occurs twice, or two equal ones, makes no difference."""
    shared, copy = Box([0.0], [1.0]), Box([0.0], [1.0])

    def name(*constants):
        program = kept_programs.KeptProgram("f", sum, lambda types: constants, {})
        return program.path(())

    assert name(shared, shared) == name(shared, copy)
    assert name(shared, shared) != name(shared, Box([0.0], [2.0]))
    assert name(functools.partial(jnp.sum, axis=0)) is not None
    assert name(lambda x: x) is None
