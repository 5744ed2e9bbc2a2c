"""Plan on the true model by the iterative linear-quadratic regulator: a local search.

Derivatives are central differences of ``Plant.transition``. States and actions are divided by the
widths of their boxes. Only trajectories that earn more are accepted, so that bends of the reward
and ends of episodes do no harm. Actions at a bound that want to go beyond it stay there.
"""

import dataclasses

import numpy as np
from plant import Plant

#: Half the distances of differences, in units of the box, one after the other. Long ones smooth the
#: bends of absolute values.
DIFFERENCES = (1e-2, 3e-3, 1e-3)
#: Curvatures added for actions, and shares of the step, that are tried in every iteration.
CURVATURES = (1e-4, 1e-2, 1.0, 1e2)
SHARES = (1.0, 0.5, 0.2, 0.05)


@dataclasses.dataclass
class Trajectory:
    """Action sequences with feedback: a_t = actions_t + gains_t (s_t − states_t).

    Attributes:
        actions: (p, T, q).
        states: Where the actions lead, (p, T, m).
        gains: (p, T, q, m).
        returns: (p,).
    """

    actions: np.ndarray
    states: np.ndarray
    gains: np.ndarray
    returns: np.ndarray

    def shifted(self) -> "Trajectory":
        """Return the trajectory without its first step."""
        return Trajectory(self.actions[:, 1:], self.states[:, 1:], self.gains[:, 1:], self.returns)

    def rows(self, index: np.ndarray) -> "Trajectory":
        """Return some of the trajectories."""
        return Trajectory(*(getattr(self, each.name)[index] for each in dataclasses.fields(self)))


def follow(plant: Plant, first: np.ndarray, guide: Trajectory) -> Trajectory:
    """Follow trajectories from first states (p, m), with feedback and without noise."""
    p, steps, _ = guide.actions.shape
    states, actions = np.empty_like(guide.states), np.empty_like(guide.actions)
    returns, alive, now = np.zeros(p), np.ones(p, bool), first
    noise = np.zeros((p, plant.noise_dimension))
    for step in range(steps):
        off = now - guide.states[:, step]
        change = np.einsum("pqm,pm->pq", guide.gains[:, step], off)
        states[:, step] = now
        actions[:, step] = np.clip(guide.actions[:, step] + change, *plant.action_bounds)
        now, rewards, terminated = plant.advance(now, actions[:, step], noise)
        returns += np.where(alive, rewards, 0.0)
        alive &= ~terminated
    return Trajectory(actions, states, guide.gains, returns)


def derivatives(
    plant: Plant, points: np.ndarray, scale: np.ndarray, width: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Differentiate at points z = (s, a), (n, d), in units of the box.

    Returns:
        Jacobians of the next state (n, m, d), gradients (n, d) of rewards and the concave
        parts of their Hessians (n, d, d).
    """
    n, d = points.shape
    m = plant.observation_space.shape[0]
    corners = [(i, j) for i in range(d) for j in range(i, d)]
    moves = np.zeros((4 * len(corners), d))
    for row, (i, j) in enumerate(corners):
        for sign, (first, second) in enumerate([(1, 1), (1, -1), (-1, 1), (-1, -1)]):
            moves[4 * row + sign, i] += first * width
            moves[4 * row + sign, j] += second * width
    z = (points[:, None] + moves * scale).reshape(-1, d)
    noise = np.zeros((len(z), plant.noise_dimension))
    after, rewards, _ = plant.transition(z[:, :m], z[:, m:], noise)
    after = (after / scale[:m]).reshape(n, len(corners), 4, m)
    rewards = rewards.reshape(n, len(corners), 4)
    jacobian, gradient, hessian = np.zeros((n, m, d)), np.zeros((n, d)), np.zeros((n, d, d))
    for row, (i, j) in enumerate(corners):
        if i == j:  # the first and the last corner are two differences away
            jacobian[:, :, i] = (after[:, row, 0] - after[:, row, 3]) / (4 * width)
            gradient[:, i] = (rewards[:, row, 0] - rewards[:, row, 3]) / (4 * width)
        second = rewards[:, row] @ np.array([1.0, -1.0, -1.0, 1.0]) / (4 * width**2)
        hessian[:, i, j] = hessian[:, j, i] = second
    values, vectors = np.linalg.eigh(hessian)
    concave = (vectors * np.minimum(values, 0.0)[:, None]) @ np.swapaxes(vectors, 1, 2)
    return jacobian, gradient, concave


def backward(
    plant: Plant, guide: Trajectory, scale: np.ndarray, width: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps (p c, T, q) and gains (p c, T, q, m) of c quadratic models each.

    The models differ in the curvature that is added for actions.
    """
    p, steps, q = guide.actions.shape
    m = guide.states.shape[2]
    points = np.concatenate([guide.states, guide.actions], axis=2)
    found = derivatives(plant, points.reshape(p * steps, m + q), scale, width)
    found = [each.reshape(p, steps, *each.shape[1:]) for each in found]
    added, p = np.tile(CURVATURES, p), p * len(CURVATURES)
    found = [np.repeat(each, len(CURVATURES), axis=0) for each in (*found, guide.actions)]
    jacobian, gradient, hessian, actions = found
    low, high = plant.action_bounds
    slope, curve = np.zeros((p, m)), np.zeros((p, m, m))
    openings, gains = np.zeros((p, steps, q)), np.zeros((p, steps, q, m))
    for t in range(steps - 1, -1, -1):
        f = jacobian[:, t]
        g = gradient[:, t] + np.einsum("pmd,pm->pd", f, slope)
        h = hessian[:, t] + np.swapaxes(f, 1, 2) @ curve @ f
        solid = added[:, None, None] * np.eye(q) - h[:, m:, m:]
        at_low = (actions[:, t] <= low) & (g[:, m:] < 0)
        at_high = (actions[:, t] >= high) & (g[:, m:] > 0)
        free = (~(at_low | at_high)).astype(float)
        solid = solid * free[:, :, None] * free[:, None] + np.eye(q) * (1.0 - free)[:, None]
        right = np.concatenate([g[:, m:, None], h[:, m:, :m]], axis=2) * free[:, :, None]
        # A tiny share of its size keeps a steep model from being singular in floating point.
        size = np.abs(solid).max(axis=(1, 2), initial=0.0)
        solid = solid + 1e-12 * size[:, None, None] * np.eye(q)
        solved = np.linalg.solve(solid, right)
        k, gain = solved[:, :, 0], solved[:, :, 1:]
        back = np.swapaxes(gain, 1, 2)
        cross = back @ h[:, m:, :m]
        slope = g[:, :m] + (back @ h[:, m:, m:] @ k[:, :, None])[:, :, 0]
        slope += (back @ g[:, m:, None])[:, :, 0]
        slope += (np.swapaxes(h[:, m:, :m], 1, 2) @ k[:, :, None])[:, :, 0]
        curve = h[:, :m, :m] + back @ h[:, m:, m:] @ gain + cross + np.swapaxes(cross, 1, 2)
        openings[:, t], gains[:, t] = k * scale[m:], gain * scale[m:, None] / scale[:m]
    return openings, gains


def polish(plant: Plant, first: np.ndarray, guide: Trajectory, iterations: int) -> Trajectory:
    """Improve trajectories from first states (p, m). None gets worse."""
    space = plant.observation_space
    low, high = plant.action_bounds
    scale = np.concatenate([(space.high - space.low).astype(float), high - low])
    best = follow(plant, first, guide)
    p, tries = len(first), len(CURVATURES) * len(SHARES)
    last_gain = 0
    for iteration in range(iterations):
        width = DIFFERENCES[iteration % len(DIFFERENCES)]
        openings, gains = backward(plant, best, scale, width)
        tried = best.rows(np.repeat(np.arange(p), tries))
        index = np.repeat(np.arange(p * len(CURVATURES)), len(SHARES))
        shares = np.tile(SHARES, p * len(CURVATURES))[:, None, None]
        tried.actions, tried.gains = tried.actions + shares * openings[index], gains[index]
        tried = follow(plant, np.repeat(first, tries, axis=0), tried)
        earned = np.nan_to_num(tried.returns, nan=-np.inf).reshape(p, tries)
        new = tried.rows(earned.argmax(axis=1) + tries * np.arange(p))
        better = new.returns > best.returns
        last_gain = iteration if better.any() else last_gain
        if iteration - last_gain >= len(DIFFERENCES):
            break
        for field in dataclasses.fields(Trajectory):
            getattr(best, field.name)[better] = getattr(new, field.name)[better]
    return best


def open_loop(plant: Plant, first: np.ndarray, plans: np.ndarray) -> Trajectory:
    """Return the trajectories of plans (p, T, q) without feedback."""
    shape = (*plans.shape[:2], first.shape[1])
    gains = np.zeros((*plans.shape, first.shape[1]))
    return follow(plant, first, Trajectory(plans, np.zeros(shape), gains, np.zeros(len(first))))


def share(plant: Plant, first: np.ndarray, guides: Trajectory) -> Trajectory:
    """Follow all trajectories from each of the first states (p, m), and keep the best of each."""
    p, n = len(first), len(guides.returns)
    followed = follow(plant, np.repeat(first, n, axis=0), guides.rows(np.tile(np.arange(n), p)))
    return followed.rows(followed.returns.reshape(p, n).argmax(axis=1) + n * np.arange(p))
