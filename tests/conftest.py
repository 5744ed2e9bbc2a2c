"""Strict JAX for every test: shapes and types of annotations are checked at every call, silent
broadcasting and silent promotion are errors."""

import contextlib
import ctypes
import gc
import os

import hypothesis
import pytest

# No test asserts a time: other work on the machine would decide it.
hypothesis.settings.register_profile("kernelmdp", deadline=None)
hypothesis.settings.load_profile("kernelmdp")

if "PYTEST_XDIST_WORKER" in os.environ and hasattr(os, "sched_setaffinity"):
    # One core a worker: threads of two workers that wait for one another cost more than they give.
    cores = sorted(os.sched_getaffinity(0))
    worker = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    os.sched_setaffinity(0, {cores[worker % len(cores)]})

# Tracing makes millions of small objects, almost none of them in cycles: look for cycles seldom.
gc.set_threshold(50_000, 20, 50)

# Most of the time goes into compilation, and most programs run but for a moment: they are not
# optimised, here and in processes that tests start, and without emitters of fast fused loops,
# which take half of it. A program is compiled in one piece: pieces are for threads, and a worker
# has one core.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
FLAGS = {"--xla_cpu_use_fusion_emitters": "false", "--xla_cpu_parallel_codegen_split_count": "1"}
given = os.environ.get("XLA_FLAGS", "")
added = [f"{flag}={value}" for flag, value in FLAGS.items() if flag not in given]
os.environ["XLA_FLAGS"] = " ".join([given, *added]).strip()


def pytest_configure(config):
    """Before anything of the package is imported."""
    if config.getoption("numprocesses", None) and "PYTEST_XDIST_WORKER" not in os.environ:
        return  # workers do all of this; the process that starts them runs no test
    import jax
    import jaxtyping

    import tests.checked  # noqa: F401  (named in the hook)

    jaxtyping.install_import_hook("kernelmdp", "tests.checked.typechecker")
    from kernelmdp.numerics import kept_programs, modules  # must come after the hook

    # Annotations are checked while a program is traced, so no program is kept whole.
    kept_programs.KNOWN_PACKAGES = frozenset()
    # Programs of matrices run for long: there the compiler's work is repaid.
    modules.MATRIX_COMPILATION |= {"xla_backend_optimization_level": 1}
    jax.config.update("jax_numpy_rank_promotion", "raise")
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    # Not in pyproject.toml: a filter there imports the package before the hook is installed.
    config.addinivalue_line("filterwarnings", "error::kernelmdp.errors.ApproximationWarning")


@pytest.fixture(autouse=True, scope="module")
def _programs_of_one_module():
    """Drop compiled programs after each module of tests. All of them would take gigabytes."""
    yield
    import jax

    jax.clear_caches()
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # only the C library of Linux has it
        ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture
def rng():
    import numpy as np

    return np.random.default_rng(0)


@pytest.fixture
def unchecked():
    """For tests that pass what the annotations forbid, to see our own error."""
    import jaxtyping

    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
