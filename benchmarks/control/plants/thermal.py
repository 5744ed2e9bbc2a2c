"""Heating: a zone with a slow floor, and a row of eight rooms with three heaters."""

import numpy as np
from plant import Plant, box, euler


class ThermalZone(Plant):
    """A zone with floor heating and a fan, on a cold day.

    A network of three heat capacities. State: temperatures of air, walls and floor in °C. Actions:
    heating power and ventilation, both in [0, 1]. A quarter of an hour a step.
    """

    name, domain, reward_type = "thermal-zone", "thermal", "bounded"
    observation_space = box([-5.0, -5.0, -5.0], [60.0, 60.0, 90.0])
    action_space = box([0.0, 0.0], [1.0, 1.0])
    horizon = 40
    noise_dimension = 1

    outside = 2.0

    def initial_states(self, rng, n):
        return np.array([13.0, 11.0, 14.0]) + 0.2 * rng.uniform(-1.0, 1.0, (n, 3))

    def transition(self, states, actions, noise):
        power, ventilation = actions.T

        def derivative(temperatures):
            air, wall, floor = temperatures.T
            loss = (0.2 + 2.0 * ventilation) * (self.outside - air)
            return np.stack(
                [
                    1.5 * (wall - air) + 2.0 * (floor - air) + loss,
                    0.3 * (air - wall) + 0.06 * (self.outside - wall),
                    30.0 * power - 0.8 * (floor - air),
                ],
                axis=1,
            )

        states = euler(derivative, states, duration=0.25, steps=4)
        states[:, 0] += 0.05 * noise[:, 0]
        comfort = np.exp(-(((states[:, 0] - 21.0) / 1.5) ** 2))
        rewards = comfort - 0.1 * power - 0.1 * ventilation
        return states, rewards, np.zeros(len(states), bool)


class RoomChain(Plant):
    """Eight rooms in a row; the first, the fourth and the last have heaters.

    Heat flows between neighbours and to the cold outside. State: temperatures in °C. Actions:
    powers in [0, 1]. Half an hour a step.
    """

    name, domain, reward_type = "room-chain", "thermal", "cost"
    observation_space = box([0.0] * 8, [60.0] * 8)
    action_space = box([0.0] * 3, [1.0] * 3)
    horizon = 40
    noise_dimension = 8

    heated = (0, 3, 7)
    outside = 5.0

    def initial_states(self, rng, n):
        return 14.0 + 0.2 * rng.uniform(-1.0, 1.0, (n, 8))

    def transition(self, states, actions, noise):
        def derivative(rooms):
            flow = 0.8 * np.diff(rooms, axis=1)
            change = 0.15 * (self.outside - rooms)
            change[:, :-1] += flow
            change[:, 1:] -= flow
            change[:, self.heated] += 18.0 * actions
            return change

        states = euler(derivative, states, duration=0.5, steps=3) + 0.03 * noise
        rewards = -np.abs(states - 20.0).mean(axis=1) / 3.0 - 0.02 * actions.sum(axis=1)
        return states, rewards, np.zeros(len(states), bool)
