"""What random play and a planner on the true model earn on every plant.

    .venv/bin/python benchmarks/control/plants/reference.py

The planners know the equations. The cross-entropy method plans whole episodes from the start, from
several restarts. Then several controllers play: the best plan without feedback; replanning by the
cross-entropy method at every step, with several lengths of the look ahead, and against sampled
noise; and replanning by the iterative linear-quadratic regulator. The best mean is the reference
optimum. Twenty episodes with fixed seeds are played side by side; they are the episodes of
``env.reset(seed=...)``. Everything is done with half as many samples too: the difference, in units
of optimum minus random, says how far the search has converged. The better one of both counts. The
result is in ``reference.json``.
"""

import argparse
import json
import pathlib
import time

import gymnasium
import numpy as np
from catalogue import PLANTS, select
from cross_entropy import Search, first_plans, improve, share_plans, simulate
from ilqr import open_loop, polish, share
from plant import Plant

PLACE = pathlib.Path(__file__).parent / "reference.json"
COMMAND = ".venv/bin/python benchmarks/control/plants/reference.py"
#: Action sequences in an iteration. Sparse rewards have no slope, so that the local search cannot
#: help and the global one needs more.
DEFAULT_SAMPLES, SAMPLES = 128, {"two-link-arm": 512}
RANDOM_EPISODES = 200
EPISODES = 20
#: Seeds of the planned episodes begin here, and those of random play further on.
PLANNED_SEEDS, RANDOM_SEEDS = 5_000, 6_000
#: Steps that replanning looks ahead. Long plans are hard to find where the plant is unstable.
LOOKAHEADS = (8, 12, 20, None)
#: Iterations of the local search for the first plan and at every later step.
LOCAL_FIRST, LOCAL_AGAIN = 30, 3


def episodes(plant: Plant) -> tuple[np.ndarray, np.ndarray]:
    """Return first states (n, m) and noise (n, H, d) of the planned episodes."""
    states, noise = [], []
    for seed in range(PLANNED_SEEDS, PLANNED_SEEDS + EPISODES):
        rng = np.random.default_rng(seed)
        states.append(plant.initial_states(rng, 1)[0])
        noise.append(rng.standard_normal((plant.horizon, plant.noise_dimension)))
    return np.stack(states), np.stack(noise)


def control(
    plant: Plant, states: np.ndarray, noise: np.ndarray, plans: np.ndarray, search: Search
) -> np.ndarray:
    """Play episodes, planning the remaining steps again before each. Return the returns (n,)."""
    rng = np.random.default_rng(1)
    returns, alive = np.zeros(len(states)), np.ones(len(states), bool)
    for step in range(plant.horizon):
        ahead = plans[alive, : search.lookahead]
        ahead, _ = improve(plant, states[alive], ahead, 0.15, search.again, search, rng)
        plans[alive, : search.lookahead] = ahead
        states, rewards, terminated = plant.advance(states, plans[:, 0], noise[:, step])
        returns += np.where(alive, rewards, 0.0)
        alive &= ~terminated
        plans = plans[:, 1:].copy()
        if not alive.any():
            break
    return returns


def local_control(
    plant: Plant, states: np.ndarray, noise: np.ndarray, plans: np.ndarray
) -> dict[str, np.ndarray]:
    """Play episodes with the iterative linear-quadratic regulator, from plans (n, r, H, q).

    Returns:
        Returns (n,) by the name of the controller.
    """
    starts = np.repeat(states, plans.shape[1], axis=0)
    guides = open_loop(plant, starts, plans.reshape(-1, *plans.shape[2:]))
    guides = polish(plant, starts, guides, LOCAL_FIRST)
    guide = polish(plant, states, share(plant, states, guides), LOCAL_FIRST)
    guide = polish(plant, states, share(plant, states, guide), LOCAL_FIRST)
    returns = {"open loop, local": simulate(plant, states, guide.actions, noise)}
    total, alive = np.zeros(len(states)), np.ones(len(states), bool)
    for step in range(plant.horizon):
        guide = polish(plant, states, guide, LOCAL_AGAIN)
        states, rewards, terminated = plant.advance(states, guide.actions[:, 0], noise[:, step])
        total += np.where(alive, rewards, 0.0)
        alive &= ~terminated
        guide = guide.shifted()
    return returns | {"replanning, local": total}


def controllers(plant: Plant, samples: int) -> dict[str, np.ndarray]:
    """Return the returns of the controllers, by name."""
    states, noise = episodes(plant)
    every = first_plans(plant, states, Search(samples), np.random.default_rng(0))
    plans = share_plans(plant, states, every.reshape(-1, *every.shape[2:]))
    searches = {
        f"replanning {ahead or 'all'} steps": Search(samples, lookahead=ahead)
        for ahead in LOOKAHEADS
    }
    if plant.noise_dimension:
        search = Search(max(samples // 4, 32), scenarios=8, lookahead=12)
        searches["replanning 12 steps, sampled noise"] = search
    returns = {"open loop": simulate(plant, states, plans, noise)}
    for name, search in searches.items():
        returns[name] = control(plant, states, noise, plans.copy(), search)
    if isinstance(plant.action_space, gymnasium.spaces.Box) and "sparse" not in plant.reward_type:
        returns |= local_control(plant, states, noise, every)
    return returns


def random_returns(plant: Plant) -> np.ndarray:
    """Play uniformly random actions in the environment itself."""
    returns = []
    for seed in range(RANDOM_SEEDS, RANDOM_SEEDS + RANDOM_EPISODES):
        plant.reset(seed=seed)
        plant.action_space.seed(seed)
        total, done = 0.0, False
        while not done:
            _, reward, terminated, truncated, _ = plant.step(plant.action_space.sample())
            total, done = total + reward, terminated or truncated
        returns.append(total)
    return np.array(returns)


def summary(plant: Plant, samples: int) -> dict:
    """Return the numbers of one plant."""
    begin = time.perf_counter()
    played = random_returns(plant)
    half, whole = (controllers(plant, number) for number in (samples // 2, samples))
    returns = whole | {f"{name}, half": values for name, values in half.items()}
    best = max(returns, key=lambda name: returns[name].mean())
    gap = returns[best].mean() - played.mean()
    best_means = [max(each.mean() for each in found.values()) for found in (half, whole)]

    def error(values: np.ndarray) -> float:
        return float(values.std(ddof=1) / np.sqrt(len(values)))

    return {
        "random": float(played.mean()),
        "random_error": error(played),
        "optimum": float(returns[best].mean()),
        "optimum_error": error(returns[best]),
        "optimum_deviation": float(returns[best].std(ddof=1) / gap),
        "controller": best,
        "controllers": {name: float(values.mean()) for name, values in whole.items()},
        "change_from_half_the_samples": float((best_means[1] - best_means[0]) / gap),
        "seconds": round(time.perf_counter() - begin),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plants", nargs="+", default=["development", "held-back"])
    parser.add_argument("--samples", type=int, help="instead of those that a plant needs")
    parser.add_argument("--out", type=pathlib.Path, default=PLACE)
    chosen = parser.parse_args()
    stored = json.loads(chosen.out.read_text())["plants"] if chosen.out.exists() else {}
    for name in select(chosen.plants):
        samples = chosen.samples or SAMPLES.get(name, DEFAULT_SAMPLES)
        stored[name] = {"samples": samples} | summary(PLANTS[name](), samples)
        print(name, json.dumps(stored[name]), flush=True)
        ordered = {each: stored[each] for each in PLANTS if each in stored}
        content = json.dumps({"command": COMMAND, "plants": ordered}, indent=1)
        part = chosen.out.with_suffix(".part")
        part.write_text(content + "\n")
        part.replace(chosen.out)


if __name__ == "__main__":
    main()
