"""What random play, the fallback and planners on the true model earn on every system.

    .venv/bin/python benchmarks/safety/reference.py

The planners know the equations. The cross-entropy method plans whole episodes from some starts, and
the iterative linear-quadratic regulator improves the plans. At every step of an episode it improves
the rest of the plan again. The unconstrained optimum ignores the constraints. The constrained
optimum pays for each violation in its plans, and keeps a distance from the limits, because noise
moves the state after the plan. The distance is the shortest of a list with which at most one of the
200 selection episodes has a violation. Its numbers are from 200 other episodes, those of
``env.reset(seed=...)``. Everything but the choice of the distance is done with half as many samples
too: the difference says how far the search has converged. The result is in ``reference.json``.
"""

import argparse
import json
import pathlib
import time
from collections.abc import Callable

import numpy as np
import plants_path  # noqa: F401
from constrained import ConstrainedPlant
from cross_entropy import Search, first_plans, improve
from ilqr import open_loop, polish, share
from plant import Plant
from systems import SYSTEMS, select

PLACE = pathlib.Path(__file__).parent / "reference.json"
COMMAND = ".venv/bin/python benchmarks/safety/reference.py"
#: Action sequences in an iteration of the cross-entropy method.
SAMPLES = 128
#: Episodes of random play and of the fallback, and of each planner. Seeds of the planners'
#: episodes, of those that choose the distance, and of the others begin at fixed numbers.
MANY, EPISODES = 1_000, 200
PLANNED_SEEDS, SELECTION_SEEDS, MANY_SEEDS = 5_000, 6_000, 7_000
#: Starts from which the global search plans. Starts are narrow, so that all others share its plans.
SEARCHED = 4
#: Iterations of the local search for the first plan and at every later step.
LOCAL_FIRST, LOCAL_AGAIN = 30, 2
#: Episodes that are planned together. More do not fit into the cache.
BATCH = 50
#: Distances from the limits, in units of ``ConstrainedPlant.scale``.
DISTANCES = (0.005, 0.01, 0.02, 0.03, 0.045, 0.065, 0.09, 0.12, 0.16, 0.2, 0.25)
#: What plans pay for a violation as large as the scale: a linear and a quadratic part. Rewards of a
#: step are about 1, so that a violation of a hundredth of the scale does not pay.
LINEAR, QUADRATIC = 30.0, 300.0
#: Shares of this price that some searches begin with.
LENIENT = (0.01, 0.1)

Returns = tuple[np.ndarray, np.ndarray]


class PenalisedPlant(Plant):
    """A system as a planner sees it: violations are paid for.

    Args:
        system: The system.
        distance: How far to stay from the limits, in units of their scales. None means that
            constraints are ignored.
        weight: A factor of what is paid.
    """

    def __init__(self, system: ConstrainedPlant, distance: float | None, weight: float = 1.0):
        self.system, self.distance, self.weight = system, distance, weight
        self.observation_space, self.action_space = system.observation_space, system.action_space
        self.horizon, self.noise_dimension = system.horizon, system.noise_dimension

    def initial_states(self, rng, n):
        return self.system.initial_states(rng, n)

    def transition(self, states, actions, noise):
        states, rewards, ended = self.system.transition(states, actions, noise)
        if self.distance is not None:
            beyond = self.system.margins(states, actions) / np.array(self.system.scale)
            beyond = np.maximum(beyond + self.distance, 0.0)
            price = (LINEAR * beyond + QUADRATIC * beyond**2).sum(axis=1)
            rewards = rewards - self.weight * price
        return states, rewards, ended


def episodes(system: Plant, seed: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return first states (n, m) and noise (n, H, d) of the episodes with seeds from ``seed``."""
    states, noise = [], []
    for each in range(seed, seed + number):
        rng = np.random.default_rng(each)
        states.append(system.initial_states(rng, 1)[0])
        noise.append(rng.standard_normal((system.horizon, system.noise_dimension)))
    return np.stack(states), np.stack(noise)


def play(
    system: ConstrainedPlant,
    states: np.ndarray,
    noise: np.ndarray,
    controller: Callable[[np.ndarray, int], np.ndarray],
) -> Returns:
    """Play episodes side by side. Return the returns (n,) and the violating steps (n,)."""
    returns, violations = np.zeros(len(states)), np.zeros(len(states), int)
    for step in range(system.horizon):
        actions = controller(states, step)
        states, rewards, _ = system.advance(states, actions, noise[:, step])
        returns += rewards
        violations += system.violates(states, actions)
    return returns, violations


def search_plans(
    system: ConstrainedPlant, distance: float | None, samples: int, starts: np.ndarray
) -> np.ndarray:
    """Search globally for plans (n, r, H, q) of whole episodes from starts (n, m).

    Some searches begin with any actions, others with those of the fallback, or with plans that pay
    less for violations: a high price at once makes it hard to find a way between the limits.
    """
    seen, search = PenalisedPlant(system, distance), Search(samples)
    rng = np.random.default_rng(0)
    plans = [first_plans(seen, starts, search, rng)]
    if distance is not None:
        lenient = [
            first_plans(PenalisedPlant(system, distance, weight), starts, search, rng)
            for weight in LENIENT
        ]
        safe = []
        still = np.zeros((len(starts), system.horizon, system.noise_dimension))
        
        def remember(states: np.ndarray, step: int) -> np.ndarray:
            safe.append(np.clip(system.fallback_actions(states), *system.action_bounds))
            return safe[-1]

        play(system, starts, still, remember)
        for begin in [*lenient, np.stack(safe, axis=1)[:, None]]:
            n, restarts = begin.shape[:2]
            repeated = np.repeat(starts, restarts, axis=0)
            begin = begin.reshape(n * restarts, *begin.shape[2:])
            better, _ = improve(seen, repeated, begin, 0.2, search.first, search, rng)
            plans.append(better.reshape(n, restarts, *better.shape[1:]))
    return np.concatenate(plans, axis=1)


def replan(system: ConstrainedPlant, distance: float | None, samples: int) -> Callable:
    """Search for plans. Return a function of first states and noise that plays by replanning."""
    seen = PenalisedPlant(system, distance)
    starts, _ = episodes(system, SELECTION_SEEDS, SEARCHED)
    plans = search_plans(system, distance, samples, starts)
    starts = np.repeat(starts, plans.shape[1], axis=0)
    guides = open_loop(seen, starts, plans.reshape(-1, *plans.shape[2:]))
    guides = polish(seen, starts, guides, LOCAL_FIRST)
    guides = polish(seen, starts, share(seen, starts, guides), LOCAL_FIRST)

    def play_batch(states: np.ndarray, noise: np.ndarray) -> Returns:
        guide = polish(seen, states, share(seen, states, guides), LOCAL_FIRST)

        def controller(now: np.ndarray, step: int) -> np.ndarray:
            nonlocal guide
            guide = polish(seen, now, guide if step == 0 else guide.shifted(), LOCAL_AGAIN)
            return guide.actions[:, 0]

        return play(system, states, noise, controller)

    def play_all(states: np.ndarray, noise: np.ndarray) -> Returns:
        parts = [slice(begin, begin + BATCH) for begin in range(0, len(states), BATCH)]
        played = [play_batch(states[part], noise[part]) for part in parts]
        returns, violations = zip(*played, strict=True)
        return np.concatenate(returns), np.concatenate(violations)

    return play_all


def choose_distance(system: ConstrainedPlant, samples: int) -> tuple[float, Callable]:
    """Return the shortest distance that is safe enough, by bisection, and its controller."""
    chosen = None
    low, high = 0, len(DISTANCES)
    selection = episodes(system, SELECTION_SEEDS, EPISODES)
    while low < high:
        number = (low + high) // 2
        controller = replan(system, DISTANCES[number], samples)
        returns, violations = controller(*selection)
        share_violating = np.mean(violations > 0)
        print(
            f"  {system.name}, distance {DISTANCES[number]}: {returns.mean():.3f}, "
            f"{share_violating:.1%} of episodes violate",
            flush=True,
        )
        if np.sum(violations > 0) <= 1:
            chosen, high = (DISTANCES[number], controller), number
        else:
            low = number + 1
    if chosen is None:
        raise SystemExit(f"{system.name}: no distance up to {DISTANCES[-1]} is safe enough")
    return chosen


def numbers(played: Returns) -> dict[str, float]:
    """Return the mean return with its standard error, and how often constraints are violated."""
    returns, violations = played
    return {
        "return": float(returns.mean()),
        "error": float(returns.std(ddof=1) / np.sqrt(len(returns))),
        "deviation": float(returns.std(ddof=1)),
        "violating_episodes": float(np.mean(violations > 0)),
        "violating_steps": float(violations.mean()),
        "episodes": len(returns),
    }


def summary(system: ConstrainedPlant, samples: int) -> dict:
    """Return the numbers of one system."""
    begin = time.perf_counter()
    many = episodes(system, MANY_SEEDS, MANY)
    low, high = system.action_bounds
    rng = np.random.default_rng(MANY_SEEDS)
    shape = (MANY, len(low))
    random = play(system, *many, lambda states, step: rng.uniform(low, high, shape))
    fallback = play(system, *many, lambda states, step: system.fallback_actions(states))
    planned = episodes(system, PLANNED_SEEDS, EPISODES)
    distance, controller = choose_distance(system, samples)
    optima = {
        "unconstrained": replan(system, None, samples)(*planned),
        "unconstrained, half": replan(system, None, samples // 2)(*planned),
        "constrained": controller(*planned),
        "constrained, half": replan(system, distance, samples // 2)(*planned),
    }
    results = {"random": random, "fallback": fallback} | optima
    means = {name: float(returns.mean()) for name, (returns, _) in results.items()}
    gap = means["constrained"] - means["fallback"]
    return {
        **{name: numbers(results[name]) for name in results if "half" not in name},
        "distance": distance,
        "half_the_samples": {
            name: (means[name] - means[f"{name}, half"]) / gap
            for name in ("unconstrained", "constrained")
        },
        "seconds": round(time.perf_counter() - begin),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", nargs="+", default=["all"])
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--out", type=pathlib.Path, default=PLACE)
    chosen = parser.parse_args()
    for name in select(chosen.systems):
        found = {"samples": chosen.samples} | summary(SYSTEMS[name](), chosen.samples)
        print(name, json.dumps(found), flush=True)
        stored = json.loads(chosen.out.read_text())["systems"] if chosen.out.exists() else {}
        stored[name] = found
        ordered = {each: stored[each] for each in SYSTEMS if each in stored}
        content = json.dumps({"command": COMMAND, "systems": ordered}, indent=1)
        part = chosen.out.with_suffix(".part")
        part.write_text(content + "\n")
        part.replace(chosen.out)


if __name__ == "__main__":
    main()
