"""Process control: two tanks that may overflow, and a reactor that may run away."""

import numpy as np
from constrained import ConstrainedPlant, upper
from plant import box
from process import CoupledTanks, Reactor


class TankOverflow(ConstrainedPlant, CoupledTanks):
    """Two tanks in series: bring the second to its level, without overflow of either.

    The tanks of benchmarks/control/plants/process.py with low rims. State: levels in cm. Action:
    inflow into the first in cm³/s. Four seconds a step.
    """

    name = "tank-overflow"
    coordinates = ("level_1", "level_2")
    constraints = (upper("first tank", "cm", 0, 18.0), upper("second tank", "cm", 1, 16.0))
    allowed = box([0.0, 0.0], [18.0, 16.0])
    trusted = box([0.0, 0.0], [15.0, 14.0])
    scale = (18.0, 16.0)

    def transition(self, states, actions, noise):
        states, _, ended = super().transition(states, actions, np.zeros_like(noise))
        states, _, _ = super().transition(states, actions, noise)
        return states, -np.abs(states[:, 1] - self.target) / 10.0, ended

    def fallback_actions(self, states, xp=np):
        """Hold the second level at 11 cm: the steady inflow, and proportional feedback."""
        steady = self.outlet * np.sqrt(2.0 * 981.0 * 11.0)
        return (steady + 1.0 * (11.0 - states[:, 1]))[:, None]


class ReactorRunaway(ConstrainedPlant, Reactor):
    """An exothermic stirred reactor: convert much, below the temperature of runaway.

    The reactor of benchmarks/control/plants/process.py. It is unstable near the limit. State:
    concentration in mol/l and temperature in K. Action: temperature of the coolant in K. Six
    seconds a step. The reward is the conversion, the share of the feed that has reacted.
    """

    name, reward_type = "reactor-runaway", "profit"
    coordinates = ("concentration", "temperature")
    action_space = box([265.0], [335.0])
    horizon = 50
    noise_dimension = 1
    constraints = (upper("runaway", "K", 1, 355.0),)
    allowed = box([0.0, 250.0], [1.0, 355.0])
    trusted = box([0.5, 320.0], [0.9, 345.0])
    scale = (20.0,)

    def transition(self, states, actions, noise):
        states, _, ended = super().transition(states, actions, noise)
        states[:, 1] += 0.1 * noise[:, 0]
        return states, 1.0 - states[:, 0], ended

    def fallback_actions(self, states, xp=np):
        """Hold 338 K by proportional feedback of the temperature."""
        return (302.0 - 3.0 * (states[:, 1] - 338.0))[:, None]
