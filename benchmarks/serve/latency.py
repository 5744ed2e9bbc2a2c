"""What ``kmdp serve`` adds to the planner's own time, at 50 requests a second.

python benchmarks/serve/latency.py --seconds 600

The server is a process of its own. It serves the controller of an agent that learned from one
episode of random actions, with ``--predict``. The client runs the plant. For each ``/act`` it
measures the time from the request to the parsed answer, and subtracts the milliseconds that the
server says the decision took. The rest is HTTP, JSON, checks, journal and disk. With ``--sync
step`` an action waits until its observation is on disk, so the disk's own time is in the rest; with
``--sync behind`` it is not.
"""

from __future__ import annotations

import argparse
import gc
import http.client
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

from kernelmdp.serving import Plant

#: The bar: milliseconds beyond the planner's own time, in 99 of 100 requests.
BAR = 2.0
STEP = 0.02


def after(state: np.ndarray, action: float, rng: np.random.Generator) -> np.ndarray:
    """A cart on a spring: position, speed, and how far the motor has followed."""
    position, speed, motor = state
    change = np.array([speed, 4.0 * motor - 2.0 * position - 0.5 * speed, 5.0 * (action - motor)])
    moved = state + STEP * change + 0.002 * rng.standard_normal(3)
    return np.clip(moved, [-2.0, -5.0, -1.0], [2.0, 5.0, 1.0])


def reward(state: np.ndarray) -> float:
    return -float((state[0] - 0.5) ** 2)


def learned_agent(planner: str, folder: pathlib.Path) -> pathlib.Path:
    """Describe the plant, and save an agent that learned from one episode of random actions."""
    plant = {
        "name": "cart",
        "states": {"position": [-2.0, 2.0], "speed": [-5.0, 5.0], "motor": [-1.0, 1.0]},
        "actions": {"force": [-1.0, 1.0]},
        "horizon": 100,
        "agent": "greedy",
        "settings": {"planner.name": planner},
    }
    if planner == "grid":
        plant["settings"] |= {"planner.state_points": [9, 9, 9], "planner.action_points": [7]}
    agent = Plant.of(plant).make_agent()
    rng = np.random.default_rng(0)
    states, actions = [np.zeros(3)], np.repeat(rng.uniform(-1, 1, (20, 1)), 5, axis=0)
    for action in actions:
        states.append(after(states[-1], action[0], rng))
    agent.tell(np.stack(states), actions, np.array([reward(state) for state in states[1:]]))
    agent.save(folder / "agent.kmdp")
    settings = "\n".join(f"{name} = {json.dumps(v)}" for name, v in plant.pop("settings").items())
    tables = [
        f"[{part}]\n" + "\n".join(f"{name} = {pair}" for name, pair in plant.pop(part).items())
        for part in ("states", "actions")
    ]
    lines = [f"{name} = {json.dumps(value)}" for name, value in plant.items()]
    path = folder / "cart.toml"
    path.write_text("\n".join([*lines, *tables, "[settings]", settings]))
    return path


def measure(port: int, seconds: float, rate: float) -> np.ndarray:
    """Milliseconds in all, of the planner, and beyond, of each request, (n, 3)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def post(path: str, **body: object) -> tuple[dict, float]:
        content = json.dumps(body)
        begin = time.perf_counter()
        connection.request("POST", path, content, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        parsed = json.loads(answer.read())
        elapsed = 1e3 * (time.perf_counter() - begin)
        assert answer.status == 200, parsed
        return parsed, elapsed

    rng, state = np.random.default_rng(1), np.zeros(3)
    post("/ask", observation=state.tolist())
    gc.collect()
    gc.freeze()
    count, rows = int(seconds * rate), []
    start = time.perf_counter()
    for period in range(count):
        time.sleep(max(0.0, start + period / rate - time.perf_counter()))
        told = {} if period == 0 else {"reward": reward(state)}
        answer, elapsed = post("/act", observation=state.tolist(), period=period, **told)
        rows.append((elapsed, answer["milliseconds"], elapsed - answer["milliseconds"]))
        state = after(state, answer["action"][0], rng)
    print(f"{count} requests in {time.perf_counter() - start:.0f} s")
    return np.array(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--rate", type=float, default=50.0, help="requests a second")
    parser.add_argument("--planner", default="mpc", choices=["mpc", "grid"])
    parser.add_argument("--sync", default="step", choices=["step", "behind"])
    parser.add_argument("--time-limit", type=float, help="milliseconds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        folder = pathlib.Path(home)
        path = learned_agent(options.planner, folder)
        command = [sys.executable, "-m", "kmdp", "serve", str(path), "--out", home]
        command += ["--predict", "--port", "0", "--sync", options.sync]
        if options.time_limit is not None:
            command += ["--time-limit", str(options.time_limit)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            line = next(line for line in server.stdout if line.startswith("listening"))
            rows = measure(int(line.rsplit(":", 1)[1]), options.seconds, options.rate)
        finally:
            server.terminate()
            server.wait()
        lines = (folder / "predicted" / "000001.jsonl").read_text().splitlines()
        sources = [event["source"] for event in map(json.loads, lines) if event["event"] == "acted"]
    counts = {source: sources.count(source) for source in dict.fromkeys(sources)}
    print(f"planner {options.planner}, sync {options.sync}, sources {counts}")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'milliseconds':22} {'p50':>8} {'p99':>8} {'p99.9':>8} {'largest':>8}")
    for name, column in zip(("in all", "planner", "beyond the planner"), rows.T, strict=True):
        numbers = np.percentile(column, [50, 99, 99.9, 100])
        print(f"{name:22} " + " ".join(f"{number:8.2f}" for number in numbers))
    reached = np.percentile(rows[:, 2], 99)
    print(f"p99 beyond the planner: {reached:.2f} ms, bar {BAR:g} ms: ", end="")
    print("reached" if reached < BAR else "missed")


if __name__ == "__main__":
    main()
