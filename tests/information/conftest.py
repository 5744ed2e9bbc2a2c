"""Designs take longer to find than their programs to compile: these are optimised."""

import jax
import pytest


@pytest.fixture(autouse=True)
def optimised():
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", True)
