"""Logistics: an inventory whose orders arrive late, and a queue with servers by the hour."""

import gymnasium
import numpy as np
from plant import Plant, box


class Inventory(Plant):
    """A warehouse with a lead time of three days. Unmet demand waits, at a price.

    State: stock (negative: demand that waits) and the orders that arrive in one, two and three
    days. Action: today's order.
    """

    name, domain, reward_type = "inventory", "logistics", "cost"
    observation_space = box([-150.0, 0.0, 0.0, 0.0], [250.0, 24.0, 24.0, 24.0])
    action_space = box([0.0], [24.0])
    horizon = 30
    noise_dimension = 1

    demand = 10.0

    def initial_states(self, rng, n):
        states = np.zeros((n, 4))
        states[:, 0] = 60.0 + rng.uniform(-1.0, 1.0, n)
        return states

    def transition(self, states, actions, noise):
        demand = np.maximum(self.demand + 0.5 * noise[:, 0], 0.0)
        stock = states[:, 0] + states[:, 1] - demand
        rewards = -(np.maximum(stock, 0.0) + 4.0 * np.maximum(-stock, 0.0)) / 10.0
        states = np.column_stack([stock, states[:, 2:], actions])
        return states, rewards, np.zeros(len(states), bool)


class Queue(Plant):
    """A queue with zero to five servers: waiting costs, and so do servers, more for each one.

    The fluid approximation of a queue with Poisson arrivals: customers leave at the rate
    μ u q / (1 + q). State: length of the queue. Action: number of servers. One hour a step.
    """

    name, domain, reward_type = "queue", "logistics", "cost"
    observation_space = box([0.0], [120.0])
    action_space = gymnasium.spaces.Discrete(6)
    horizon = 40
    noise_dimension = 1

    arrivals, service = 10.0, 4.0  # by hour

    def initial_states(self, rng, n):
        return 40.0 + 0.5 * rng.uniform(-1.0, 1.0, (n, 1))

    def transition(self, states, actions, noise):
        servers, length = actions[:, 0], states[:, 0]
        for _ in range(10):
            served = self.service * servers * length / (1.0 + length)
            length = np.maximum(length + 0.1 * (self.arrivals - served), 0.0)
        length = np.maximum(length + 0.3 * noise[:, 0], 0.0)
        rewards = -0.1 * length - 0.2 * servers**2
        return length[:, None], rewards, np.zeros(len(states), bool)
