"""From the files of a data logger to a controller: look, learn, plan an episode, run, export.

The plant is a carriage on a rail. The logger writes its position, not its velocity, and the motor
acts one step late. The guide docs/from-your-data-logger.md goes through this file.

    python examples/data_logger.py --out data_logger.png
"""

import argparse
import pathlib
import tempfile
from typing import Any

import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import kernelmdp as km

STEPS, TARGET = 40, 1.0  # an episode is 4 seconds; metres


# --8<-- [start:plant]
class Carriage:
    """Stands for your plant: it shows a position in metres and takes a voltage."""

    def __init__(self, position: float, seed: int) -> None:
        self.position, self.velocity, self.voltage = position, 0.0, 0.0
        self.rng = np.random.default_rng(seed)

    def read(self) -> list[float]:
        """The position, with the noise of the sensor."""
        return [self.position + 0.0005 * self.rng.standard_normal()]

    def write(self, voltage: float) -> None:
        """One step of 0.1 seconds. The motor still has the voltage of the step before."""
        self.velocity += 0.1 * (2.0 * self.voltage - self.velocity)
        self.position += 0.1 * self.velocity
        self.voltage = float(voltage)


def logged(rows: int, seed: int) -> pd.DataFrame:
    """What the logger wrote while somebody turned a knob."""
    carriage, rng = Carriage(0.2 * seed, seed), np.random.default_rng(seed)
    table = []
    for row in range(rows):
        if row % 5 == 0:
            voltage = rng.uniform(-1, 1)
        table.append((0.1 * row, carriage.read()[0], voltage))
        carriage.write(voltage)
    return pd.DataFrame(table, columns=["time_s", "position_m", "motor_V"])


def write_files(folder: pathlib.Path) -> list[pathlib.Path]:
    """Two files. In one of them the sensor was silent for half a second."""
    monday, tuesday = logged(120, seed=0), logged(80, seed=1)
    monday.loc[40:44, "position_m"] = np.nan
    monday.to_csv(folder / "monday.csv", index=False)
    tuesday.to_csv(folder / "tuesday.csv", index=False)
    return [folder / "monday.csv", folder / "tuesday.csv"]


# --8<-- [end:plant]


# --8<-- [start:agent]
def reward(z: Any) -> Any:
    """What is wanted, at points z = (position, voltage): the target, with little voltage."""
    return -jnp.abs(z[:, 0] - TARGET) - 0.02 * z[:, 1] ** 2


def make_agent(**settings: Any) -> km.PSRL:
    """An agent that knows the spaces, the length of an episode and what is wanted."""
    problem = km.Problem.from_spaces(
        states=km.Box([-2.0], [3.0]),  # metres: what the sensor can show
        actions=km.Box([-1.0], [1.0]),  # volts
        horizon=STEPS,
        coordinates=("position",),
        name="carriage",
    )
    return km.PSRL(problem, reward=reward, seed=0, **settings)


COLUMNS: dict[str, Any] = {"states": "position_m", "actions": "motor_V"}
# --8<-- [end:agent]

# A distillation with the defaults takes minutes.
FAST = {"width": 16, "rounds": 2, "states": 200, "steps": 500, "episodes": 4, "loss_episodes": 4}


def main() -> None:
    """Look at the files, learn from them, play, run the controller, export it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="data_logger.png", help="where the figure goes")
    parser.add_argument("--episodes", type=int, default=2, help="planned episodes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        paths = control(pathlib.Path(name), options.episodes)
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for label, path in paths.items():
        axes.plot(0.1 * np.arange(len(path)), path, label=label)
    axes.axhline(TARGET, color="black", ls="--", lw=1)
    axes.set(xlabel="seconds", ylabel="position (m)")
    axes.legend(frameon=False)
    figure.savefig(options.out, dpi=100)
    print(f"figure: {options.out}")


def control(folder: pathlib.Path, episodes: int) -> dict[str, np.ndarray]:
    """Positions in each part."""
    files = write_files(folder)
    paths = {"logged": logged(80, seed=1)["position_m"].to_numpy()[: STEPS + 1]}
    # --8<-- [start:look]
    print(make_agent().tell_csv(files, **COLUMNS, learn=False))
    # --8<-- [end:look]
    # --8<-- [start:tell]
    planner = {"name": "mpc", "horizon": 15, "samples": 32}
    agent = make_agent(history=2, delay=1, planner=planner)
    agent.tell_csv(files, **COLUMNS)
    print(agent.problem.coordinates, "after", agent.episode, "logged episodes")
    agent.save(folder / "carriage.kmdp")
    # --8<-- [end:tell]
    # --8<-- [start:episode]
    for number in range(1, episodes + 1):
        carriage, actions = Carriage(0.0, seed=10 + number), []
        states = [carriage.read()]
        player = agent.ask(states[0]).player()  # it remembers what it saw and did
        for period in range(STEPS):
            actions.append(player(states[-1], period))
            carriage.write(actions[-1][0])
            states.append(carriage.read())
        rewards = reward(jnp.concatenate([jnp.array(states[:-1]), jnp.array(actions)], axis=1))
        agent.tell(states, actions, rewards)
        error = agent.learner.info(agent.state)["one_step_error"]
        print(f"episode {number}: return {rewards.sum():.2f}, error of a step {error:.1%}")
        # --8<-- [end:episode]
        paths[f"episode {number}"] = np.array(states)[:, 0]
    # --8<-- [start:run]
    carriage = Carriage(0.0, seed=20)
    with agent.controller(time_limit=0.1, fallback=[0.0]) as controller:
        controller.reset(carriage.read())  # plans the first action before the machine starts
        for _ in range(STEPS):
            carriage.write(controller(carriage.read())[0])
        print(f"the controller ends at {carriage.position:.2f} m")
    # --8<-- [end:run]
    # --8<-- [start:export]
    print(agent.export(folder / "carriage.c", **FAST))
    # --8<-- [end:export]
    return paths


if __name__ == "__main__":
    main()
