"""Ask and tell: the loop is yours, the plant runs in another process and answers over HTTP.

The agent never touches the plant. It is told episodes that were logged before it existed, is asked
for the policy of the next batch, is told what happened, and is saved in between as it would be over
night. The aim, to hold 80 degrees, is known; how the oven works is not.

    python examples/ask_tell.py --out ask_tell.png
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import kernelmdp as km

TARGET, MINUTES = 80.0, 30
LOW, HIGH = [0.0, 0.0], [160.0, 160.0]


# --8<-- [start:problem]
def comfort(z: Any) -> Any:
    """The reward of a minute at points z = (temperature, heater, power): 1 at the target."""
    return jnp.exp(-0.5 * ((z[:, 0] - TARGET) / 15.0) ** 2) - 0.1 * z[:, 2]


def learner() -> km.PSRL:
    """All that is known: which numbers there are, how long a batch is, what is wanted."""
    problem = km.Problem.from_spaces(
        states=km.Box(low=LOW, high=HIGH),  # degrees of oven and heater
        actions=km.Box(low=[0.0], high=[1.0]),  # power
        horizon=MINUTES,
        name="oven",
    )
    planner = km.GridPlanner(state_points=(33, 33), action_points=(6,))
    return km.PSRL(problem, reward=comfort, planner=planner, seed=0)


# --8<-- [end:problem]


def batch(address: str, policy: Callable[[Any, int], Any]) -> tuple[Any, Any, Any]:
    """One batch in the plant: states (H + 1, 2), actions (H, 1), rewards (H,)."""
    states, actions, rewards = [post(address, "reset")], [], []
    for minute in range(MINUTES):
        action = policy(states[-1], minute)
        point = jnp.asarray([[*states[-1], *action]])
        rewards.append(float(comfort(point)[0]))
        actions.append(action)
        states.append(post(address, "step", power=float(action[0])))
    return np.array(states), np.array(actions), np.array(rewards)


def post(address: str, command: str, **words: float) -> list[float]:
    """Ask the plant; the answer as a state."""
    data = json.dumps(words).encode()
    with urllib.request.urlopen(f"{address}/{command}", data=data, timeout=10) as answer:
        measured = json.load(answer)
    return list(np.clip([measured["temperature"], measured["heater"]], LOW, HIGH))


def main() -> None:
    """Logged batches, then batches of the agent's own; saved and loaded half-way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="ask_tell.png", help="where the figure goes")
    parser.add_argument("--episodes", type=int, default=6, help="batches")
    options = parser.parse_args()
    program = pathlib.Path(__file__).with_name("plant.py")
    with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True) as plant:
        try:
            assert plant.stdout is not None
            returns, paths = control(f"http://127.0.0.1:{int(plant.stdout.readline())}", options)
        finally:
            plant.terminate()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    left.plot(range(len(returns)), returns, "o-")
    left.set(xlabel="batch (0: logged)", ylabel="return")
    for number in sorted({0, 1, options.episodes}):
        right.plot(paths[number][:, 0], label="logged" if number == 0 else f"batch {number}")
    right.axhline(TARGET, color="black", ls="--", lw=1)
    right.set(xlabel="minute", ylabel="temperature")
    right.legend(frameon=False)
    figure.savefig(options.out, dpi=100)
    print(f"figure: {options.out}")


# --8<-- [start:loop]
def control(address: str, options: argparse.Namespace) -> tuple[list[float], list[Any]]:
    """Returns and states of every batch, the logged one first."""
    agent = learner()
    rng = np.random.default_rng(0)
    logged = batch(address, lambda state, minute: rng.uniform(0, 1, 1))  # somebody turned a knob
    agent.tell(*logged)  # data from before: any number of episodes
    returns, paths = [float(logged[2].sum())], [logged[0]]
    for number in range(1, options.episodes + 1):
        states, actions, rewards = batch(address, agent.ask())
        agent.tell(states, actions, rewards)
        returns.append(float(rewards.sum()))
        paths.append(states)
        print(f"batch {number}: return {returns[-1]:.2f}, ends at {states[-1, 0]:.1f} degrees")
        if number == (options.episodes + 1) // 2:  # the day ends here
            with tempfile.TemporaryDirectory() as folder:
                agent.save(f"{folder}/oven.kmdp")
                agent = km.load(
                    f"{folder}/oven.kmdp", task=learner().problem, reward=comfort
                )  # and another begins
    return returns, paths


# --8<-- [end:loop]

if __name__ == "__main__":
    main()
