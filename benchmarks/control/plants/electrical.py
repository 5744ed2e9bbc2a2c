"""Electrical drives and power: a motor, a boost converter and a magnetic suspension."""

import numpy as np
from plant import Plant, box, euler, runge_kutta


class DCMotor(Plant):
    """A DC motor turns an unbalanced load to an angle, against dry friction.

    State: angle, speed in rad/s and current in A. Action: voltage in units of 6 V. A twenty-fifth
    of a second a step.
    """

    name, domain, reward_type = "dc-motor", "electrical", "cost"
    observation_space = box([-30.0, -60.0, -10.0], [30.0, 60.0, 10.0])
    action_space = box([-1.0], [1.0])
    horizon = 40
    noise_dimension = 1

    inertia, constant, resistance, inductance = 0.01, 0.1, 1.0, 0.05
    target = 2.0

    def initial_states(self, rng, n):
        return np.stack([0.05 * rng.uniform(-1.0, 1.0, n), np.zeros(n), np.zeros(n)], axis=1)

    def transition(self, states, actions, noise):
        voltage = 6.0 * actions[:, 0]

        def derivative(now):
            angle, speed, current = now.T
            dry = 0.03 * np.tanh(speed / 0.3)
            torque = self.constant * current - 0.005 * speed - dry - 0.15 * np.sin(angle)
            drop = self.resistance * current + self.constant * speed
            return np.stack(
                [speed, torque / self.inertia, (voltage - drop) / self.inductance], axis=1
            )

        states = runge_kutta(derivative, states, duration=0.04, steps=2)
        states = states + 0.02 * noise[:, :1] * np.array([0.0, 1.0, 0.0])
        off = np.abs(states[:, 0] - self.target) / 2.0
        return states, -off - 0.02 * actions[:, 0] ** 2, np.zeros(len(states), bool)


class BoostConverter(Plant):
    """A boost converter raises 12 V to 36 V: the averaged model, which is not minimum phase.

    State: current in A and voltage in V. Action: duty cycle. A fifth of a millisecond a step.
    """

    name, domain, reward_type = "boost-converter", "electrical", "bounded"
    observation_space = box([0.0, 0.0], [60.0, 150.0])
    action_space = box([0.0], [0.9])
    horizon = 40

    supply, target, load = 12.0, 36.0, 20.0  # V, V, Ω
    inductance, capacity, resistance = 1.0, 0.22, 0.2  # mH, mF, Ω

    def initial_states(self, rng, n):
        return np.array([0.6, 12.0]) + np.array([0.05, 0.1]) * rng.uniform(-1.0, 1.0, (n, 2))

    def transition(self, states, actions, noise):
        passed = 1.0 - actions[:, 0]

        def derivative(now):
            current, voltage = now.T
            rise = self.supply - self.resistance * current - passed * voltage
            charge = passed * current - voltage / self.load
            return np.stack([rise / self.inductance, charge / self.capacity], axis=1)

        for _ in range(8):
            # The diode lets no current flow back.
            states = np.maximum(euler(derivative, states, duration=0.025, steps=1), 0.0)
        rewards = np.exp(-(((states[:, 1] - self.target) / 4.0) ** 2))
        rewards = rewards - 0.1 * np.maximum(states[:, 0] - 15.0, 0.0) / 15.0
        return states, rewards, np.zeros(len(states), bool)


class MagneticLevitation(Plant):
    """A steel ball under a magnet: lift it and hold it. It must not touch magnet or table.

    The force is proportional to the square of current by gap. State: gap in mm, speed in mm/s and
    current in A. Action: voltage in V. Five milliseconds a step.
    """

    name, domain, reward_type = "magnetic-levitation", "electrical", "bounded, ends on contact"
    observation_space = box([0.0, -800.0, 0.0], [20.0, 800.0, 1.6])
    action_space = box([0.0], [15.0])
    horizon = 60
    noise_dimension = 1

    target = 8.0

    def initial_states(self, rng, n):
        spread = np.array([0.1, 2.0, 0.005])
        return np.array([10.0, 0.0, 0.7]) + spread * rng.uniform(-1.0, 1.0, (n, 3))

    def transition(self, states, actions, noise):
        voltage = actions[:, 0]

        def derivative(now):
            gap, speed, current = now.T
            # At 10 mm a current of 0.7 A carries the ball.
            lift = 9810.0 * (current / 0.7 * 10.0 / np.maximum(gap, 2.0)) ** 2
            return np.stack([speed, 9810.0 - lift, (voltage - 10.0 * current) / 0.1], axis=1)

        # A second is 1000 ms; speeds are in mm/s.
        states = runge_kutta(derivative, states, duration=0.005, steps=2)
        states[:, 1] += 1.0 * noise[:, 0]
        gap = states[:, 0]
        touched = (gap < 3.0) | (gap > 17.0)
        rewards = np.where(touched, 0.0, np.exp(-(((gap - self.target) / 1.5) ** 2)))
        return states, rewards, touched
