"""A planar quadrotor in a corridor that goes over a hump."""

import math

import numpy as np
from constrained import ConstrainedPlant, Constraint
from mechanical import Quadrotor
from plant import box

#: Shape of the corridor, in m: height at the ends, rise of the hump, its width and half the height
#: of the corridor. The straight way from start to goal leads through the hump.
HEIGHT, RISE, WIDTH, HALF = 1.0, 0.8, 0.6, 0.4


def bell(x: np.ndarray) -> np.ndarray:
    """Return exp(-(x / WIDTH)²). A power of a number works for arrays of NumPy and of JAX."""
    return math.e ** (-((x / WIDTH) ** 2))


def middle(x: np.ndarray) -> np.ndarray:
    """Return the height of the corridor's middle."""
    return HEIGHT + RISE * bell(x)


class QuadrotorCorridor(ConstrainedPlant, Quadrotor):
    """Fly a planar quadrotor through a corridor to its far end, and hover there.

    The quadrotor of benchmarks/control/plants/mechanical.py. State: position and height in m, pitch
    in rad, and their speeds. Actions: thrust of the left and the right rotors in [0, 1]. A tenth of
    a second a step. The walls are nets: flying through them ends nothing.
    """

    name, reward_type = "quadrotor-corridor", "bounded"
    coordinates = ("position", "height", "pitch", "velocity", "climb", "turn")
    horizon = 60
    goal = (1.5, HEIGHT)
    constraints = (
        Constraint("ceiling", "m", lambda s, actions: s[..., 1] - middle(s[..., 0]) - HALF),
        Constraint("floor", "m", lambda s, actions: middle(s[..., 0]) - HALF - s[..., 1]),
    )
    trusted = box([-1.7, 0.9, -0.2, -0.3, -0.3, -0.5], [-1.2, 1.1, 0.2, 0.3, 0.3, 0.5])
    scale = (0.4, 0.4)

    def initial_states(self, rng, n):
        first = np.array([-1.5, HEIGHT, 0.0, 0.0, 0.0, 0.0])
        spread = np.array([0.05, 0.03, 0.02, 0.0, 0.0, 0.0])
        return first + spread * rng.uniform(-1.0, 1.0, (n, 6))

    def transition(self, states, actions, noise):
        states, _, _ = super().transition(states, actions, noise)
        away = (states[:, 0] - self.goal[0]) ** 2 + (states[:, 1] - self.goal[1]) ** 2
        return states, 1.0 / (1.0 + away), np.zeros(len(states), bool)

    def fallback_actions(self, states, xp=np):
        """Creep along the middle of the corridor: nested proportional controllers."""
        x, z, pitch, velocity, climb, turn = states.T
        wanted = xp.clip(self.goal[0] - x, -0.3, 0.3)
        slope = -2.0 * RISE * x / WIDTH**2 * bell(x)
        rise = 6.0 * (middle(x) - z) + 4.0 * (slope * velocity - climb)
        lift = xp.clip((9.81 + rise) / xp.cos(xp.clip(pitch, -1.0, 1.0)), 3.0, 16.0)
        lean = xp.clip(-1.0 * (wanted - velocity) / 9.81 * 1.5, -0.3, 0.3)
        twist = 20.0 * (lean - pitch) - 7.0 * turn
        both, apart = lift / (0.9 * 9.81), twist / 12.0
        return xp.stack([(both - apart) / 2.0, (both + apart) / 2.0], axis=1)
