"""What random play, the fallback and planners on the true model earn on every system.

    .venv/bin/python benchmarks/safety/reference.py

The planners know the equations. The cross-entropy method plans whole episodes from some starts, and
the iterative linear-quadratic regulator improves the plans and adds feedback. Of several feedback
gains, those count that earn most in simulations with noise. The unconstrained optimum ignores the
constraints. The constrained optimum pays for violations in its plans, and keeps a distance from the
limits, because noise moves the state away from the plan. Of a list of distances, the one counts
that earns most, among those with which none of the 200 selection episodes has a violation. If there
is none, the one with the fewest violations counts.
Its numbers are from 200 other episodes, those of ``env.reset(seed=...)``. Everything is done with
half as many samples too: the difference says how far the search has converged. The result is in
``reference.json``.
"""

import argparse
import dataclasses
import json
import pathlib
import time
from collections.abc import Callable

import numpy as np
import plants_path  # noqa: F401
from constrained import ConstrainedPlant
from cross_entropy import CHUNK, Search, first_plans, improve
from ilqr import DIFFERENCES, Trajectory, backward, open_loop, polish, share
from plant import Plant
from systems import SYSTEMS, select

PLACE = pathlib.Path(__file__).parent / "reference.json"
COMMAND = ".venv/bin/python benchmarks/safety/reference.py"
#: Action sequences in an iteration of the cross-entropy method. The reactor is cheap, and unstable.
#: On the cart-pole, 64 sequences found plans of 24 and 256 plans of 29.
DEFAULT_SAMPLES, SAMPLES = 64, {"reactor-runaway": 256, "cart-pole-track": 256}
#: Episodes of random play and of the fallback, and of each planner. Seeds of the planners'
#: episodes, of those that choose the distance, and of the others begin at fixed numbers.
MANY, EPISODES = 1_000, 200
PLANNED_SEEDS, SELECTION_SEEDS, MANY_SEEDS = 5_000, 6_000, 7_000
#: Starts from which the global search plans. Starts are narrow, so that all others share its plans.
SEARCHED = 4
#: Iterations of the local search for the first plan and for another start.
LOCAL_FIRST, LOCAL_AGAIN = 30, 6
#: Systems that are too unstable to follow a plan: the local search improves it at every step.
REPLANNED, LOCAL_STEP = ("cart-pole-track",), 6
#: Plans that are kept of the search, and noise sequences on which feedback gains are compared.
KEPT, SCENARIOS = 24, 24
#: Episodes that are planned together. More do not fit into the cache.
BATCH = 50
#: Distances from the limits, in units of ``ConstrainedPlant.scale``.
DISTANCES = (0.005, 0.01, 0.02, 0.03, 0.045, 0.065, 0.09, 0.12, 0.16, 0.2, 0.25, 0.3)
#: The distance of the global search, and how many safe ones are tried.
FIRST_DISTANCE, SAFE_DISTANCES = 0.045, 3
#: What plans pay for a violation as large as the scale, which grows with its square. Rewards of a
#: step are about 1, so that a violation of a few hundredths of the scale does not pay.
PRICE = 3_000.0
#: Shares of this price that searches begin with, and by which local searches raise it.
LENIENT, RAISED = (0.003, 0.03), (0.003, 0.03, 0.3, 1.0)

Returns = tuple[np.ndarray, np.ndarray]


class PenalisedPlant(ConstrainedPlant):
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
        self.constraints, self.scale = system.constraints, system.scale

    def initial_states(self, rng, n):
        return self.system.initial_states(rng, n)

    def fallback_actions(self, states, xp=np):
        return self.system.fallback_actions(states, xp)

    def transition(self, states, actions, noise):
        states, rewards, ended = self.system.transition(states, actions, noise)
        if self.distance is not None:
            beyond = self.system.margins(states, actions) / np.array(self.system.scale)
            beyond = np.maximum(beyond + self.distance, 0.0)
            rewards = rewards - self.weight * PRICE * (beyond**2).sum(axis=1)
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
    seen, settings = PenalisedPlant(system, distance), Search(samples)
    rng = np.random.default_rng(0)
    plans = [first_plans(seen, starts, settings, rng)]
    if distance is not None:
        lenient = [
            first_plans(PenalisedPlant(system, distance, weight), starts, settings, rng)
            for weight in LENIENT
        ]
        safe = []
        still = np.zeros((len(starts), system.horizon, system.noise_dimension))

        def remember(states: np.ndarray, step: int) -> np.ndarray:
            safe.append(np.clip(system.fallback_actions(states), *system.action_bounds))
            return safe[-1]

        play(system, starts, still, remember)
        plans += lenient
        for begin in [*lenient, np.stack(safe, axis=1)[:, None]]:
            n, restarts = begin.shape[:2]
            repeated = np.repeat(starts, restarts, axis=0)
            begin = begin.reshape(n * restarts, *begin.shape[2:])
            better, _ = improve(seen, repeated, begin, 0.2, settings.first, settings, rng)
            plans.append(better.reshape(n, restarts, *better.shape[1:]))
    return np.concatenate(plans, axis=1)


def join(first: Trajectory, second: Trajectory) -> Trajectory:
    """Return the trajectories of both."""
    names = [field.name for field in dataclasses.fields(Trajectory)]
    return Trajectory(*(np.concatenate([getattr(first, n), getattr(second, n)]) for n in names))


def search(system: ConstrainedPlant, distance: float | None, samples: int) -> Trajectory:
    """Search for good plans from some starts. The price of violations rises step by step."""
    seen = PenalisedPlant(system, distance)
    starts, _ = episodes(system, SELECTION_SEEDS, SEARCHED)
    plans = search_plans(system, distance, samples, starts)
    repeated = np.repeat(starts, plans.shape[1], axis=0)
    plans = open_loop(seen, repeated, plans.reshape(-1, *plans.shape[2:]))
    direct, guides = polish(seen, repeated, plans, LOCAL_FIRST), plans
    for weight in RAISED if distance is not None else (1.0,):
        guides = polish(PenalisedPlant(system, distance, weight), repeated, guides, LOCAL_FIRST)
    guides = join(direct, guides)
    guides = guides.rows(np.argsort(-guides.returns, kind="stable")[:KEPT])
    return polish(seen, starts, share(seen, starts, guides), LOCAL_FIRST)


def with_feedback(seen: PenalisedPlant, states: np.ndarray, guide: Trajectory) -> Trajectory:
    """Choose the feedback gains that earn most in simulations with noise.

    The gains of the best plan without noise may be far too large with noise. Others come from
    models with more curvature for actions, from longer differences, and from halves.
    """
    space, (low, high) = seen.observation_space, seen.action_bounds
    scale = np.concatenate([(space.high - space.low).astype(float), high - low])
    p, (_, steps, q), m = len(states), guide.actions.shape, states.shape[1]
    gains = [np.zeros((p, 1, steps, q, m))]
    for width in DIFFERENCES:
        found = backward(seen, guide, scale, width)[1].reshape(p, -1, steps, q, m)
        gains += [found, found / 2.0]
    gains = np.concatenate(gains, axis=1)
    c = gains.shape[1]
    noise = np.random.default_rng(2).standard_normal((SCENARIOS, steps, seen.noise_dimension))
    rows = np.repeat(np.arange(p), c * SCENARIOS)
    repeated = np.repeat(gains.reshape(p * c, steps, q, m), SCENARIOS, axis=0)
    earned = np.zeros(len(rows))
    for begin in range(0, len(rows), CHUNK):
        part = slice(begin, begin + CHUNK)
        numbers_of_scenarios = np.arange(len(rows))[part] % SCENARIOS
        guided = dataclasses.replace(guide.rows(rows[part]), gains=repeated[part])
        earned[part], _ = play(
            seen, states[rows[part]], noise[numbers_of_scenarios], track(seen, guided)
        )
    best = np.nan_to_num(earned, nan=-np.inf).reshape(p, c, SCENARIOS).mean(axis=2).argmax(axis=1)
    return dataclasses.replace(guide, gains=gains[np.arange(p), best])


def track(plant: Plant, guide: Trajectory) -> Callable[[np.ndarray, int], np.ndarray]:
    """Return the controller that follows trajectories with feedback."""

    def controller(states: np.ndarray, step: int) -> np.ndarray:
        off = states - guide.states[:, step]
        change = np.einsum("pqm,pm->pq", guide.gains[:, step], off)
        return np.clip(guide.actions[:, step] + change, *plant.action_bounds)

    return controller


def replan(seen: PenalisedPlant, guide: Trajectory) -> Callable[[np.ndarray, int], np.ndarray]:
    """Return the controller that improves the rest of the plan at every step."""

    def controller(states: np.ndarray, step: int) -> np.ndarray:
        nonlocal guide
        guide = polish(seen, states, guide if step == 0 else guide.shifted(), LOCAL_STEP)
        return guide.actions[:, 0]

    return controller


def control(
    system: ConstrainedPlant,
    distance: float | None,
    guides: Trajectory,
    states: np.ndarray,
    noise: np.ndarray,
) -> Returns:
    """Adapt plans to the first states, and play them with feedback."""
    seen, played = PenalisedPlant(system, distance), []
    for begin in range(0, len(states), BATCH):
        first = states[begin : begin + BATCH]
        guide = polish(seen, first, share(seen, first, guides), LOCAL_AGAIN)
        if system.name in REPLANNED:
            controller = replan(seen, guide)
        else:
            controller = track(system, with_feedback(seen, first, guide))
        played.append(play(system, first, noise[begin : begin + BATCH], controller))
    returns, violations = zip(*played, strict=True)
    return np.concatenate(returns), np.concatenate(violations)


def constrained(
    system: ConstrainedPlant, samples: int, planned: tuple[np.ndarray, np.ndarray]
) -> tuple[float, Returns]:
    """Return the best distance that is safe enough, and what is earned with it."""
    selection = episodes(system, SELECTION_SEEDS, EPISODES)
    starts, _ = episodes(system, SELECTION_SEEDS, SEARCHED)
    guides = search(system, FIRST_DISTANCE, samples)
    found, fewest = {}, (EPISODES + 1, None)
    # Replanning is slow, so that only some distances are tried, and the first safe one counts.
    replanned = system.name in REPLANNED
    for distance in DISTANCES[4::2] if replanned else DISTANCES:
        seen = PenalisedPlant(system, distance)
        near = polish(seen, starts, share(seen, starts, guides), LOCAL_FIRST)
        returns, violations = control(system, distance, near, *selection)
        number = int(np.sum(violations > 0))
        print(f"  distance {distance}: {returns.mean():.3f}, {number} violate", flush=True)
        if number == 0:
            found[returns.mean()] = (distance, near)
        if number < fewest[0]:
            fewest = number, (distance, near)
        if len(found) == (1 if replanned else SAFE_DISTANCES):
            break
    # Where no distance is safe enough, the one with the fewest violations counts. The table shows
    # the share of violating episodes.
    distance, near = found[max(found)] if found else fewest[1]
    return distance, control(system, distance, near, *planned)


def unconstrained(
    system: ConstrainedPlant, samples: int, planned: tuple[np.ndarray, np.ndarray]
) -> Returns:
    """Return what is earned without regard to the constraints."""
    return control(system, None, search(system, None, samples), *planned)


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
    results = {"random": random, "fallback": fallback}
    results["unconstrained"] = unconstrained(system, samples, planned)
    results["unconstrained, half"] = unconstrained(system, samples // 2, planned)
    distance, results["constrained"] = constrained(system, samples, planned)
    half, results["constrained, half"] = constrained(system, samples // 2, planned)
    means = {name: float(returns.mean()) for name, (returns, _) in results.items()}
    gap = means["constrained"] - means["fallback"]
    return {
        **{name: numbers(results[name]) for name in results if "half" not in name},
        "distance": distance,
        "distance_with_half_the_samples": half,
        "half_the_samples": {
            name: (means[name] - means[f"{name}, half"]) / gap
            for name in ("unconstrained", "constrained")
        },
        "seconds": round(time.perf_counter() - begin),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", nargs="+", default=["all"])
    parser.add_argument("--samples", type=int, help="instead of those that a system needs")
    parser.add_argument("--out", type=pathlib.Path, default=PLACE)
    chosen = parser.parse_args()
    for name in select(chosen.systems):
        samples = chosen.samples or SAMPLES.get(name, DEFAULT_SAMPLES)
        found = {"samples": samples} | summary(SYSTEMS[name](), samples)
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
