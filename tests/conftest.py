"""Strict JAX for every test: shapes and types of annotations are checked at every call, silent
broadcasting and silent promotion are errors."""

import os

import pytest

if "PYTEST_XDIST_WORKER" in os.environ and hasattr(os, "sched_setaffinity"):
    # One core a worker: threads of two workers that wait for one another cost more than they give.
    cores = sorted(os.sched_getaffinity(0))
    worker = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    os.sched_setaffinity(0, {cores[worker % len(cores)]})

# Half of compilation is in emitters of fused loops that make programs fast, which here hardly run.
FLAG = "--xla_cpu_use_fusion_emitters=false"
if "xla_cpu_use_fusion_emitters" not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAG}".strip()


def pytest_configure(config):
    """Before anything of the package is imported."""
    if config.getoption("numprocesses", None) and "PYTEST_XDIST_WORKER" not in os.environ:
        return  # workers do all of this; the process that starts them runs no test
    import jax
    import jaxtyping

    import tests.checked  # noqa: F401  (named in the hook)

    jaxtyping.install_import_hook("kernelmdp", "tests.checked.typechecker")
    from kernelmdp.cli import keep_compiled  # must come after the hook

    # Most of the time goes into compilation; both workers, and later runs, share what is compiled.
    keep_compiled()
    # Without optimisation that takes a quarter less, and most programs run but for a moment.
    jax.config.update("jax_disable_most_optimizations", True)
    jax.config.update("jax_numpy_rank_promotion", "raise")
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    # Not in pyproject.toml: a filter there imports the package before the hook is installed.
    config.addinivalue_line("filterwarnings", "error::kernelmdp.errors.ApproximationWarning")


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
