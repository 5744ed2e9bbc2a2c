"""A plant that is controlled over HTTP, with the standard library only.

It stands for LabVIEW, MATLAB, a ROS node or the gateway of a PLC: whatever can send JSON. Start the
server in one terminal and this client in another.

    kmdp serve examples/oven.toml --out runs/oven
    python examples/serve_client.py --address http://127.0.0.1:8470 --episodes 6
"""

import argparse
import json
import os
import random
import time
import urllib.error
import urllib.request

TARGET, ROOM = 80.0, 20.0


class Oven:
    """The plant. Power warms it, the room cools it. Put your instruments here."""

    def __init__(self) -> None:
        self.temperature = ROOM

    def measured(self) -> list[float]:
        """The observation: what the instruments say, within the limits of the description."""
        return [min(max(self.temperature + random.gauss(0.0, 0.2), 0.0), 160.0)]

    def apply(self, power: float) -> float:
        """Hold a power for one period. Returns the reward: 0 at the target, negative elsewhere."""
        self.temperature += 12.0 * power - 0.1 * (self.temperature - ROOM)
        return -(((self.temperature - TARGET) / 40.0) ** 2) - 0.02 * power


# --8<-- [start:post]
def post(address: str, path: str, **body: object) -> dict:
    """Send a request. If the server is away for a moment, the same request is sent again."""
    headers = {"Content-Type": "application/json"}
    if "KMDP_TOKEN" in os.environ:
        headers["Authorization"] = "Bearer " + os.environ["KMDP_TOKEN"]
    request = urllib.request.Request(address + path, json.dumps(body).encode(), headers)
    for _ in range(30):
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:  # refused, and the server says why
            raise SystemExit(f"{path}: {json.load(error)['error']}") from None
        except (urllib.error.URLError, ConnectionError):
            time.sleep(1.0)
    raise SystemExit(f"there is no server at {address}")


# --8<-- [end:post]
# --8<-- [start:loop]
def play(address: str) -> dict:
    """One episode: ask, act in every period, and tell how it ended."""
    oven = Oven()
    observation = oven.measured()
    episode = post(address, "/ask", observation=observation)
    told: dict = {}  # what the last action earned; nothing before the first
    for period in range(episode["horizon"]):
        answer = post(address, "/act", observation=observation, period=period, **told)
        told = {"reward": oven.apply(answer["action"][0])}
        observation = oven.measured()
    return post(address, "/tell", observation=observation, episode=episode["episode"], **told)


# --8<-- [end:loop]


def main() -> None:
    """Play some episodes, and print their returns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--address", default="http://127.0.0.1:8470", help="the server")
    parser.add_argument("--episodes", type=int, default=6)
    options = parser.parse_args()
    for _ in range(options.episodes):
        row = play(options.address)
        print(f"episode {row['episode']}: return {row['return']:.2f} in {row['steps']} steps")


if __name__ == "__main__":
    main()
