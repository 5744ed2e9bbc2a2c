"""The HTTP server: one thread a connection, JSON in and out, one sentence for each error."""

import gc
import hmac
import http.server
import ipaddress
import json
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from kernelmdp.errors import ArgumentError, StorageError
from kernelmdp.serving.endpoints import ENDPOINTS
from kernelmdp.serving.json_schema import parsed, require
from kernelmdp.serving.openapi import openapi
from kernelmdp.serving.request_error import BAD_REQUEST, RequestError
from kernelmdp.serving.service import Service

#: Most bytes of a body. A whole episode of 10,000 steps with ten numbers each fits in.
LARGEST_BODY = 4 * 1024 * 1024
#: Seconds after which a silent connection is closed, so that lost clients leave no threads. A plant
#: with longer periods connects anew.
SILENCE = 300.0
#: Names of this machine in the header "Host". Others come from a web page that was redirected here.
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


class HTTPServer(http.server.ThreadingHTTPServer):
    """Serves a service over HTTP.

    Args:
        service: The service.
        host: The address to listen on.
        port: The port; 0 takes a free one.
        token: The bearer token that every request must have. None asks for none.

    Attributes:
        failure: What stopped the server, or None.
        local: Whether only this machine can reach it.
        url: The address of the server.
        daemon_threads: True, as connections that are open must not keep the process.

    >>> import tempfile, kernelmdp as km
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with km.serving.Service(km.Greedy("riverswim", seed=0), folder) as service:
    ...         with HTTPServer(service) as server:
    ...             print(server.url.rpartition(":")[0])
    http://127.0.0.1
    """

    daemon_threads = True

    def __init__(
        self, service: Service, host: str = "127.0.0.1", port: int = 0, token: str | None = None
    ) -> None:
        require_token(host, token)
        self.local = is_loopback(host)
        self.service = service
        self.failure: BaseException | None = None
        self.token = None if token is None else f"Bearer {token}".encode()
        self.document = openapi(token is not None)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), Handler)
        name = f"[{host}]" if ":" in host else host
        self.url = f"http://{name}:{self.server_port}"

    def stop(self, failure: BaseException | None = None) -> None:
        """End ``serve_forever`` after the requests under way.

        Args:
            failure: What went wrong, if anything did.
        """
        self.failure = failure
        # ``shutdown`` waits for the loop, so it must not run in a thread that the loop waits for.
        threading.Thread(target=self.shutdown, daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say in one line that a connection broke. Clients vanish; that is no error of the server.

        Args:
            request: The socket.
            client_address: The address of the client.
        """
        print(f"kmdp serve: a connection broke ({sys.exc_info()[1]})", file=sys.stderr)


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers the requests of one connection.

    Attributes:
        server: The server.
        protocol_version: HTTP/1.1, in which connections stay open.
        server_version: What the header "Server" says.
        sys_version: Nothing of Python is told.
        disable_nagle_algorithm: True, as a short answer must not wait for more to send.
        timeout: Seconds of silence after which the connection is closed.
    """

    server: HTTPServer
    protocol_version = "HTTP/1.1"
    server_version = "kernelmdp"
    sys_version = ""
    disable_nagle_algorithm = True
    timeout = SILENCE

    def do_GET(self) -> None:
        """Answer a request without a body."""
        self._respond()

    def do_POST(self) -> None:
        """Answer a request with a body."""
        self._respond()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is no request of HTTP. The base class would write a page.

        Args:
            code: The status.
            message: What is wrong.
            explain: Not used.
        """
        self.close_connection = True
        # An unknown method or version is a mistake of the client.
        status = {501: 405, 505: 400}.get(code, code)
        self._write(status, {"error": message or HTTPStatus(code).phrase})

    def log_message(self, format: str, *arguments: Any) -> None:
        """Write nothing: the journal has what matters.

        Args:
            format: Not used.
            *arguments: Not used.
        """

    def _respond(self) -> None:
        try:
            answer = self._answer()
        except RequestError as error:
            return self._write(error.status, {"error": error.sentence})
        except ArgumentError as error:
            return self._write(BAD_REQUEST, {"error": " ".join(str(error).split())})
        except StorageError as error:
            self.close_connection = True
            self._write(HTTPStatus.INSUFFICIENT_STORAGE, {"error": str(error)})
            return self.server.stop(error)
        except (ConnectionError, TimeoutError):
            raise  # The client is gone: there is nobody to answer.
        except Exception as error:
            # What was done is in the journal. Going on in an unknown state could do harm.
            traceback.print_exc()
            self.close_connection = True
            text = "the server stopped because of an error of its own; its output has it"
            self._write(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": text})
            return self.server.stop(error)
        self._write(HTTPStatus.OK, answer)

    def _answer(self) -> Any:
        body = self._body()
        self._require_permission()
        path = self.path.partition("?")[0]
        if (self.command, path) == ("GET", "/openapi.json"):
            return self.server.document
        methods = {each.method: each for each in ENDPOINTS if each.path == path}
        if not methods:
            known = ", ".join(each.path for each in ENDPOINTS)
            raise RequestError(404, f"there is no such path; there are {known}, /openapi.json")
        endpoint = methods.get(self.command)
        if endpoint is None:
            raise RequestError(405, f"{path} takes {' or '.join(methods)}, not {self.command}")
        content: Any = {}
        if endpoint.takes is not None:
            if self.headers.get_content_type() != "application/json":
                # A web page cannot send this type to another site without being asked first.
                raise RequestError(415, "the header Content-Type must be application/json")
            content = parsed(body or b"{}")
            require(content, endpoint.takes)
        return endpoint.answer(self.server.service, content)

    def _body(self) -> bytes:
        """Read the body, also if it is refused later: the next request follows it."""
        text = self.headers.get("Content-Length", "0")
        known_length = text.isascii() and text.isdigit() and len(text) < 19
        if "Transfer-Encoding" in self.headers or not known_length:
            self.close_connection = True
            raise RequestError(411, "the header Content-Length must say how long the body is")
        if int(text) > LARGEST_BODY:
            self.close_connection = True
            raise RequestError(413, f"the body has more than {LARGEST_BODY} bytes")
        body = self.rfile.read(int(text))
        if len(body) < int(text):
            self.close_connection = True
            raise RequestError(BAD_REQUEST, "the body is shorter than Content-Length says")
        return body

    def _require_permission(self) -> None:
        host = self.headers.get("Host", "localhost")
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        if self.server.local and name not in LOCAL_NAMES:
            raise RequestError(403, "the header Host must name this machine")
        if self.server.token is not None:
            given = self.headers.get("Authorization", "").encode("utf-8", "replace")
            if not hmac.compare_digest(given, self.server.token):
                raise RequestError(401, "the header Authorization must be: Bearer TOKEN")

    def _write(self, status: int, answer: Any) -> None:
        """Send an answer in one piece, so that it is one packet."""
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if status == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        if self.close_connection:
            self.send_header("Connection", "close")
        if self.request_version == "HTTP/0.9":
            self.wfile.write(content)
            return
        self._headers_buffer.append(b"\r\n")  # type: ignore[attr-defined]
        self._headers_buffer.append(content)  # type: ignore[attr-defined]
        self.flush_headers()


def serve(
    service: Service,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    token: str | None = None,
    started: Callable[[HTTPServer], object] = lambda server: None,
) -> None:
    """Serve until the server is stopped.

    Args:
        service: The service.
        host: The address to listen on. Another one than loopback needs a token.
        port: The port; 0 takes a free one.
        token: The bearer token that every request must have.
        started: Called with the server once it listens.

    >>> import tempfile, kernelmdp as km
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with km.serving.Service(km.Greedy("riverswim", seed=0), folder) as service:
    ...         serve(service, started=lambda server: server.stop())
    """
    with HTTPServer(service, host, port, token) as server:
        # A collection of all objects of a compiler takes tens of milliseconds. They stay anyway.
        gc.collect()
        gc.freeze()
        try:
            started(server)
            server.serve_forever(poll_interval=0.1)
        finally:
            gc.unfreeze()
        if server.failure is not None:
            raise server.failure


def require_token(host: str, token: str | None) -> None:
    """Require a token where other machines could control the plant.

    Args:
        host: The address to listen on.
        token: The bearer token, or None.

    Raises:
        ArgumentError: If there is none and one is needed, or it is empty.

    >>> require_token("127.0.0.1", None)
    >>> require_token("0.0.0.0", "open sesame")
    """
    if not is_loopback(host) and not token:
        expected = f"a token to listen on {host}, where other machines could control the plant"
        raise ArgumentError("token", expected, token)
    if token is not None and not token.strip():
        raise ArgumentError("token", "at least one character", repr(token))


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    Args:
        host: An address, or "localhost".

    Returns:
        Whether it is a loopback address.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0"), is_loopback("lab.example")
    (True, False, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
