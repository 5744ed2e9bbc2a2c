"""Biology and medicine: blood sugar, an epidemic, and the harvest of predators and prey."""

import numpy as np
from plant import Plant, box, euler


class Glucose(Plant):
    """Blood sugar of a diabetic after a meal: Bergman's minimal model with an insulin pump.

    State: glucose in mg/dl, remote insulin action in 1/min, insulin in mU/l, and the rate at which
    the meal enters, in mg/dl/min. Action: infusion in mU/l/min. Five minutes a step. Too little
    sugar costs three times as much as too much.
    """

    name, domain, reward_type = "glucose", "biology", "cost"
    observation_space = box([20.0, -0.02, 0.0, 0.0], [400.0, 0.15, 100.0, 10.0])
    action_space = box([0.0], [5.0])
    horizon = 48
    noise_dimension = 1

    def initial_states(self, rng, n):
        spread = np.array([3.0, 0.0, 0.3, 0.1])
        return np.array([180.0, 0.0, 15.0, 4.0]) + spread * rng.uniform(-1.0, 1.0, (n, 4))

    def transition(self, states, actions, noise):
        infusion = actions[:, 0]

        def derivative(now):
            glucose, action, insulin, meal = now.T
            return np.stack(
                [
                    -0.01 * (glucose - 110.0) - action * glucose + meal,
                    -0.028 * action + 5e-5 * (insulin - 15.0),
                    -0.09 * (insulin - 15.0) + infusion,
                    -0.03 * meal,
                ],
                axis=1,
            )

        states = euler(derivative, states, duration=5.0, steps=5)
        states[:, 0] = np.maximum(states[:, 0] + 0.5 * noise[:, 0], 20.0)
        above = np.maximum(states[:, 0] - 110.0, 0.0)
        below = np.maximum(110.0 - states[:, 0], 0.0)
        return states, -(above + 3.0 * below) / 50.0, np.zeros(len(states), bool)


class Epidemic(Plant):
    """An epidemic with vaccination and contact restrictions, and few beds in hospital.

    Kermack and McKendrick's model. State: susceptible, infected and in hospital, in per cent of
    the population. Actions: strictness of restrictions and speed of vaccination, both in [0, 1].
    Three days a step.
    """

    name, domain, reward_type = "epidemic", "biology", "cost"
    observation_space = box([0.0, 0.0, 0.0], [100.0, 60.0, 10.0])
    action_space = box([0.0, 0.0], [1.0, 1.0])
    horizon = 40

    contact, recovery = 0.45, 0.15  # by day

    def initial_states(self, rng, n):
        spread = np.array([0.5, 0.05, 0.005])
        return np.array([96.0, 2.0, 0.1]) + spread * rng.uniform(-1.0, 1.0, (n, 3))

    def transition(self, states, actions, noise):
        strictness, speed = actions.T

        def derivative(now):
            susceptible, infected, hospital = now.T
            new = self.contact * (1.0 - 0.8 * strictness) * susceptible * infected / 100.0
            vaccinated = 0.012 * speed * susceptible
            return np.stack(
                [
                    -new - vaccinated,
                    new - self.recovery * infected,
                    0.02 * infected - 0.1 * hospital,
                ],
                axis=1,
            )

        states = euler(derivative, states, duration=3.0, steps=6)
        overload = np.maximum(states[:, 2] - 0.5, 0.0)
        rewards = -0.5 * states[:, 2] - 4.0 * overload - 0.3 * strictness - 0.05 * speed
        return states, rewards, np.zeros(len(states), bool)


class Harvest(Plant):
    """Fish and their predators, both caught: earn much without emptying the lake.

    Logistic prey and Lotka–Volterra predation. State: stocks of prey and predator, in units of the
    prey's capacity. Actions: efforts in [0, 1]. Catches are worth money and effort costs some. A
    quarter of a year a step.
    """

    name, domain, reward_type = "harvest", "biology", "profit"
    observation_space = box([0.0, 0.0], [1.5, 1.5])
    action_space = box([0.0, 0.0], [1.0, 1.0])
    horizon = 40

    def initial_states(self, rng, n):
        return np.array([0.6, 0.4]) + 0.01 * rng.uniform(-1.0, 1.0, (n, 2))

    def transition(self, states, actions, noise):
        catch = np.zeros(len(states))
        for _ in range(5):
            prey, predator = states.T
            rates = 4.0 * actions * states
            catch = catch + 0.05 * rates @ np.array([1.0, 1.5])
            growth = 2.0 * prey * (1.0 - prey) - 2.0 * prey * predator
            births = predator * (1.6 * prey - 0.5)
            states = states + 0.05 * (np.stack([growth, births], axis=1) - rates)
            states = np.maximum(states, 0.01)  # some always hide
        rewards = catch - 0.1 * actions.sum(axis=1)
        return states, rewards, np.zeros(len(states), bool)
