"""Threads of matrix libraries.

The matrices of fits and updates have at most some hundred rows. To share one of them among threads
takes longer than the arithmetic, and the threads of two processes on one machine wait for each
other: fits were seen to take a hundred times as long.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")


@functools.cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  (JAX calls its libraries; only loaded ones are found)

    return ThreadpoolController()


def with_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function use one thread of the libraries BLAS and LAPACK.

    Programs that the function starts and does not wait for may use more.

    Args:
        function: The function.

    Returns:
        The same function. When it returns, the number of threads is what it was.

    >>> with_one_thread(abs)(-2)
    2
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return call
