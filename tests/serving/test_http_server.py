"""The server: endpoints, statuses, who may send requests, and malformed ones."""

import http.client
import importlib.util
import json
import pathlib
import re
import socket
import threading

import pytest

from kernelmdp.errors import ArgumentError
from kernelmdp.serving import HTTPServer, Service, http_server, openapi
from kernelmdp.serving.endpoints import ENDPOINTS
from kernelmdp.serving.json_schema import require
from tests.serving.conftest import Client, plant, running

ROOT = pathlib.Path(__file__).parents[2]


def test_an_episode(client):
    assert client.get("/health")[1]["status"] == "ready"
    status, asked = client.post("/ask", observation=[20.0])
    assert (status, asked["episode"], asked["horizon"]) == (200, 1, 4)
    for period in range(4):
        reward = {} if period == 0 else {"reward": -1.0}
        status, answer = client.post("/act", observation=[20.0], period=period, **reward)
        assert (status, answer["period"], answer["source"]) == (200, period, "plan")
        assert 0.0 <= answer["action"][0] <= 1.0
        assert answer["milliseconds"] > 0
    status, error = client.post("/act", observation=[20.0], reward=-1.0)
    assert (status, error["error"]) == (
        409,
        "the episode has its 4 periods: POST /tell how it ended",
    )
    status, row = client.post("/tell", observation=[21.0], reward=-1.0)
    assert (status, row["return"], row["learned"]) == (200, -4.0, True)
    episode = {"episode": 1, "steps": 4, "return": -4.0, "terminated": False}
    assert client.get("/episodes") == (200, {"episodes": [episode]})
    status, row = client.post(
        "/tell", states=[[20], [21]], actions=[[1]], rewards=[0], truncated=True
    )
    assert (status, row["episode"]) == (200, 2)


def test_answers_are_as_described(client):
    """Each answer fits the schema that the description promises."""
    answers = {
        "/": client.get("/"),
        "/ask": client.post("/ask", observation=[20.0]),
        "/act": client.post("/act", observation=[20.0]),
        "/tell": client.post("/tell", observation=[20.0], reward=1.0),
        "/episodes": client.get("/episodes"),
    }
    for endpoint in ENDPOINTS:
        if endpoint.path in answers:
            status, answer = answers[endpoint.path]
            assert status == 200
            require(answer, endpoint.returns)
    assert answers["/"][1]["coordinates"] == ["temperature"]
    assert client.get("/openapi.json") == (200, json.loads(json.dumps(openapi())))


def check_schema(schema):
    """The rules of OpenAPI 3.0 for a schema."""
    if "$ref" in schema:
        assert schema == {"$ref": "#/components/schemas/Error"}
        return
    known = {"type", "properties", "required", "additionalProperties", "items", "description"}
    assert set(schema) <= known | {"minimum", "minItems", "enum", "nullable"}
    assert schema["type"] in {"object", "array", "number", "integer", "boolean", "string"}
    assert set(schema.get("required", [])) <= set(schema.get("properties", {}))
    for inner in (*schema.get("properties", {}).values(), *filter(None, [schema.get("items")])):
        check_schema(inner)


@pytest.mark.parametrize("token", [False, True])
def test_the_description_is_openapi(token):
    document = json.loads(json.dumps(openapi(token)))
    assert re.fullmatch(r"3\.0\.\d+", document["openapi"])
    assert set(document["info"]) == {"title", "version"}
    names = []
    for path, item in document["paths"].items():
        assert path.startswith("/")
        for method, operation in item.items():
            assert method in ("get", "post")
            names.append(operation["operationId"])
            assert set(operation) <= {"operationId", "summary", "responses", "requestBody"}
            for status, response in operation["responses"].items():
                assert re.fullmatch(r"[1-5]\d\d", status)
                assert response["description"]
                check_schema(response["content"]["application/json"]["schema"])
            if method == "post":
                content = operation["requestBody"]["content"]["application/json"]
                check_schema(content["schema"])
                require(content["example"], content["schema"])
    assert len(set(names)) == len(names)
    check_schema(document["components"]["schemas"]["Error"])
    assert ("security" in document) == token
    if token:
        (name,) = document["security"][0]
        assert document["components"]["securitySchemes"][name]["scheme"] == "bearer"


def test_a_token_is_needed_where_there_is_one(service):
    with running(service, token="open sesame") as (client, server):
        assert client.get("/health")[0] == 200
        for wrong in (None, "open", "open sesame ", "öpen"):
            other = Client(server, None)
            header = {} if wrong is None else {"Authorization": f"Bearer {wrong}".encode()}
            for method, path in (("GET", "/"), ("GET", "/openapi.json"), ("POST", "/ask")):
                status, error = other.send(method, path, {}, header)
                assert status == 401
                assert set(error) == {"error"}
        assert service.health()["episode"] is None


def test_it_listens_elsewhere_with_a_token_only(service):
    for host in ("0.0.0.0", "::", "192.0.2.1", "lab.example", ""):
        for token in (None, ""):
            with pytest.raises(ArgumentError, match="token"):
                HTTPServer(service, host, token=token)
    with pytest.raises(ArgumentError, match="token"):
        HTTPServer(service, token=" ")


def test_web_pages_cannot_send_requests(client):
    """They cannot set the type of the body, and their "Host" is that of a site."""
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        assert client.send("POST", "/ask", {}, {"Content-Type": kind})[0] == 415
    assert client.send("GET", "/", None, {"Host": "page.example:80"})[0] == 403
    assert client.send("GET", "/", None, {"Host": f"localhost:{client.port}"})[0] == 200
    assert client.send("OPTIONS", "/ask")[0] == 405


def test_statuses(client):
    assert client.get("/nothing")[0] == 404
    assert client.get("/ask")[0] == 405
    assert client.send("DELETE", "/episodes")[0] == 405
    assert client.post("/act", observation=[1.0])[0] == 409
    status, error = client.post("/ask", observatoin=[1.0])
    assert status == 400
    assert "did you mean 'observation'" in error["error"]
    length = {"Content-Length": str(http_server.LARGEST_BODY + 1)}
    assert client.send("POST", "/ask", b"{}", length)[0] == 413
    assert client.send("POST", "/ask", b"{}", {"Content-Length": "two"})[0] == 411


def test_many_requests_on_one_connection(client):
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=60)
    headers = {"Content-Type": "application/json"}
    for path, status in (("/ask", 200), ("/nothing", 404), ("/act", 400), ("/health", 405)) * 3:
        connection.request("POST", path, b"{}", headers)
        answer = connection.getresponse()
        assert answer.status == status
        answer.read()
    connection.close()


def test_requests_at_once_are_answered_or_refused(client):
    """One act of several at once is a step. The others are refused, and count nothing."""
    client.post("/ask", observation=[20.0])
    client.post("/act", observation=[20.0])
    start, answers = threading.Barrier(8), []

    def act(number):
        start.wait()
        answers.append(client.post("/act", observation=[30.0 + number], reward=-1.0, period=1))

    threads = [threading.Thread(target=act, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(status for status, _ in answers) == [200] + 7 * [409]
    assert client.get("/health")[1]["period"] == 2


def test_an_error_of_the_server_stops_it_without_a_traceback(tmp_path, monkeypatch, capfd):
    with Service(plant().make_agent(), tmp_path / "heater") as service:
        server = HTTPServer(service)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setattr(service, "health", lambda: 1 / 0)
        status, error = Client(server).get("/health")
        assert status == 500
        assert "ZeroDivision" not in error["error"]
        thread.join(60)
        assert not thread.is_alive()
        assert isinstance(server.failure, ZeroDivisionError)
        server.server_close()
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_a_client_that_vanishes_does_no_harm(client, capfd):
    for sent in (b"", b"POST /ask HTTP/1.1\r\nContent-Length: 50\r\n\r\n{"):
        with socket.create_connection(("127.0.0.1", client.port)) as connection:
            connection.sendall(sent)
    assert client.get("/health")[0] == 200


def fuzz_module():
    path = ROOT / "benchmarks" / "serve" / "fuzz.py"
    spec = importlib.util.spec_from_file_location("fuzz", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_malformed_requests_change_nothing(service, capfd):
    """``benchmarks/serve/fuzz.py`` sends ten thousand."""
    fuzz = fuzz_module()
    with running(service) as (client, server):
        client.post("/ask", observation=[20.0])
        client.post("/act", observation=[20.0])
        before = fuzz.snapshot(service)
        seen, wrong = fuzz.fuzz(server, 400, seed=1)
        assert wrong == []
        assert len({kind for kind, _ in seen}) == len(fuzz.KINDS)
        assert fuzz.snapshot(service) == before
        assert client.post("/act", observation=[20.0], reward=-1.0)[0] == 200
    assert "Traceback" not in capfd.readouterr().err
