"""Well-known tasks beside the plants: where exploration is needed, and where a pole must not fall.

Each task says when an episode is solved, how many episodes are played and what must hold later.
The pendulum with a price of torque has short lengthscales, so that nothing is found by chance.
"""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np

import kernelmdp as km


@dataclasses.dataclass(frozen=True)
class Task:
    """A task and its criterion.

    Attributes:
        make: Makes what an agent is made for.
        solved: An episode is solved if its number is at least this. The number is the return, or
            the return less the regret of the policy where the optimum is known.
        episodes: The number of episodes to play.
        settings: Settings of the agent.
        exact: Whether the number is the exact value of the policy.
        fixed_length: Whether all episodes are played, also after a solved one.
        steps: A solved episode must come within so many steps, if not None.
        later: Later episodes of which 9 of 10 must be solved, as (first, last), counted from the
            first solved episode if ``steps`` is given, else from the start of the run.
    """

    make: Callable[[], object]
    solved: float
    episodes: int
    settings: Mapping[str, object] = dataclasses.field(default_factory=dict)
    exact: bool = False
    fixed_length: bool = False
    steps: int | None = None
    later: tuple[int, int] | None = None

    def is_over(self, returns: list[float]) -> bool:
        """Return whether nothing more is measured: solved, and later episodes were played."""
        if self.fixed_length or (self.later is not None and self.steps is None):
            return False
        later = 0 if self.later is None else self.later[1]
        return len(returns) >= self.first_solved(np.array(returns)) + later

    def first_solved(self, numbers: np.ndarray) -> float:
        """Return the first solved episode, counted from 1, or infinity."""
        reached = np.flatnonzero(numbers >= self.solved)
        return float(reached[0] + 1) if len(reached) else float("inf")


def _swingup(penalty: float) -> Callable[[], object]:
    return lambda: km.make("pendulum-swingup", penalty=penalty, short=True, macro=4)


def _gymnasium(name: str) -> Callable[[], object]:
    return lambda: name


#: 95 % of the optima 287.9 and 277.1, which dynamic programming gives.
SWINGUP_SOLVED = {0.1: 0.95 * 287.9, 0.2: 0.95 * 277.1}

TASKS: dict[str, Task] = {
    **{
        f"swingup-{penalty}-{reward}": Task(_swingup(penalty), solved, 20, {"reward": reward})
        for penalty, solved in SWINGUP_SOLVED.items()
        for reward in ("known", "learned")
    },
    "MountainCarContinuous-v0": Task(_gymnasium("MountainCarContinuous-v0"), 90.0, 12),
    "MountainCar-v0": Task(_gymnasium("MountainCar-v0"), -150.0, 12),
    # 90 % of the optimum, by the exact value of the policy.
    "riverswim": Task(_gymnasium("riverswim"), 0.9, 150, exact=True, fixed_length=True),
    "Acrobot-v1": Task(_gymnasium("Acrobot-v1"), -120.0, 16, later=(7, 16)),
    "CartPole-v1": Task(_gymnasium("CartPole-v1"), 500.0, 30, steps=1500, later=(1, 10)),
    "InvertedPendulum-v5": Task(
        _gymnasium("InvertedPendulum-v5"), 1000.0, 30, steps=1500, later=(1, 10)
    ),
    "FrozenLake-v1": Task(
        _gymnasium("FrozenLake-v1"), 1.0, 400, {"horizon": 100}, fixed_length=True
    ),
}
