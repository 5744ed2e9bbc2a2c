"""Strict JAX for every test: silent broadcasting and silent promotion are errors, shapes are
checked at run time from the annotations."""

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
