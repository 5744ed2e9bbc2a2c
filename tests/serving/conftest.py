"""A served plant: one state, one action, and plans of a tiny grid."""

import contextlib
import http.client
import json
import threading

import pytest

from kernelmdp.serving import HTTPServer, Plant, Service

SETTINGS = {"planner": {"name": "grid", "state_points": [7], "action_points": [3]}}


def plant(**changes):
    table = {
        "name": "heater",
        "states": {"temperature": [0.0, 100.0]},
        "actions": {"power": [0.0, 1.0]},
        "horizon": 4,
        "settings": SETTINGS,
    }
    return Plant.of(table | changes)


class Client:
    """Sends requests to a server, one connection each."""

    def __init__(self, server, token=None):
        self.port, self.token = server.server_port, token

    def send(self, method, path, body=None, headers=None):
        """Status and parsed answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        sent = {"Content-Type": "application/json"}
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        with contextlib.closing(connection):
            connection.request(method, path, data, sent | (headers or {}))
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")

    def get(self, path):
        return self.send("GET", path)

    def post(self, path, **body):
        return self.send("POST", path, body)


@contextlib.contextmanager
def running(service, **options):
    """A client of a server in a thread of this process."""
    with HTTPServer(service, **options) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield Client(server, options.get("token")), server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def service(tmp_path):
    with Service(plant().make_agent(), tmp_path / "heater") as service:
        yield service


@pytest.fixture
def client(service):
    with running(service) as (client, _):
        yield client
