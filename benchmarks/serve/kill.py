"""Kill -9 a server at random moments, start it again each time, and compare what is on disk.

python benchmarks/serve/kill.py --kills 20

The client sends every request with its period, and repeats it if there was no answer. In the end,
the journal and the learned episodes must hold every action that was answered, each step once.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import numpy as np

from kernelmdp.serving import open_agent
from kernelmdp.serving.agent_source import reopened

PLANT = """
horizon = 20
[states]
temperature = [0.0, 100.0]
[actions]
power = [0.0, 1.0]
[settings]
planner = {name = "grid", state_points = [21], action_points = [5]}
"""


class Server:
    """A server that is killed and started again."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.path, self.folder, self.kills = folder / "heater.toml", folder / "out", 0
        self.doomed = False
        self.path.write_text(PLANT)
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "kmdp", "serve", str(self.path)]
        command += ["--out", str(self.folder), "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = next(line for line in self.process.stdout if line.startswith("listening"))
        self.address, self.doomed = line.split()[-1], False

    def kill_after(self, seconds: float) -> None:
        self.kills, self.doomed = self.kills + 1, True
        process = self.process

        def kill() -> None:
            time.sleep(seconds)
            os.kill(process.pid, signal.SIGKILL)

        threading.Thread(target=kill, daemon=True).start()

    def post(self, path: str, **body: object) -> dict:
        """Send a request until it is answered."""
        while True:
            headers = {"Content-Type": "application/json"}
            data = json.dumps(body).encode()
            request = urllib.request.Request(self.address + path, data, headers)
            try:
                with urllib.request.urlopen(request, timeout=300) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                raise SystemExit(f"{path} {body}: {error.read().decode()}") from None
            except (urllib.error.URLError, ConnectionError, json.JSONDecodeError, OSError):
                self.process.wait()
                self.start()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, answered = random.Random(options.seed), []
    with tempfile.TemporaryDirectory() as home:
        server = Server(pathlib.Path(home))
        while server.kills < options.kills:
            temperature, actions, rewards, told = 20.0, [], [], {}
            states = [[temperature]]
            episode = server.post("/ask", observation=states[0])
            for period in range(episode["horizon"]):
                if server.kills < options.kills and not server.doomed and rng.random() < 0.2:
                    # An answer takes about two milliseconds, and learning a second.
                    server.kill_after(rng.choice([0.0, 0.003, 0.01, 0.3]) * rng.random())
                answer = server.post("/act", observation=states[-1], period=period, **told)
                actions.append(answer["action"])
                temperature += 8.0 * answer["action"][0] - 0.1 * (temperature - 20.0)
                rewards.append(-(((temperature - 60.0) / 40.0) ** 2))
                states.append([temperature])
                told = {"reward": rewards[-1]}
            row = server.post("/tell", observation=states[-1], episode=episode["episode"], **told)
            answered.append((states, actions, rewards))
            print(f"episode {row['episode']}: return {row['return']:.2f}, {server.kills} kills")
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
        agent = reopened(open_agent(server.path), server.folder / "agent.kmdp")
        same = len(agent.history) == len(answered)
        for learned, (states, actions, rewards) in zip(agent.history, answered, strict=True):
            same &= np.array_equal(learned.states, states)
            same &= np.array_equal(learned.actions, actions)
            same &= np.array_equal(learned.rewards, rewards)
        steps = sum(len(actions) for _, actions, _ in answered)
    print(f"{server.kills} kills, {len(answered)} episodes, {steps} steps answered: ", end="")
    print("all are there, each once" if same else "NOT ALL ARE THERE")
    raise SystemExit(not same)


if __name__ == "__main__":
    main()
