"""Strict JAX for every test: silent broadcasting and silent promotion are errors.

The hook that checks shapes at run time has no effect under pytest: the warning filter in
pyproject.toml imports the package before it is installed.
"""

import os

if "PYTEST_XDIST_WORKER" in os.environ and hasattr(os, "sched_setaffinity"):
    # One core a worker: threads of two workers that wait for one another cost more than they give.
    cores = sorted(os.sched_getaffinity(0))
    worker = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    os.sched_setaffinity(0, {cores[worker % len(cores)]})

import jax
import jaxtyping
import pytest

jaxtyping.install_import_hook("kernelmdp", "beartype.beartype")

import kernelmdp  # noqa: E402, F401  (must come after the hook)

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture
def rng():
    import numpy as np

    return np.random.default_rng(0)
