"""Blood sugar that must not fall too low: Bergman's minimal model with an insulin pump."""

import numpy as np
from biology import Glucose
from constrained import ConstrainedPlant, lower
from plant import box


class GlucoseFloor(ConstrainedPlant, Glucose):
    """Bring down the sugar of a diabetic after a meal, without hypoglycaemia.

    The patient of benchmarks/control/plants/biology.py. State: glucose in mg/dl, remote insulin
    action in 1/min, insulin in mU/l, and the rate at which the meal enters in mg/dl/min. Action:
    infusion in mU/l/min. Five minutes a step. The reward counts sugar above 90 mg/dl alone. Insulin
    acts for an hour after its infusion, so that a fast descent ends below the limit.
    """

    name = "glucose-floor"
    coordinates = ("glucose", "insulin_action", "insulin", "meal")
    noise_dimension = 2
    constraints = (lower("hypoglycaemia", "mg/dl", 0, 70.0),)
    allowed = box([70.0, -0.02, 0.0, 0.0], [400.0, 0.15, 100.0, 10.0])
    trusted = box([100.0, -0.02, 0.0, 0.0], [300.0, 0.015, 30.0, 6.0])
    scale = (20.0,)

    def transition(self, states, actions, noise):
        states, _, ended = super().transition(states, actions, noise)
        states[:, 3] = np.maximum(states[:, 3] * (1.0 + 0.02 * noise[:, 1]), 0.0)
        above = np.maximum(states[:, 0] - 90.0, 0.0)
        return states, -above / 50.0, ended

    def fallback_actions(self, states, xp=np):
        """Give insulin in proportion to sugar above 120 mg/dl, less while insulin acts."""
        wanted = 0.01 * (states[:, 0] - 120.0) - 20.0 * states[:, 1]
        return xp.maximum(wanted, 0.0)[:, None]
