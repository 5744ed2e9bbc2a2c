"""Settings of a distilled controller: a small network that imitates a planner's decisions."""

import dataclasses
from typing import ClassVar

from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.settings import Settings, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class DistillationConfig(Settings):
    """How a plan that searches at every decision becomes a network of a fixed size.

    Attributes:
        part: "distillation", the word for these settings in error messages.

    >>> DistillationConfig(width=32).rounds
    6
    """

    part: ClassVar[str] = "distillation"

    width: int = setting(
        64,
        "Units of each hidden layer. A decision of 64 takes a few microseconds in C.",
    )
    layers: int = setting(
        2,
        "Hidden layers. One cannot follow a swing-up at this width, and more take longer to train.",
    )
    rounds: int = setting(
        6,
        "Rounds of labelling. In the first one the plan acts, later the network does. Most of "
        "the gain is in the first few.",
    )
    states: int = setting(
        1600,
        "States that the plan labels in each round, in whole episodes. Labelling takes most of "
        "the time, some milliseconds for each state.",
    )
    steps: int = setting(
        4000,
        "Steps of Adam after each round. The network goes on from that of the round before.",
    )
    batch: int = setting(256, "Labels in each step. Larger batches gained nothing.")
    learning_rate: float = setting(
        3e-3,
        "First learning rate of a round, which then falls to zero along a cosine.",
    )
    perturbation: float = setting(
        0.3,
        "Size of the disturbances of actions in half of the episodes, as a share of their range. "
        "They show the network how the plan recovers.",
    )
    episodes: int = setting(
        32,
        "Episodes of the learned model in which returns are compared, for the choice between "
        "rounds and for the printed loss.",
    )
    period: bool | None = setting(
        None,
        "Whether the period is an input. None tries both and keeps what earns more in the "
        "learned model.",
    )
    seed: int = setting(0, "Decides everything random. The same seed makes the same controller.")

    def __post_init__(self) -> None:
        for name in ("width", "layers", "rounds", "states", "steps", "batch"):
            integer(name, getattr(self, name), least=1)
        integer("episodes", self.episodes, least=2)
        integer("seed", self.seed, least=0)
        positive_number("learning_rate", self.learning_rate)
        if not 0 <= self.perturbation <= 1:
            raise ArgumentError("perturbation", "a share from 0 to 1", self.perturbation)
