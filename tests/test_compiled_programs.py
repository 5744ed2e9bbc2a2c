"""Compiled programs: kept between processes, bounded, and counted."""

import contextlib
import os
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import pytest
from rich.console import Console

from kernelmdp.experiments import progress
from kernelmdp.numerics import compiled_programs
from kernelmdp.numerics.compiled_programs import COMPILATIONS, keep_compiled_programs
from kernelmdp.numerics.modules import jit, matrix_jit, quick_jit

PROGRAM = """
import kernelmdp, jax, jax.numpy as jnp
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
from kernelmdp.numerics.compiled_programs import COMPILATIONS
jax.jit(lambda x: jnp.linalg.eigh(jnp.sin(x) @ x.T)[0])(jnp.ones((3, 3))).block_until_ready()
print(COMPILATIONS.programs, COMPILATIONS.read)
"""


@pytest.fixture
def unconfigured(monkeypatch, tmp_path):
    """JAX without a folder of programs, and a home of our own."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(compiled_programs.FOLDER_VARIABLE, raising=False)
    yield tmp_path
    jax.config.update("jax_compilation_cache_dir", before)


def test_the_next_process_reads_what_was_compiled(tmp_path):
    environment = os.environ | {compiled_programs.FOLDER_VARIABLE: str(tmp_path)}
    counts = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, check=True
        )
        counts.append([int(number) for number in done.stdout.split()])
    assert counts[0][1] == 0
    assert counts[1][1] > 0
    assert counts[0][0] == counts[1][0]


def test_a_folder_for_each_kind_of_processor(unconfigured):
    folder = keep_compiled_programs()
    assert folder.is_dir()
    assert folder.parent == unconfigured / "kernelmdp"
    assert str(folder) == jax.config.jax_compilation_cache_dir


def test_it_can_be_switched_off(unconfigured, monkeypatch):
    monkeypatch.setenv(compiled_programs.FOLDER_VARIABLE, "off")
    assert keep_compiled_programs() is None
    assert jax.config.jax_compilation_cache_dir is None


def test_the_user_s_own_folder_stays(unconfigured, tmp_path):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "own"))
    assert keep_compiled_programs() == tmp_path / "own"
    assert jax.config.jax_compilation_cache_dir == str(tmp_path / "own")


def test_where_nothing_can_be_written_programs_are_not_kept(unconfigured, monkeypatch):
    (unconfigured / "file").touch()
    monkeypatch.setenv(compiled_programs.FOLDER_VARIABLE, str(unconfigured / "file" / "folder"))
    assert keep_compiled_programs() is None
    assert jax.config.jax_compilation_cache_dir is None


def test_programs_that_were_not_used_are_deleted_first(unconfigured, monkeypatch):
    folder = keep_compiled_programs()
    jax.config.update("jax_compilation_cache_dir", None)
    for age in range(10):
        file = folder / f"program-{age}"
        file.write_bytes(b"0" * 100)
        os.utime(file, (1e9 - age, 1e9 - age))
    monkeypatch.setattr(compiled_programs, "FOLDER_SIZE", 999)
    keep_compiled_programs()
    # 1,000 bytes are too many, and at most three quarters of 999 are left.
    assert sorted(path.name for path in folder.iterdir()) == [f"program-{i}" for i in range(7)]


def test_files_may_disappear_meanwhile(unconfigured, monkeypatch):
    folder = keep_compiled_programs()
    jax.config.update("jax_compilation_cache_dir", None)
    for age in range(3):
        (folder / f"program-{age}").write_bytes(b"0" * 100)
    entries = list(os.scandir(folder))
    (folder / "program-1").unlink()
    monkeypatch.setattr(compiled_programs.os, "scandir", lambda _: contextlib.nullcontext(entries))
    monkeypatch.setattr(compiled_programs, "FOLDER_SIZE", 150)
    assert keep_compiled_programs() == folder
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 150


def test_a_long_compilation_is_shown():
    column = progress.CompilationColumn()
    with progress.Progress(console=Console(quiet=True)) as bar:
        bar.add_task("")
        (task,) = bar.tasks
        assert column.render(task).plain == ""
        COMPILATIONS._begin("/jax/core/compile/backend_compile_duration", time.time() - 12.1)
        assert column.render(task).plain == "compiling 12 s"
        COMPILATIONS._end("/jax/core/compile/backend_compile_duration", 12.0)
        assert column.render(task).plain == ""


@pytest.mark.parametrize("compile_function", [jit, matrix_jit, quick_jit])
def test_compiler_options_change_no_result(compile_function):
    @compile_function
    def solution(a, b):
        return jnp.linalg.solve(a, jnp.sin(b))

    a, b = jnp.array([[2.0, 1.0], [1.0, 3.0]]), jnp.array([1.0, 2.0])
    expected = jnp.linalg.solve(a, jnp.sin(b))
    assert jnp.allclose(solution(a, b), expected, rtol=1e-12)
    # Within another compiled function, also where no argument is traced.
    assert jnp.allclose(jax.jit(solution)(a, b), expected, rtol=1e-12)
    assert jnp.allclose(jax.jit(lambda: solution(a, b))(), expected, rtol=1e-12)
    assert jnp.allclose(jax.vmap(solution)(a[None], b[None])[0], expected, rtol=1e-12)
