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
        "Hidden layers. Two were enough for a swing-up and for a quadrotor.",
    )
    rounds: int = setting(
        6,
        "Rounds of labelling. In the first one the plan acts, later the network does. On a "
        "swing-up the loss fell from 21 % of optimum minus random play to 0 in four rounds.",
    )
    states: int = setting(
        2000,
        "States that the plan labels in each round, in whole episodes. Labelling takes most of "
        "the time, some milliseconds a state. For the starts of Pendulum-v1, 1,200 were too few.",
    )
    common_plan: bool | None = setting(
        None,
        "Whether all episodes of a round begin with one plan, the best of several starts. Plans "
        "that differ from start to start have no mean that works. None: where starts are narrow.",
    )
    narrow: float = setting(
        0.05,
        "Starts are narrow if their deviation is at most this share of that of all visited states. "
        "It is 0.02 in a swing-up from rest, and 1.3 in Pendulum-v1.",
    )
    steps: int = setting(
        4000,
        "Steps of Adam after each round. The network goes on from that of the round before.",
    )
    batch: int = setting(256, "Labels in each step of Adam.")
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
        64,
        "Episodes of the learned model in which networks are compared after each round. They "
        "cost little, as no plan is asked.",
    )
    loss_episodes: int = setting(
        16,
        "Episodes in which the loss is measured at the end. The plan is asked at each of their "
        "steps.",
    )
    play_episodes: int | None = setting(
        None,
        "Episodes of the true system in which the loss is measured, where its equations are not "
        "known. None plays 8 of a task that was made from a name, and none of an object of your "
        "own, which may be a real plant.",
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
        for name in ("episodes", "loss_episodes"):
            integer(name, getattr(self, name), least=2)
        if self.play_episodes is not None:
            integer("play_episodes", self.play_episodes, least=0)
        integer("seed", self.seed, least=0)
        for name in ("learning_rate", "narrow"):
            positive_number(name, getattr(self, name))
        if not 0 <= self.perturbation <= 1:
            raise ArgumentError("perturbation", "a share from 0 to 1", self.perturbation)
