"""What the tests of kernels share."""

import jaxtyping
import pytest


@pytest.fixture(scope="module")
def as_installed():
    """Without the run-time type checks of the tests: bad input must meet our own errors."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
