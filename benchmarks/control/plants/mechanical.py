"""Mechanics: a rotary pendulum, a planar quadrotor, a two-link arm and a car in a valley."""

import gymnasium
import numpy as np
from plant import Plant, box, runge_kutta


class RotaryPendulum(Plant):
    """Furuta's pendulum: swing up the pendulum at the end of a turning arm, and hold it there.

    State: angle of the arm, cosine and sine of the pendulum's angle (0 is upright), and both
    speeds. Action: torque on the arm in units of 0.2 N m. A twentieth of a second a step.
    """

    name, domain, reward_type = "rotary-pendulum", "mechanical", "bounded"
    observation_space = box([-10.0, -1.0, -1.0, -30.0, -40.0], [10.0, 1.0, 1.0, 30.0, 40.0])
    action_space = box([-1.0], [1.0])
    horizon = 60

    # Inertias and weight, in SI units: arm, pendulum, coupling, and weight times half length.
    arm, pendulum, coupling, weight = 0.01, 0.005, 0.004, 0.2

    def initial_states(self, rng, n):
        angle = np.pi + 0.05 * rng.uniform(-1.0, 1.0, n)
        rest = np.zeros(n)
        return np.stack([rest, np.cos(angle), np.sin(angle), rest, rest], axis=1)

    def transition(self, states, actions, noise):
        torque = 0.2 * actions[:, 0]
        a, b, c = self.arm, self.pendulum, self.coupling

        def derivative(now):
            _, angle, arm_speed, speed = now.T
            sine, cosine = np.sin(angle), np.cos(angle)
            on_arm = torque - 0.004 * arm_speed + c * sine * speed**2
            on_arm -= 2.0 * b * sine * cosine * arm_speed * speed
            on_pendulum = b * sine * cosine * arm_speed**2 + self.weight * sine - 5e-4 * speed
            inertia = a + b * sine**2
            determinant = inertia * b - (c * cosine) ** 2
            arm_push = (b * on_arm - c * cosine * on_pendulum) / determinant
            push = (inertia * on_pendulum - c * cosine * on_arm) / determinant
            return np.stack([arm_speed, speed, arm_push, push], axis=1)

        angle = np.arctan2(states[:, 2], states[:, 1])
        now = np.stack([states[:, 0], angle, states[:, 3], states[:, 4]], axis=1)
        arm_angle, angle, arm_speed, speed = runge_kutta(derivative, now, 0.05, steps=2).T
        columns = [arm_angle, np.cos(angle), np.sin(angle), arm_speed, speed]
        upright = ((1.0 + np.cos(angle)) / 2.0) ** 2
        rewards = upright * np.exp(-((arm_angle / 4.0) ** 2))
        return np.stack(columns, axis=1), rewards, np.zeros(len(states), bool)


class Quadrotor(Plant):
    """A quadrotor in a vertical plane: fly to a point and hover there. A crash ends the episode.

    State: position and height in m, pitch, and their speeds. Actions: thrust of the left and the
    right rotors in [0, 1]. A tenth of a second a step.
    """

    name, domain, reward_type = "quadrotor", "mechanical", "bounded, ends on a crash"
    observation_space = box([-4.0, -1.0, -3.0, -8.0, -8.0, -15.0], [4.0, 4.0, 3.0, 8.0, 8.0, 15.0])
    action_space = box([0.0, 0.0], [1.0, 1.0])
    horizon = 40
    noise_dimension = 2

    def initial_states(self, rng, n):
        first = np.array([-1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
        spread = np.array([0.05, 0.05, 0.02, 0.0, 0.0, 0.0])
        return first + spread * rng.uniform(-1.0, 1.0, (n, 6))

    def transition(self, states, actions, noise):
        left, right = actions.T

        def derivative(now):
            pitch = now[:, 2]
            thrust = 0.9 * 9.81 * (left + right)
            acceleration = [
                -thrust * np.sin(pitch) - 0.1 * now[:, 3],
                thrust * np.cos(pitch) - 9.81 - 0.1 * now[:, 4],
                12.0 * (right - left) - 0.5 * now[:, 5],
            ]
            return np.concatenate([now[:, 3:], np.stack(acceleration, axis=1)], axis=1)

        states = runge_kutta(derivative, states, duration=0.1, steps=1)
        states[:, 3:5] += 0.02 * noise  # gusts
        x, z, pitch = states[:, :3].T
        crashed = (z < 0.0) | (z > 3.0) | (np.abs(x) > 3.0) | (np.abs(pitch) > 1.5)
        near = np.exp(-(x**2 + (z - 1.5) ** 2) / 0.5)
        return states, np.where(crashed, 0.0, 0.1 + 0.9 * near), crashed


class TwoLinkArm(Plant):
    """An arm with two links in a horizontal plane: bring its tip to a place and stay.

    State: both angles and speeds. Actions: torques in units of 1 N m. A twentieth of a second a
    step. The reward is 1 where the tip is within 15 cm of its place, and 0 elsewhere.
    """

    name, domain, reward_type = "two-link-arm", "mechanical", "sparse"
    observation_space = box([-7.0, -7.0, -20.0, -20.0], [7.0, 7.0, 20.0, 20.0])
    action_space = box([-1.0, -1.0], [1.0, 1.0])
    horizon = 40

    length, mass, friction = 0.5, 1.0, 0.1
    target = (0.1, 0.7)

    def initial_states(self, rng, n):
        angles = 0.03 * rng.uniform(-1.0, 1.0, (n, 2))
        return np.concatenate([angles + np.array([0.0, 0.3]), np.zeros((n, 2))], axis=1)

    def transition(self, states, actions, noise):
        unit = self.mass * self.length**2

        def derivative(now):
            elbow, speed1, speed2 = now[:, 1], now[:, 2], now[:, 3]
            cosine, sine = np.cos(elbow), np.sin(elbow)
            m11, m12, m22 = unit * (5.0 / 3.0 + cosine), unit * (1.0 / 3.0 + cosine / 2), unit / 3
            bend = unit * sine / 2
            torque1 = actions[:, 0] + bend * (2.0 * speed1 * speed2 + speed2**2)
            torque2 = actions[:, 1] - bend * speed1**2
            torque1, torque2 = torque1 - self.friction * speed1, torque2 - self.friction * speed2
            determinant = m11 * m22 - m12**2
            push1 = (m22 * torque1 - m12 * torque2) / determinant
            push2 = (m11 * torque2 - m12 * torque1) / determinant
            return np.stack([speed1, speed2, push1, push2], axis=1)

        states = runge_kutta(derivative, states, duration=0.05, steps=1)
        shoulder, both = states[:, 0], states[:, 0] + states[:, 1]
        x = self.length * (np.cos(shoulder) + np.cos(both)) - self.target[0]
        y = self.length * (np.sin(shoulder) + np.sin(both)) - self.target[1]
        rewards = (np.hypot(x, y) < 0.15).astype(float)
        return states, rewards, np.zeros(len(states), bool)


class HillCar(Plant):
    """A weak car in a valley: gain speed by rocking, and reach the top of the right hill.

    State: position and speed. Actions: back, none, forward. The only reward is 1 at the top, where
    the episode ends.
    """

    name, domain, reward_type = "hill-car", "mechanical", "sparse, ends at the goal"
    observation_space = box([-1.2, -0.07], [0.6, 0.07])
    action_space = gymnasium.spaces.Discrete(3)
    horizon = 50

    def initial_states(self, rng, n):
        return np.stack([-0.5 + 0.03 * rng.uniform(-1.0, 1.0, n), np.zeros(n)], axis=1)

    def transition(self, states, actions, noise):
        position, speed = states.T
        arrived = np.zeros(len(states), bool)
        for _ in range(4):
            speed = speed + 0.0011 * (actions[:, 0] - 1.0) - 0.0025 * np.cos(3.0 * position)
            speed = np.clip(speed, -0.07, 0.07)
            position = position + speed
            stopped = position < -1.2  # a wall
            position, speed = np.where(stopped, -1.2, position), np.where(stopped, 0.0, speed)
            arrived |= position >= 0.5
        return np.stack([position, speed], axis=1), arrived.astype(float), arrived
