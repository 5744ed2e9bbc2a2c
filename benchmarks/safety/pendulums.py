"""Pendulums: one with a speed limit, and one on a cart with a short track."""

import numpy as np
from constrained import ConstrainedPlant, lower, upper
from plant import box, runge_kutta


class PendulumSpeed(ConstrainedPlant):
    """Bring a pendulum upright and hold it there, without turning too fast.

    The rod of Gymnasium's Pendulum-v1 with a stronger motor. State: cosine and sine of the angle
    (0 is upright), and speed in rad/s. Action: torque in N m. A tenth of a second a step.
    """

    name, domain, reward_type = "pendulum-speed", "mechanical", "bounded"
    coordinates = ("cosine", "sine", "speed")
    observation_space = box([-1.0, -1.0, -12.0], [1.0, 1.0, 12.0])
    action_space = box([-6.0], [6.0])
    horizon = 50
    noise_dimension = 1

    gravity, mass, length = 10.0, 1.0, 1.0
    constraints = (
        upper("forward speed", "rad/s", 2, 2.5),
        lower("backward speed", "rad/s", 2, -2.5),
    )
    allowed = box([-1.0, -1.0, -2.5], [1.0, 1.0, 2.5])
    trusted = box([-1.0, -1.0, -2.0], [1.0, 1.0, 2.0])
    scale = (2.5, 2.5)

    def initial_states(self, rng, n):
        angle = np.pi + 0.1 * rng.uniform(-1.0, 1.0, n)
        return np.stack([np.cos(angle), np.sin(angle), 0.05 * rng.uniform(-1.0, 1.0, n)], axis=1)

    def transition(self, states, actions, noise):
        torque = 3.0 / (self.mass * self.length**2) * actions[:, 0]

        def derivative(now):
            angle, speed = now.T
            fall = 1.5 * self.gravity / self.length * np.sin(angle)
            return np.stack([speed, fall + torque], axis=1)

        now = np.stack([np.arctan2(states[:, 1], states[:, 0]), states[:, 2]], axis=1)
        angle, speed = runge_kutta(derivative, now, duration=0.1, steps=2).T
        speed = speed + 0.02 * noise[:, 0]
        rewards = ((1.0 + np.cos(angle)) / 2.0) ** 2 - 0.001 * actions[:, 0] ** 2
        states = np.stack([np.cos(angle), np.sin(angle), speed], axis=1)
        return states, rewards, np.zeros(len(states), bool)

    def fallback_actions(self, states, xp=np):
        """Lift slowly: a speed servo with compensation of gravity."""
        cosine, sine, speed = states.T
        angle = xp.arctan2(sine, cosine)
        wanted = -xp.clip(1.5 * angle, -0.6, 0.6)
        push = 4.0 * (wanted - speed) - 1.5 * self.gravity / self.length * sine
        return (push * self.mass * self.length**2 / 3.0)[:, None]


class CartPoleTrack(ConstrainedPlant):
    """Swing up a pole by pushing its cart, on a short track.

    Deisenroth's cart-pole. State: position of the cart in m and its speed, cosine and sine of the
    pole's angle (0 is upright), and the pole's speed. Action: force in N. A tenth of a second a
    step.
    """

    name, domain, reward_type = "cart-pole-track", "mechanical", "bounded"
    coordinates = ("position", "velocity", "cosine", "sine", "speed")
    observation_space = box([-3.0, -8.0, -1.0, -1.0, -20.0], [3.0, 8.0, 1.0, 1.0, 20.0])
    action_space = box([-10.0], [10.0])
    horizon = 40
    noise_dimension = 2

    cart, pole, length, friction, gravity = 0.5, 0.5, 0.6, 0.1, 9.82
    constraints = (
        upper("right end", "m", 0, 0.4),
        lower("left end", "m", 0, -0.4),
    )
    allowed = box([-0.4, -8.0, -1.0, -1.0, -20.0], [0.4, 8.0, 1.0, 1.0, 20.0])
    trusted = box([-0.2, -0.5, -1.0, -1.0, -4.0], [0.2, 0.5, 1.0, 1.0, 4.0])
    scale = (0.4, 0.4)

    def initial_states(self, rng, n):
        angle = np.pi + 0.05 * rng.uniform(-1.0, 1.0, n)
        rest = 0.02 * rng.uniform(-1.0, 1.0, (n, 3))
        columns = [rest[:, 0], rest[:, 1], np.cos(angle), np.sin(angle), rest[:, 2]]
        return np.stack(columns, axis=1)

    def transition(self, states, actions, noise):
        mass, arm = self.cart + self.pole, self.pole * self.length
        force = actions[:, 0]

        def derivative(now):
            _, velocity, angle, speed = now.T
            sine, cosine = np.sin(angle), np.cos(angle)
            # A rod that turns about its end: I = m l² / 3.
            push = force - self.friction * velocity
            below = 4.0 * mass - 3.0 * self.pole * cosine**2
            cart = 4.0 * push + 2.0 * arm * speed**2 * sine
            cart = (cart - 3.0 * self.pole * self.gravity * sine * cosine) / below
            turn = 6.0 * mass * self.gravity * sine - 6.0 * push * cosine
            turn = (turn - 3.0 * arm * speed**2 * sine * cosine) / (self.length * below)
            return np.stack([velocity, cart, speed, turn], axis=1)

        angle = np.arctan2(states[:, 3], states[:, 2])
        now = np.stack([states[:, 0], states[:, 1], angle, states[:, 4]], axis=1)
        position, velocity, angle, speed = runge_kutta(derivative, now, 0.1, steps=4).T
        velocity, speed = velocity + 0.01 * noise[:, 0], speed + 0.02 * noise[:, 1]
        columns = [position, velocity, np.cos(angle), np.sin(angle), speed]
        rewards = ((1.0 + np.cos(angle)) / 2.0) ** 2
        return np.stack(columns, axis=1), rewards, np.zeros(len(states), bool)

    def fallback_actions(self, states, xp=np):
        """Hold the cart in the middle. The pole hangs."""
        position, velocity = states[:, 0], states[:, 1]
        return (-12.0 * position - 6.0 * velocity)[:, None]
