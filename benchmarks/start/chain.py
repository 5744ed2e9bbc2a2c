"""A chain of masses: a Gymnasium environment with any even number of coordinates."""

import gymnasium
import numpy as np


class Chain(gymnasium.Env):
    """Masses in a row, coupled by springs. A force pushes the first one; all are to come to rest.

    Observations are positions, then velocities. Rewards are minus the sum of their squares.
    """

    def __init__(self, coordinates: int) -> None:
        self.masses = coordinates // 2
        limits = np.full(coordinates, 4.0, np.float32)
        self.observation_space = gymnasium.spaces.Box(-limits, limits)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-0.5, 0.5, 2 * self.masses)
        return self.state.astype(np.float32), {}

    def step(self, action):
        x, v = np.split(self.state, 2)
        walls = np.concatenate([[0.0], x, [0.0]])
        force = walls[2:] + walls[:-2] - 2 * x - 0.1 * v
        force[0] += float(np.clip(action, -1, 1)[0])
        v = v + 0.2 * force
        self.state = np.clip(np.concatenate([x + 0.2 * v, v]), -4, 4)
        reward = -float(np.sum(self.state**2))
        return self.state.astype(np.float32), reward, False, False, {}
