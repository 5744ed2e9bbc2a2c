"""Programs of chains are compiled without optimisation here: that takes a third of the time, and
they run but for a moment."""

import jax
import pytest


@pytest.fixture(autouse=True)
def quickly_compiled():
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
