"""The numbers of kernels that are fitted to the data, each with its reason."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from kernelmdp.gp.fit_config import (
    INDUCING,
    SEARCH,
    TREND,
    InducingConfig,
    SearchConfig,
    TrendConfig,
)
from kernelmdp.gp.hyperpriors import DYNAMICS, ENDINGS, REWARD, SPARSE, HyperPrior
from kernelmdp.kernels import kernel
from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.settings import Settings, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class FittedSettings(Settings):
    """Settings of ``FittedKernels``. None is part of a theorem.

    >>> FittedSettings(inducing_points=64).inducing_points
    64
    """

    part: ClassVar[str] = "learner"

    inducing_points: int = setting(
        192,
        "Centres of a posterior. With 192 a step of MPC stays below 60 ms; more centres reach "
        "further and cost their square.",
    )
    batch_rows: int = setting(256, "Rows taken at once. Only speed depends on it.")
    fit_blocks: int = setting(
        4,
        "Kernels are fitted to so many blocks of rows. One block may find short lengthscales that "
        "explain noise, where noise is as large as what there is to learn.",
    )
    fit_rows: int = setting(
        160, "Rows of a block. Fitting takes their cube; 160 rows take a few milliseconds a step."
    )
    refit_growth: float = setting(
        0.15, "Kernels are fitted anew when data have grown by this share: fits then cost O(log n)."
    )
    refit_rows: int = setting(5, "And by at least so many rows: the first steps of an episode.")
    trend_noise: float = setting(
        1.2,
        "An output is taken for a straight line when a line leaves at most so many deviations of "
        "the noise; 1.2 is 1 with the error of a hundred rows.",
    )
    trend_rows: int = setting(
        10, "A line needs so many rows for each of its numbers, to be told from chance."
    )
    extrapolation_margin: float = setting(
        0.5,
        "Room beyond what was seen, on axes without bounds, as a share of half their length: "
        "plans may go half as far again.",
    )
    flat_reward_threshold: float = setting(
        0.05,
        "Rewards depend on the state when they change with it by this share of their range; less "
        "is what noise and the fit leave. Settled on MountainCarContinuous.",
    )
    steps_before_termination: int = setting(
        10,
        "Steps before an end from which ends are told, beside steps from all over the data. "
        "Settled on CartPole-v1, seeds 0 to 2.",
    )
    continuation_threshold: float = setting(
        0.75,
        "What counts as going on, of 1. Of two errors, to take a state for lost costs less. "
        "Settled on CartPole-v1, seeds 0 to 2.",
    )
    minimum_scale: float = setting(
        1e-3, "No output is taken to be smaller than this share of its scale: it is still then."
    )
    increment_unit: float = setting(
        0.1, "Increments are learned in units of this share of each axis; only rounding sees it."
    )
    dynamics_prior: HyperPrior = setting(
        DYNAMICS, "Prior of the kernels of increments. It served on four systems without tuning."
    )
    reward_prior: HyperPrior = setting(
        REWARD,
        "Prior of the reward's kernel. Rewards are often flat where one has been, so none is taken "
        "for smooth over more than half the width of an axis.",
    )
    sparse_prior: HyperPrior = setting(
        SPARSE,
        "The same where no reward has been seen to depend on the state: lengthscales up to 0.3 of "
        "an axis, so that there is something left to find.",
    )
    termination_prior: HyperPrior = setting(
        ENDINGS, "Prior of where episodes end: steep, with noise for what is not smooth."
    )

    reward_kernel: Any = setting(
        None,
        "An expression whose parameters are fitted, in the place of squared exponentials: its "
        "numbers are the medians of their priors.",
    )
    transition_kernel: Any = setting(
        None, "The same for the increments of the state; one expression, or one for each output."
    )
    expression_spread: float = setting(
        1.0,
        "Standard deviation of the logarithm of an expression's parameter: a factor of e either "
        "way is usual.",
    )
    expression_bounds: Sequence[float] = setting(
        (0.05, 20.0), "Lowest and highest value of such a parameter, in units of the one given."
    )
    search: Any = setting(SEARCH, "How parameters are searched for.")
    trend: Any = setting(TREND, "How straight lines are found.")
    inducing: Any = setting(INDUCING, "How posteriors on centres are computed.")

    def __post_init__(self) -> None:
        for name in ("reward_kernel", "transition_kernel"):
            if isinstance(given := getattr(self, name), str):
                object.__setattr__(self, name, kernel(given))
        for name, kind in (
            ("search", SearchConfig),
            ("trend", TrendConfig),
            ("inducing", InducingConfig),
        ):
            if isinstance(given := getattr(self, name), Mapping):
                object.__setattr__(self, name, kind(**given))
        for name in (
            "inducing_points",
            "batch_rows",
            "fit_blocks",
            "fit_rows",
            "refit_rows",
            "trend_rows",
        ):
            integer(name, getattr(self, name), least=1)
        integer("steps_before_termination", self.steps_before_termination, least=1)
        for name in (
            "refit_growth",
            "trend_noise",
            "extrapolation_margin",
            "flat_reward_threshold",
            "continuation_threshold",
            "increment_unit",
        ):
            positive_number(name, getattr(self, name))
