"""Serving: ask, act and tell over HTTP, for machines that are not programmed in Python.

>>> import tempfile
>>> plant = Plant("heater", {"temperature": (0, 100)}, {"power": (0, 1)}, horizon=40)
>>> with tempfile.TemporaryDirectory() as folder:
...     with Service(plant.make_agent(), folder) as service:
...         episode = service.ask([20.0])["episode"]
...         action = service.act([20.0])["action"]
>>> episode, len(action)
(1, 1)
"""

from kernelmdp.serving.agent_source import open_agent
from kernelmdp.serving.http_server import HTTPServer, require_token, serve
from kernelmdp.serving.openapi import openapi
from kernelmdp.serving.plant import Plant
from kernelmdp.serving.request_error import RequestError
from kernelmdp.serving.service import Service

__all__ = [
    "HTTPServer",
    "Plant",
    "RequestError",
    "Service",
    "open_agent",
    "openapi",
    "require_token",
    "serve",
]
