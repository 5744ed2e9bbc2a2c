"""The error of a request: a status of HTTP and one sentence for the client."""

from kernelmdp.errors import KernelMDPError

#: The request is malformed, or an argument is invalid.
BAD_REQUEST = 400
#: The request does not fit what is under way. A later one may.
CONFLICT = 409


class RequestError(KernelMDPError):
    """A request is refused. Nothing was changed.

    The error has its arguments as attributes.

    Args:
        status: The status of HTTP.
        sentence: What is wrong, and what to do.

    >>> print(RequestError(409, "no episode is under way: POST /ask first"))
    no episode is under way: POST /ask first
    """

    def __init__(self, status: int, sentence: str) -> None:
        self.status, self.sentence = status, sentence
        super().__init__(sentence)
