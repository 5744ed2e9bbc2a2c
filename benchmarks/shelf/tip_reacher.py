"""The arm of TIP: two links that reach for a goal, with eight coordinates and a known reward.

The definition is that of "bacreacher-v0" in trajectory-information-rl (Mehta et al., 2022,
"Exploration via Planning for Information about the Optimal Trajectory"). Arm, goals and rewards are
those of Gymnasium's Reacher-v5. The observation has angles in place of cosines and sines.
"""

import gymnasium
import numpy as np
from gymnasium.envs.mujoco.reacher_v5 import ReacherEnv

HORIZON = 50
#: Coordinates that are angles in radians.
ANGLES = (0, 1)
#: Bounds of TIP for angles, goal and the way to it. The velocities have none here.
HIGH = np.array([np.pi, np.pi, 0.3, 0.3, np.inf, np.inf, 0.5, 0.5])


class TipReacher(ReacherEnv):
    """Angles, goal, angular velocities, and the fingertip less the goal."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = gymnasium.spaces.Box(-HIGH, HIGH, dtype=np.float64)

    def _get_obs(self) -> np.ndarray:
        position, velocity = self.data.qpos, self.data.qvel
        way = self.get_body_com("fingertip") - self.get_body_com("target")
        angles = (position[:2] + np.pi) % (2.0 * np.pi) - np.pi
        return np.concatenate([angles, position[2:4], velocity[:2], way[:2]])


def make() -> gymnasium.Env:
    """Make the environment with its time limit."""
    return gymnasium.wrappers.TimeLimit(TipReacher(), HORIZON)


def reward(z):
    """The reward at points (n, 10): minus the distance to the goal and the squared action.

    The environment uses the distance after the step, this function the one before it.
    """
    import jax.numpy as jnp

    return -jnp.sqrt(jnp.sum(z[:, 6:8] ** 2, axis=1) + 1e-12) - jnp.sum(z[:, 8:] ** 2, axis=1)
