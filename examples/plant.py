"""A plant behind HTTP, for examples/ask_tell.py: an oven with a lag, in the standard library only.

POST /reset starts a batch at room temperature, POST /step with {"power": 0..1} runs one minute;
both answer with {"temperature": ..., "heater": ...}, measured. It prints the port it listens on.

    python examples/plant.py
"""

import http.server
import json
import random

ROOM = 20.0


class Oven:
    """Power warms the heater, the heater warms the oven, the room cools it."""

    def __init__(self) -> None:
        self.random = random.Random(0)
        self.reset()

    def reset(self) -> dict[str, float]:
        """A new batch, at room temperature."""
        self.temperature, self.heater = ROOM, ROOM
        return self.measured()

    def step(self, power: float) -> dict[str, float]:
        """One minute at some power."""
        power = min(max(power, 0.0), 1.0)
        self.heater += 0.5 * (ROOM + 130.0 * power - self.heater) + self.random.gauss(0, 0.5)
        self.temperature += 0.3 * (self.heater - self.temperature) + 0.1 * (ROOM - self.temperature)
        return self.measured()

    def measured(self) -> dict[str, float]:
        """What the instruments say."""
        return {"temperature": self.temperature, "heater": self.heater}


class Handler(http.server.BaseHTTPRequestHandler):
    """The two requests."""

    oven = Oven()

    def do_POST(self) -> None:
        """Answer /reset and /step."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/reset":
            answer = self.oven.reset()
        elif self.path == "/step":
            answer = self.oven.step(float(json.loads(body)["power"]))
        else:
            self.send_error(404)
            return
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Silence."""


if __name__ == "__main__":
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
