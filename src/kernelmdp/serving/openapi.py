"""The description of the endpoints in OpenAPI 3, from which clients can be generated."""

from typing import Any

from kernelmdp.serving.endpoints import ENDPOINTS, Endpoint, record
from kernelmdp.version import __version__

#: What each status means.
STATUSES = {
    "400": "The request is malformed. Nothing was changed.",
    "401": "The token is missing or wrong.",
    "409": "The request does not fit what is under way. Nothing was changed.",
    "413": "The body is too large.",
    "415": "The body is not declared as application/json.",
}


def openapi(token: bool = False) -> dict[str, Any]:
    """Describe all endpoints.

    Args:
        token: Whether a bearer token is needed.

    Returns:
        A document of OpenAPI 3.0.

    >>> sorted(openapi()["paths"])
    ['/', '/act', '/ask', '/episodes', '/health', '/tell']
    """
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    document: dict[str, Any] = {
        "openapi": "3.0.3",
        "info": {"title": "kernelmdp: ask, act and tell", "version": __version__},
        "paths": paths,
        "components": {"schemas": {"Error": record({"error": {"type": "string"}}, "error")}},
    }
    if token:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    error = _content({"$ref": "#/components/schemas/Error"})
    failures = {status: {"description": text} | error for status, text in STATUSES.items()}
    if endpoint.takes is None:
        failures = {"401": failures["401"]}
    name = endpoint.path.strip("/") or "description"
    operation: dict[str, Any] = {
        "operationId": name,
        "summary": endpoint.summary,
        "responses": {"200": {"description": "Done."} | _content(endpoint.returns)} | failures,
    }
    if endpoint.takes is not None:
        body = _content(endpoint.takes)
        body["content"]["application/json"]["example"] = endpoint.example
        operation["requestBody"] = {"required": True} | body
    return operation


def _content(schema: Any) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}
