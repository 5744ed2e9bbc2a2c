"""Process control: levels of coupled tanks, and a stirred reactor at its unstable point."""

import numpy as np
from plant import Plant, box, euler


class CoupledTanks(Plant):
    """Two tanks in series. Hold the level of the second by the pump into the first.

    Torricelli's law for both outlets. State: levels in cm. Action: inflow in cm³/s. Two seconds a
    step.
    """

    name, domain, reward_type = "coupled-tanks", "process", "cost"
    observation_space = box([0.0, 0.0], [40.0, 40.0])
    action_space = box([0.0], [100.0])
    horizon = 40
    noise_dimension = 2

    section = 15.5  # cm²
    outlet = 0.178  # cm²
    target = 15.0

    def initial_states(self, rng, n):
        return 5.0 + 0.2 * rng.uniform(-1.0, 1.0, (n, 2))

    def transition(self, states, actions, noise):
        inflow = actions[:, 0]

        def derivative(levels):
            outflow = self.outlet * np.sqrt(2.0 * 981.0 * np.maximum(levels, 0.0))
            change = np.stack([inflow - outflow[:, 0], outflow[:, 0] - outflow[:, 1]], axis=1)
            return change / self.section

        levels = euler(derivative, states, duration=2.0, steps=2) + 0.03 * noise
        overfull = np.maximum(levels[:, 0] - 30.0, 0.0)
        rewards = -(np.abs(levels[:, 1] - self.target) + overfull) / 10.0
        return levels, rewards, np.zeros(len(states), bool)


class Reactor(Plant):
    """An exothermic continuous stirred-tank reactor, held where it is unstable.

    One reaction of first order with Arrhenius rate; the usual numbers of textbooks on process
    control. State: concentration in mol/l and temperature in K. Action: temperature of the coolant
    in K. Six seconds a step.
    """

    name, domain, reward_type = "reactor", "process", "cost"
    observation_space = box([0.0, 250.0], [1.0, 550.0])
    action_space = box([280.0], [330.0])
    horizon = 40

    dilution = 1.0  # flow by volume, 1/min
    heating = 209.2  # heat of reaction by heat capacity, K l/mol
    exchange = 2.092  # heat exchange by heat capacity, 1/min

    def initial_states(self, rng, n):
        return np.array([0.8, 330.0]) + np.array([0.005, 0.5]) * rng.uniform(-1, 1, (n, 2))

    def transition(self, states, actions, noise):
        concentration, temperature = states.T
        h = 0.1 / 20
        for _ in range(20):
            # The consumption is implicit: after ignition it is too fast for explicit steps.
            speed = 7.2e10 * np.exp(-8750.0 / temperature)
            fresh = concentration + h * self.dilution
            concentration = fresh / (1.0 + h * (self.dilution + speed))
            heat = self.heating * speed * concentration
            heat = heat + self.exchange * (actions[:, 0] - temperature)
            temperature = temperature + h * (self.dilution * (350.0 - temperature) + heat)
        states = np.stack([concentration, temperature], axis=1)
        off = np.abs(states[:, 0] - 0.5) / 0.25 + np.abs(states[:, 1] - 350.0) / 20.0
        return states, -off, np.zeros(len(states), bool)
