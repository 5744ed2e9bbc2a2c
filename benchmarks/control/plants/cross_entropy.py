"""Plan on the true model by the cross-entropy method: a global search over action sequences."""

import dataclasses

import numpy as np
from plant import Plant

#: Proposals hold an action for so many steps. Long holds find swing-ups and far goals.
HOLDS = (1, 2, 4, 8)
#: Rows that are simulated together. More do not fit into the cache.
CHUNK = 8_192


@dataclasses.dataclass(frozen=True)
class Search:
    """How hard the planner searches.

    Attributes:
        samples: Action sequences in an iteration.
        restarts: Independent searches for the plan of the whole episode.
        first: Iterations for that plan.
        again: Iterations at every later step.
        scenarios: Noise sequences against which a plan is judged. 0 means no noise.
        lookahead: Steps that later plans look ahead. None means all remaining steps.
    """

    samples: int
    restarts: int = 4
    first: int = 40
    again: int = 6
    scenarios: int = 0
    lookahead: int | None = None


def simulate(
    plant: Plant, states: np.ndarray, actions: np.ndarray, noise: np.ndarray
) -> np.ndarray:
    """Return the returns (n,) of action sequences (n, T, q) from states (n, m)."""
    returns = np.zeros(len(states))
    for begin in range(0, len(states), CHUNK):
        part = slice(begin, begin + CHUNK)
        now, total = states[part], returns[part]
        alive = np.ones(len(now), bool)
        for step in range(actions.shape[1]):
            now, rewards, terminated = plant.advance(now, actions[part, step], noise[part, step])
            total += np.where(alive, rewards, 0.0)
            alive &= ~terminated
    return returns


def evaluate(
    plant: Plant, states: np.ndarray, plans: np.ndarray, scenarios: np.ndarray
) -> np.ndarray:
    """Return mean returns (p, n) of plans (p, n, T, q) over noise (k, T, d), from states (p, m)."""
    p, n, steps, q = plans.shape
    k = len(scenarios)
    shape = (p, n, k)
    first = np.broadcast_to(states[:, None, None], (*shape, states.shape[1])).reshape(p * n * k, -1)
    actions = np.broadcast_to(plans[:, :, None], (*shape, steps, q)).reshape(p * n * k, steps, q)
    noise = np.broadcast_to(scenarios, (*shape, *scenarios.shape[1:]))
    noise = noise.reshape(p * n * k, steps, scenarios.shape[2])
    return simulate(plant, first, actions, noise).reshape(shape).mean(axis=2)


def proposals(rng: np.random.Generator, p: int, n: int, steps: int, q: int) -> np.ndarray:
    """Draw standard normal sequences (p, n, T, q), each held for some number of steps."""
    white = rng.standard_normal((p, n, steps, q))
    for group, hold in enumerate(HOLDS):
        phase = rng.integers(hold)
        index = (np.arange(steps) + phase) // hold
        white[:, group :: len(HOLDS)] = white[:, group :: len(HOLDS)][:, :, index]
    return white


def improve(
    plant: Plant,
    states: np.ndarray,
    plans: np.ndarray,
    spread: float,
    iterations: int,
    search: Search,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Improve plans (p, T, q) from states (p, m) by the cross-entropy method.

    The best plan so far is always among the candidates.

    Returns:
        The best plans (p, T, q) and their predicted returns (p,).
    """
    low, high = plant.action_bounds
    p, steps, q = plans.shape
    mean, best = plans, plans
    deviation = np.broadcast_to(spread * (high - low), plans.shape)
    elites = max(search.samples // 10, 4)
    noise = np.zeros((1, steps, plant.noise_dimension))
    if search.scenarios and plant.noise_dimension:
        half = rng.standard_normal((search.scenarios // 2, steps, plant.noise_dimension))
        noise = np.concatenate([half, -half])  # pairs of opposite signs
    kept = plans[:, None]
    rows = np.arange(p)[:, None]
    value = np.full(p, -np.inf)
    for _ in range(iterations):
        drawn = proposals(rng, p, search.samples, steps, q)
        drawn = np.clip(mean[:, None] + deviation[:, None] * drawn, low, high)
        candidates = np.concatenate([drawn, mean[:, None], kept], axis=1)
        values = evaluate(plant, states, candidates, noise)
        order = np.argsort(-values, axis=1, kind="stable")[:, :elites]
        chosen = candidates[rows, order]
        best, value = chosen[:, 0], values[np.arange(p), order[:, 0]]
        mean = 0.1 * mean + 0.9 * chosen.mean(axis=1)
        deviation = 0.1 * deviation + 0.9 * chosen.std(axis=1) + 1e-3 * (high - low)
        kept = chosen[:, : max(elites // 4, 1)]
    return best, value


def first_plans(
    plant: Plant, states: np.ndarray, search: Search, rng: np.random.Generator
) -> np.ndarray:
    """Plan whole episodes, with several restarts. Return plans (p, restarts, H, q)."""
    low, high = plant.action_bounds
    count = len(states) * search.restarts
    middle = np.broadcast_to((low + high) / 2, (count, plant.horizon, len(low)))
    starts = np.repeat(states, search.restarts, axis=0)
    plans, _ = improve(plant, starts, middle, 0.5, search.first, search, rng)
    return plans.reshape(len(states), search.restarts, *plans.shape[1:])


def share_plans(plant: Plant, states: np.ndarray, plans: np.ndarray) -> np.ndarray:
    """Try all plans (n, H, q) from each state, without noise. Return the best of each, (p, H, q).

    Starts are close to each other, so that a good plan of one is a good plan of others.
    """
    every = np.broadcast_to(plans, (len(states), *plans.shape))
    still = np.zeros((1, plans.shape[1], plant.noise_dimension))
    return plans[evaluate(plant, states, every, still).argmax(axis=1)]
