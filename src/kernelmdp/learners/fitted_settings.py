"""Settings of the learner with fitted kernels, each with its reason."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from kernelmdp.errors import ArgumentError
from kernelmdp.gp.fit_config import (
    INDUCING,
    SEARCH,
    TREND,
    InducingConfig,
    SearchConfig,
    TrendConfig,
)
from kernelmdp.gp.hyperpriors import DYNAMICS, ENDINGS, RELEVANCE, REWARD, SPARSE, HyperPrior
from kernelmdp.kernels import kernel
from kernelmdp.learners.diagnostics_config import CHANGE, LAGS, ChangeConfig, LagConfig
from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.settings import Settings, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class FittedSettings(Settings):
    """Settings of ``FittedKernels``. No theorem depends on them.

    Attributes:
        part: "learner", the word for these settings in error messages.

    >>> FittedSettings(inducing_points=64).inducing_points
    64
    """

    part: ClassVar[str] = "learner"

    inducing_points: int = setting(
        192,
        "Number of inducing points of a posterior. With 192, a step of MPC stays below 60 ms. Cost "
        "grows with their square.",
    )
    variance_tolerance: float = setting(
        1e-3,
        "By how much the root mean square of a standard deviation at the data may grow, as a share "
        "of the signal's, so that families of MDPs predict faster. Fitted noise is of this size.",
    )
    posterior_rows: int = setting(
        4096,
        "Rows of a posterior. Of more data, so many are used, spread over the visited points, and "
        "time no longer grows. 192 inducing points are then seen twenty times each.",
    )
    batch_rows: int = setting(256, "Rows absorbed at once. Only speed depends on it.")
    fit_blocks: int = setting(
        4,
        "Number of blocks of rows to which kernels are fitted. With a single block, short "
        "lengthscales may explain noise where noise is as large as the signal.",
    )
    fit_rows: int = setting(
        160,
        "Rows of a block. The cost of a fit grows with their cube; 160 rows take a few "
        "milliseconds a step.",
    )
    refit_growth: float = setting(
        0.15,
        "Kernels are fitted again when the data have grown by this share. The number of fits then "
        "grows with the logarithm of the data.",
    )
    refit_rows: int = setting(
        5, "Kernels are fitted again after at least this many new rows. It matters in early steps."
    )
    refit_contradiction: float = setting(
        2.0,
        "A fit searches from the prior medians too if the last episode contradicts the old "
        "parameters: the mean square of an output's errors exceeds this many times its predicted "
        "variance. 1 is expected; the mean of 40 rows is above 2 by chance once in 10,000 times.",
    )
    refit_tolerance: float = setting(
        1.2,
        "Newly fitted parameters are discarded if their error on the last episode exceeds that of "
        "the old ones by this factor. Errors of 40 rows differ by a tenth by chance.",
    )
    draws_parameters: bool = setting(
        True,
        "Whether a drawn MDP has kernel parameters of its own, drawn from a Laplace approximation "
        "of their posterior. Otherwise all draws have the fitted ones.",
    )
    refit_distance: float = setting(
        1.0,
        "New and old parameters are compared if one has moved by more than this many of its "
        "standard deviations. Within one deviation, the data cannot tell them apart.",
    )
    comparison_rows: int = setting(
        40, "Rows on which new and old parameters are compared, if an episode has fewer."
    )
    surprise_error: float = setting(
        0.3,
        "Errors below this share of the change of the state are no surprise, as plans bear them.",
    )
    surprise_factor: float = setting(
        5.0,
        "A model is surprised by an episode that it predicted so many times worse than each of the "
        "last ones. Errors of an explored system vary by less.",
    )
    surprise_memory: int = setting(
        3, "Number of earlier episodes that an episode is compared with."
    )
    outlier_factor: float = setting(
        10.0,
        "A step is surprising if its error exceeds that of three quarters of its episode by this "
        "factor. Errors of smooth motion vary by less. Settled on InvertedPendulum-v5, seed 0.",
    )
    outlier_steps: int = setting(
        5,
        "Number of steps after a surprising one that are left out with it. A collision lasts "
        "some steps.",
    )
    outlier_lead: int = setting(
        2,
        "Number of steps before a surprising one at which limits of the understood motion are "
        "drawn. A soft end stop has begun to act there. Settled on InvertedPendulum-v5, seed 1.",
    )
    outlier_share: float = setting(
        0.25,
        "Largest share of surprising steps in an episode. If there are more, the model is at fault "
        "and not the steps.",
    )
    trend_noise: float = setting(
        1.2,
        "An output has a linear trend if the trend leaves residuals of at most this many standard "
        "deviations of the noise. 1.2 allows for the error of a hundred rows.",
    )
    trend_rows: int = setting(
        10, "Rows needed for each coefficient of a trend, to tell a trend from chance."
    )
    extrapolation_margin: float = setting(
        0.5,
        "Margin around visited states on axes without bounds, as a share of half their width: "
        "plans may go half as far again.",
    )
    flat_reward_threshold: float = setting(
        0.05,
        "Rewards depend on the state if their mean changes with it by more than this share of "
        "their range. Less is noise or fitting error. Settled on MountainCarContinuous.",
    )
    reward_extension: float = setting(
        0.25,
        "Share of the range of observed rewards by which rewards may exceed the best one, for "
        "agents that compare hopes with costs. Settled on reactor, epidemic and thermal-zone.",
    )
    steps_before_termination: int = setting(
        10,
        "Number of steps before each termination that enter the regression of termination. "
        "Settled on CartPole-v1, seeds 0 to 2.",
    )
    terminal_reward_steps: float = setting(
        10.0,
        "The reward of a terminal step is left out of the reward's regression if it differs from "
        "the mean by at most so many steps' rewards. Termination itself loses far more.",
    )
    centring: float = setting(
        0.0005,
        "Share of its reward that a step loses at a survival limit, if all steps earn the same. It "
        "only decides between plans that last equally long. Settled on CartPole-v1 and "
        "InvertedPendulum-v5, where a larger one makes carts drift.",
    )
    free_motion: float = setting(
        0.1,
        "The motion does not depend on a coordinate without bounds if it changes by at most this "
        "share of itself across what was visited. After twenty steps it is 0 to 0.07 for the place "
        "of a cart and 0.17 to 8 for other coordinates. Settled on CartPole-v1 and "
        "InvertedPendulum-v5, seeds 5 and 6.",
    )
    continuation_threshold: float = setting(
        0.75,
        "An episode is predicted to continue where the regression, 1 where episodes continue, is "
        "at least this value. A false alarm costs less than a miss. Settled on CartPole-v1, seeds "
        "0 to 2. Where all that matters is to end soon, the same holds for predicted ends.",
    )
    minimum_scale: float = setting(
        1e-3, "Smallest size of an output as a share of its scale. Smaller outputs are constant."
    )
    increment_unit: float = setting(
        0.1, "Increments are learned in units of this share of each axis. It affects rounding only."
    )
    dynamics_prior: HyperPrior = setting(
        DYNAMICS,
        "Prior of the parameters of the kernels of increments. It served on four systems without "
        "tuning.",
    )
    reward_prior: HyperPrior = setting(
        REWARD,
        "Prior of the parameters of the reward's kernel. Lengthscales are at most half an axis, "
        "because rewards are often flat where an agent has been.",
    )
    relevance_inputs: int = setting(
        9,
        "From this number of inputs on, the reward has ``relevance_prior``. With half an axis as "
        "lengthscale of all d inputs, random points have a correlation of about exp(−d/3): a "
        "reward of ten inputs would have to be observed everywhere.",
    )
    relevance_prior: HyperPrior = setting(
        RELEVANCE,
        "Prior of the parameters of the reward's kernel with many inputs. Lengthscales of inputs "
        "that do not matter may grow to 20 axes.",
    )
    sparse_prior: HyperPrior = setting(
        SPARSE,
        "The same while no dependence of the reward on the state was observed. Lengthscales are at "
        "most 0.3 of an axis, so that unvisited states stay worth exploring.",
    )
    termination_prior: HyperPrior = setting(
        ENDINGS,
        "Prior of the parameters of the kernel of termination: short lengthscales, and noise for "
        "what is not smooth.",
    )

    reward_kernel: Any = setting(
        None,
        "Kernel expression of the reward, whose parameters are fitted, instead of a squared "
        "exponential. Its numbers are the medians of the parameters' priors.",
    )
    transition_kernel: Any = setting(
        None, "The same for increments of the state: one expression, or one for each output."
    )
    expression_spread: float = setting(
        1.0,
        "Standard deviation of the logarithm of an expression's parameter. With 1, a factor of e "
        "in either direction is typical.",
    )
    expression_bounds: Sequence[float] = setting(
        (0.05, 20.0), "Lowest and highest value of such a parameter, relative to the one given."
    )
    search: Any = setting(SEARCH, "How parameters are searched for.")
    trend: Any = setting(TREND, "How linear trends are found.")
    inducing: Any = setting(INDUCING, "How posteriors on inducing points are computed.")
    lags: Any = setting(LAGS, "How the past is searched for what explains errors of the model.")
    change: Any = setting(CHANGE, "When the plant is said to have changed.")

    def __post_init__(self) -> None:
        for name in ("reward_kernel", "transition_kernel"):
            if isinstance(text := getattr(self, name), str):
                object.__setattr__(self, name, kernel(text))
        for name, kind in (
            ("search", SearchConfig),
            ("trend", TrendConfig),
            ("inducing", InducingConfig),
            ("lags", LagConfig),
            ("change", ChangeConfig),
        ):
            if isinstance(changes := getattr(self, name), Mapping):
                object.__setattr__(self, name, kind(**changes))
        for field in dataclasses.fields(self):
            if field.type is int:
                integer(field.name, getattr(self, field.name), least=1)
            elif field.type is float and field.name != "outlier_share":
                positive_number(field.name, getattr(self, field.name))
        if not 0 <= self.outlier_share < 1:
            raise ArgumentError("outlier_share", "at least 0 and below 1", self.outlier_share)
