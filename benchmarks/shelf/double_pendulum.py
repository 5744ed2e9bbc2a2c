"""PILCO's double pendulum on a cart: swing two links up and hold them, by a force on the cart.

The definition is that of Deisenroth's thesis (2010) and of the PILCO software, version 0.9. The
links are uniform rods. Both angles are measured from upright, and the outer one does not depend on
the inner one. The equations of motion come from the Lagrangian.
"""

import gymnasium
import numpy as np

CART, LINK, LENGTH = 0.5, 0.5, 0.6  # kg, kg, m
FRICTION, GRAVITY = 0.1, 9.82  # N s/m, m/s²
MAX_FORCE, STEP, HORIZON = 20.0, 0.05, 100  # N, s, steps: 5 s
#: Steps of the integrator within one step. Without friction, the energy drifts by 2e-5 J in 5 s.
SUBSTEPS = 10
NOISE = 0.01
#: Standard deviations of the first state: position, three velocities, two angles.
START_DEVIATIONS = np.array([0.1, 0.1, 0.1, 0.1, 0.01, 0.01])
COST_WIDTH = 0.5
#: The tip is up if it is as near as this to the point above the middle of the track.
UP_DISTANCE = 0.2
#: Coordinates that are angles in radians.
ANGLES = (4, 5)
#: Bounds of observations. The track has no end.
HIGH = np.array([np.inf, np.inf, np.inf, np.inf, np.pi, np.pi])


def derivative(state: np.ndarray, force: float, friction: float = FRICTION) -> np.ndarray:
    """The derivative of (position, velocity, two angular velocities, two angles)."""
    _, velocity, turn, outer_turn, angle, outer_angle = state
    first, second = 1.5 * LINK * LENGTH, 0.5 * LINK * LENGTH  # first moments of the links
    coupling, between = 0.5 * LINK * LENGTH**2, angle - outer_angle
    mass = np.array(
        [
            [CART + 2.0 * LINK, -first * np.cos(angle), -second * np.cos(outer_angle)],
            [-first * np.cos(angle), 4.0 / 3.0 * LINK * LENGTH**2, coupling * np.cos(between)],
            [-second * np.cos(outer_angle), coupling * np.cos(between), LINK * LENGTH**2 / 3.0],
        ]
    )
    forces = np.array(
        [
            force
            - friction * velocity
            - first * turn**2 * np.sin(angle)
            - second * outer_turn**2 * np.sin(outer_angle),
            first * GRAVITY * np.sin(angle) - coupling * outer_turn**2 * np.sin(between),
            second * GRAVITY * np.sin(outer_angle) + coupling * turn**2 * np.sin(between),
        ]
    )
    return np.concatenate([[velocity], np.linalg.solve(mass, forces), [turn, outer_turn]])


def integrate(state: np.ndarray, force: float, friction: float = FRICTION) -> np.ndarray:
    """The state one step later, by the classical Runge-Kutta method."""
    h = STEP / SUBSTEPS
    for _ in range(SUBSTEPS):
        k1 = derivative(state, force, friction)
        k2 = derivative(state + 0.5 * h * k1, force, friction)
        k3 = derivative(state + 0.5 * h * k2, force, friction)
        k4 = derivative(state + h * k3, force, friction)
        state = state + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return state


def squared_distance(x, angle, outer_angle, library=np):
    """The squared distance of the tip from the point above the middle of the track."""
    across = x - LENGTH * (library.sin(angle) + library.sin(outer_angle))
    below = LENGTH * (2.0 - library.cos(angle) - library.cos(outer_angle))
    return across**2 + below**2


class DoublePendulum(gymnasium.Env):
    """Six noisy coordinates: position, velocity, two angular velocities and two angles.

    The reward is minus PILCO's saturating cost of the true state after the step.
    """

    action_space = gymnasium.spaces.Box(-MAX_FORCE, MAX_FORCE, (1,), np.float64)
    observation_space = gymnasium.spaces.Box(-HIGH, HIGH, dtype=np.float64)
    #: Seconds for which the tip has been up without a break, until now.
    seconds_up = 0.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        hanging = np.array([0.0, 0.0, 0.0, 0.0, np.pi, np.pi])
        self.state = hanging + START_DEVIATIONS * self.np_random.standard_normal(6)
        self.seconds_up = 0.0
        return self._observation(), {}

    def step(self, action):
        force = float(np.clip(action[0], -MAX_FORCE, MAX_FORCE))
        self.state = integrate(self.state, force)
        squared = float(squared_distance(*self.state[[0, 4, 5]]))
        up = squared <= UP_DISTANCE**2
        self.seconds_up = round(self.seconds_up + STEP, 6) if up else 0.0
        cost = 1.0 - float(np.exp(-0.5 * squared / COST_WIDTH**2))
        return self._observation(), -cost, False, False, {"seconds_up": self.seconds_up}

    def _observation(self) -> np.ndarray:
        observed = self.state + NOISE * self.np_random.standard_normal(6)
        observed[4:] = (observed[4:] + np.pi) % (2.0 * np.pi) - np.pi
        return observed


def make() -> gymnasium.Env:
    """Make the environment with its time limit."""
    return gymnasium.wrappers.TimeLimit(DoublePendulum(), HORIZON)


def reward(z):
    """The reward at points (n, 7). The environment uses the state after the step."""
    import jax.numpy as jnp

    squared = squared_distance(z[:, 0], z[:, 4], z[:, 5], library=jnp)
    return jnp.exp(-0.5 * squared / COST_WIDTH**2) - 1.0


def seconds_held(env: gymnasium.Env, total: float) -> float:
    """The seconds for which the tip was up at the end of the episode, without a break."""
    del total
    return env.unwrapped.seconds_up
