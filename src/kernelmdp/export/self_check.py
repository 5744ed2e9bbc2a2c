"""States with their actions, which every exported file carries to check itself."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from kernelmdp.domains import Domain
from kernelmdp.errors import KernelMDPError
from kernelmdp.export.controller_inputs import observations_of
from kernelmdp.export.controller_table import ControllerTable
from kernelmdp.mdp.policy import Policy

#: States of a self-check. They take a few kilobytes of a file.
CHECKS = 100
#: By how much an exported action may differ, as a share of 1 plus its size. Tables are read in
#: double precision, so differences are rounding and far smaller.
TOLERANCE = 1e-6
#: By which share of each axis the states of a check may lie outside, so that limits are checked.
OUTSIDE = 0.1


@dataclasses.dataclass(frozen=True, eq=False)
class SelfCheck:
    """Observations and periods, with the actions that a controller must choose.

    Attributes:
        observations: The observations, (n, k).
        periods: The periods, (n,).
        actions: The actions, (n, q).

    >>> SelfCheck(np.zeros((1, 2)), np.zeros(1, int), np.zeros((1, 1))).lists()["periods"]
    [0]
    """

    observations: Float[np.ndarray, "n k"]
    periods: Int[np.ndarray, " n"]
    actions: Float[np.ndarray, "n q"]

    @classmethod
    def of(cls, table: ControllerTable, policy: Policy, states: Domain) -> "SelfCheck":
        """Draw states and ask the policy for their actions.

        Args:
            table: The exported controller.
            policy: The policy that it follows.
            states: The state space.

        Returns:
            The check, always with the same states.

        Raises:
            KernelMDPError: If the exported controller does not follow the policy.
        """
        observations, periods = drawn_inputs(table, states, count=CHECKS, seed=0)
        controller = table.numpy_controller()
        rows = zip(observations, periods, strict=True)
        actions = np.array([policy(controller.state(row), int(h)) for row, h in rows])
        actions = np.clip(actions, table.action_low, table.action_high)
        check = cls(observations, periods, actions)
        rows = zip(observations, periods, strict=True)
        difference = np.abs(np.array([controller(row, h) for row, h in rows]) - actions)
        if not (difference <= TOLERANCE * (1 + np.abs(actions))).all():
            raise KernelMDPError(f"the exported actions differ by {difference.max():.3g}")
        return check

    def arrays(self) -> dict[str, np.ndarray]:
        """Write the check as arrays.

        Returns:
            The arrays by the names that they have in files.
        """
        return {
            "check_observations": self.observations,
            "check_periods": self.periods,
            "check_actions": self.actions,
        }

    def lists(self) -> dict[str, Any]:
        """Write the check as lists, for JSON.

        Returns:
            The lists by name.
        """
        return {
            "observations": self.observations.tolist(),
            "periods": self.periods.tolist(),
            "actions": self.actions.tolist(),
        }


def drawn_inputs(
    table: ControllerTable, states: Domain, *, count: int, seed: int
) -> tuple[Float[np.ndarray, "n k"], Int[np.ndarray, " n"]]:
    """Draw observations and periods evenly, some of them slightly outside the limits.

    Args:
        table: The controller.
        states: The state space.
        count: How many to draw.
        seed: Decides the draw.

    Returns:
        The observations (n, k) and the periods (n,).
    """
    generator = np.random.default_rng(seed)
    if states.points is not None:
        rows = np.array(states.points)[generator.integers(len(states.points), size=count)]
    else:
        low, high = states.extent
        margin = OUTSIDE * (high - low)
        rows = generator.uniform(low - margin, high + margin, (count, len(low)))
    periods = generator.integers(table.horizon, size=count)
    return observations_of(rows, table.inputs), periods
