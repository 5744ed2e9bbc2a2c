"""Send malformed requests to a server in the middle of an episode. Nothing may change.

python benchmarks/serve/fuzz.py --requests 10000

Each request is drawn from kinds of mistakes: bytes that are no HTTP, wrong methods, paths, headers
and lengths, bodies that are no JSON, fields of a wrong type, numbers that are none. The answer must
be a status from 400 to 499 with one sentence as JSON, or the connection is closed where there was
no request. Afterwards the journal, the episode under way and the agent must be as before.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import random
import socket
import string
import tempfile
import threading
import time

from kernelmdp.serving import HTTPServer, Plant, Service

#: What a field of a number, or of a list of numbers, must not be.
NO_NUMBERS = [None, True, "", "1", [], {}, [1.0], "NaN", {"a": 1}]
NO_VECTORS = [None, True, 3.0, "warm", {}, [], [None], ["1"], [[1.0]], [True], [{}]]
#: Texts in which JSON has no meaning.
NO_JSON = [b"", b"{", b"}", b"[", b"{'reward': 1}", b"\xff\xfe", b"{}{}", b"nul", b'{"a"', b"\x00"]


def request(
    method: str = "POST", path: str = "/act", body: bytes = b"", headers: dict | None = None
) -> bytes:
    """The bytes of a request."""
    fields = {
        "Host": "127.0.0.1",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
    } | (headers or {})
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value is not None)
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def with_json(body: object, path: str = "/act") -> bytes:
    return request(path=path, body=json.dumps(body).encode())


def text(rng: random.Random, longest: int = 20) -> str:
    return "".join(rng.choices(string.ascii_letters, k=rng.randint(1, longest)))


def no_http(rng: random.Random) -> bytes:
    return rng.randbytes(rng.randint(1, 200)) + b"\r\n\r\n"


def bad_version(rng: random.Random) -> bytes:
    return f"POST /act HTTP/{rng.choice(['x', '9.9', '-1', '1.1.1'])}\r\n\r\n".encode()


def bad_method(rng: random.Random) -> bytes:
    return request(method=rng.choice(["PUT", "DELETE", "PATCH", "get", text(rng)]))


def wrong_method(rng: random.Random) -> bytes:
    path = rng.choice(["/ask", "/act", "/tell"])
    get = request("GET", path)
    return rng.choice([get, request("POST", "/health", b"{}"), request("POST", "/", b"{}")])


def bad_path(rng: random.Random) -> bytes:
    return with_json({}, path=f"/{text(rng)}/..%2f{rng.random()}")


def bad_length(rng: random.Random) -> bytes:
    length = rng.choice(["-1", "x", "1e3", "9" * 30, str(5 * 1024 * 1024), "², "])
    return request(
        body=b"{}", headers={"Content-Length": length.encode("ascii", "replace").decode()}
    )


def short_body(rng: random.Random) -> bytes:
    return request(body=b'{"observation": [1.0]}', headers={"Content-Length": "99"})


def chunked(rng: random.Random) -> bytes:
    return request(headers={"Transfer-Encoding": "chunked"}) + b"5\r\nhello\r\n0\r\n\r\n"


def bad_type(rng: random.Random) -> bytes:
    kind = rng.choice(["text/plain", "application/x-www-form-urlencoded", "", text(rng), None])
    return request(body=b'{"observation": [50.0]}', headers={"Content-Type": kind})


def bad_host(rng: random.Random) -> bytes:
    return request(body=b'{"observation": [50.0]}', headers={"Host": f"{text(rng)}.example"})


def long_header(rng: random.Random) -> bytes:
    return request(headers={"X-Long": "x" * 70_000})


def no_json(rng: random.Random) -> bytes:
    body = rng.choice([*NO_JSON[1:], rng.randbytes(rng.randint(1, 60)) + b"\xff"])
    return request(path=rng.choice(["/ask", "/act", "/tell"]), body=body)


def deep_json(rng: random.Random) -> bytes:
    return request(body=b"[" * rng.choice([1_000, 200_000]))


def no_object(rng: random.Random) -> bytes:
    path = rng.choice(["/ask", "/act", "/tell"])
    return with_json(rng.choice([None, True, 3, "act", [], [{"observation": [1.0]}]]), path)


def no_finite_number(rng: random.Random) -> bytes:
    number = rng.choice(["NaN", "Infinity", "-Infinity", "1e999", "1" + "0" * 400, "9" * 5_000])
    return request(body=f'{{"observation": [{number}], "reward": 1.0}}'.encode())


def wrong_field(rng: random.Random) -> bytes:
    body = {"observation": [50.0], "reward": -1.0, "period": 1}
    name = rng.choice(list(body))
    body[name] = rng.choice(NO_VECTORS if name == "observation" else NO_NUMBERS)
    return with_json(body)


def unknown_field(rng: random.Random) -> bytes:
    path = rng.choice(["/ask", "/act", "/tell"])
    return with_json({"observation": [50.0], "x" + text(rng): rng.random()}, path)


def missing_field(rng: random.Random) -> bytes:
    return with_json(rng.choice([{}, {"reward": 1.0}, {"observation": [50.0]}, {"period": 1}]))


def wrong_shape(rng: random.Random) -> bytes:
    count = rng.choice([2, 3, 500])
    return with_json({"observation": [50.0] * count, "reward": rng.random()})


def wrong_period(rng: random.Random) -> bytes:
    period = rng.choice([-1, 2, 3, 10**6, 10**30, 1.5])
    return with_json({"observation": [50.0], "reward": 0.0, "period": period})


def ask_meanwhile(rng: random.Random) -> bytes:
    return with_json({"observation": [100.0 * rng.random()]}, "/ask")


def bad_tell(rng: random.Random) -> bytes:
    whole = {"states": [[1.0], [2.0]], "actions": [[0.5]], "rewards": [1.0], "truncated": True}
    broken = dict(whole)
    del broken[rng.choice(["states", "actions", "rewards"])]
    ending = {"observation": [50.0], "reward": 1.0}
    return with_json(
        rng.choice(
            [
                whole,  # an episode is under way
                broken,
                whole | ending,
                {"episode": rng.choice([0, 2, 99, -1])} | ending,
                {"terminated": True},
                ending | {"terminated": "yes"},
                {"observation": [50.0]},
                {"observation": [50.0, 1.0], "reward": 1.0},
            ]
        ),
        "/tell",
    )


#: All kinds of mistakes.
KINDS = [
    no_http,
    bad_version,
    bad_method,
    wrong_method,
    bad_path,
    bad_length,
    short_body,
    chunked,
    bad_type,
    bad_host,
    long_header,
    no_json,
    deep_json,
    no_object,
    no_finite_number,
    wrong_field,
    unknown_field,
    missing_field,
    wrong_shape,
    wrong_period,
    ask_meanwhile,
    bad_tell,
]


def answer_to(port: int, sent: bytes) -> bytes:
    """Everything that the server answers."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        # The server may answer and close before it has read all.
        with contextlib.suppress(ConnectionError):
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while piece := connection.recv(65536):
                received += piece
    return received


def complaint(received: bytes) -> str | None:
    """What is wrong with an answer, or None."""
    if not received:
        return None
    head, _, body = received.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/"):  # the request was of HTTP/0.9, so is the answer
        body, status = head, 400
    else:
        status = int(head.split()[1])
    if not 400 <= status < 500:
        return f"status {status}"
    answer = json.JSONDecoder().raw_decode(body.decode())[0]
    if set(answer) != {"error"} or "\n" in answer["error"] or "Traceback" in answer["error"]:
        return f"answer {answer}"
    return None


def fuzz(server: HTTPServer, count: int, seed: int) -> tuple[collections.Counter, list[str]]:
    """Numbers of requests by kind and whether they were answered, and what was wrong."""
    rng = random.Random(seed)
    seen, wrong = collections.Counter(), []
    for _ in range(count):
        kind = rng.choice(KINDS)
        sent = kind(rng)
        received = answer_to(server.server_port, sent)
        seen[kind.__name__, bool(received)] += 1
        if (problem := complaint(received)) is not None:
            wrong.append(f"{kind.__name__}: {problem} after {sent[:200]!r}")
    return seen, wrong


def snapshot(service: Service) -> tuple:
    """What must not change."""
    folder = service.folder
    files = {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return files, service.health(), service.episodes()


@contextlib.contextmanager
def server_under_way(folder: str):
    """A server after two episodes, in period 1 of the third."""
    plant = Plant("heater", {"temperature": (0, 100)}, {"power": (0, 1)}, horizon=4)
    with Service(plant.make_agent(), folder) as service, HTTPServer(service) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        for _ in range(2):
            told = {"states": [[20.0], [25.0]], "actions": [[0.5]], "rewards": [-1.0]}
            service.tell_episode(**told, truncated=True)
        service.ask([20.0])
        service.act([20.0])
        yield server
        server.shutdown()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, server_under_way(folder) as server:
        before, start = snapshot(server.service), time.perf_counter()
        seen, wrong = fuzz(server, options.requests, options.seed)
        seconds = time.perf_counter() - start
        unchanged = snapshot(server.service) == before
        for kind in KINDS:
            counts = [seen[kind.__name__, answered] for answered in (True, False)]
            print(f"{kind.__name__:18} {counts[0]:6} answered {counts[1]:6} closed")
        print(f"{options.requests} requests in {seconds:.0f} s; {len(wrong)} wrong answers")
        print("nothing changed" if unchanged else "SOMETHING CHANGED")
        for each in wrong[:20]:
            print(each)
        answer = server.service.act([21.0], reward=-1.0, period=1)
        row = server.service.tell([22.0], -1.0)
        print(f"the episode went on: period {answer['period']}, then {row}")
    raise SystemExit(bool(wrong) or not unchanged)


if __name__ == "__main__":
    main()
