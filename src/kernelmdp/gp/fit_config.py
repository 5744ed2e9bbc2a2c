"""The numbers by which kernels are fitted and posteriors built on centres, each with its reason.

They are plain settings: none is part of the mathematics. All are fixed when a program is compiled.
"""

import dataclasses

from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import choice, integer, positive_number


def _require(config: object, *, whole: tuple[str, ...], shares: tuple[str, ...]) -> None:
    """ArgumentError unless fields are positive, these whole, and these below 1."""
    for name, value in vars(config).items():
        if name in whole:
            integer(name, value, least=1)
        elif (
            type(value) not in (bool, str) and positive_number(name, value) >= 1 and name in shares
        ):
            raise ArgumentError(name, "a number between 0 and 1", value)


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """How ``fit`` looks for the parameters of a kernel.

    >>> SearchConfig(steps=50).steps
    50
    """

    #: Steps of a search, of one evaluation each ("bfgs") or of one and more ("lbfgs"). A fit goes
    #: on where the last one ended, so that a first one need not reach its minimum: ``minimise`` says
    #: how far 25 steps get.
    steps: int = 25
    #: "bfgs" is ours, "lbfgs" is optax's. Ours compiles faster, optax's gets further with more than
    #: three coordinates; the default is what all results so far were found with.
    method: str = "bfgs"
    #: Longest step, in log-odds within the bounds. From the middle, 2 goes three quarters of the
    #: way to a bound: a slope far from the minimum may be of any size.
    longest: float = 2.0
    #: Starts keep this share of the way to either bound away from it. At a bound the log-odds are
    #: infinite and their slope is zero; at 2 % the search can still leave.
    margin: float = 0.02
    #: Share of the decrease promised by the slope that a step must achieve (Armijo). The textbook
    #: value: almost any descent is taken.
    decrease: float = 1e-4
    #: Factor of a step that did not descend. An evaluation costs as much as a step, so steps
    #: shrink faster than by the usual half.
    shrink: float = 0.3
    #: Least curvature along a step that enters the model. Below it rounding decides the sign.
    curvature: float = 1e-10
    #: Least length by which a direction is divided. It only prevents a division by zero.
    least_length: float = 1e-12
    #: Added to the noise variance in the likelihood, as a share of the signal variance. Repeated
    #: points stay positive definite in 64 bits.
    jitter: float = 1e-9
    #: Whether a second search starts at the prior's medians. The first, from the last fit, may sit
    #: in a local minimum that new data have made bad; the better of the two is kept.
    from_medians: bool = True

    def __post_init__(self) -> None:
        choice("method", self.method, ("bfgs", "lbfgs"))
        _require(self, whole=("steps",), shares=("margin", "decrease", "shrink", "jitter"))
        if self.margin >= 0.5:
            raise ArgumentError("margin", "a share below one half", self.margin)


@dataclasses.dataclass(frozen=True)
class TrendConfig:
    """How ``linear_trend`` finds levels and slopes.

    >>> TrendConfig().steep
    10.0
    """

    #: Prior deviation of slopes, in units of the target's size over the width of an axis. Ten
    #: leaves every slope that data show almost as they show it.
    steep: float = 10.0
    #: Rounds in which weights and the variance they leave are found in turn. The variance settles
    #: in three or four; the rest costs nothing.
    rounds: int = 10
    #: Least variance of what is left, in units of the target's size. It keeps the regression
    #: regular when the target is a line without noise.
    least_variance: float = 1e-6
    #: Least size of a target. It only prevents a division by zero.
    least_size: float = 1e-12

    def __post_init__(self) -> None:
        _require(self, whole=("rounds",), shares=("least_variance",))


@dataclasses.dataclass(frozen=True)
class InducingConfig:
    """How posteriors on centres are computed.

    >>> InducingConfig(fourier_features=500).fourier_features
    500
    """

    #: Added to K(U, U), as a share of the signal variance. Centres may repeat or nearly so; with
    #: 1e-8 the factor exists in 64 bits, and variances at centres are wrong by that share.
    jitter: float = 1e-8
    #: Random features of a prior draw. They matter only where there are no data, and set the cost
    #: of a draw's value; with 192 the deviation there is right to a tenth.
    fourier_features: int = 192
    #: Most features of a prior draw of an expression, whose products multiply them. It bounds the
    #: memory of a draw's value.
    most_features: int = 4096
    #: Points treated at once. Their rows of kernel values stay within a processor's cache.
    chunk: int = 1024
    #: Added to I in I − A⁻¹, whose smallest eigenvalues round to less than zero. It is a hundredth
    #: of the jitter.
    slack: float = 1e-10
    #: Least variance by which a column is divided when centres are chosen. Below it every point is
    #: explained, and the order of the rest does not matter.
    least_variance: float = 1e-12

    def __post_init__(self) -> None:
        _require(
            self,
            whole=("fourier_features", "most_features", "chunk"),
            shares=("jitter", "slack", "least_variance"),
        )


#: The settings when none are given.
SEARCH, TREND, INDUCING = SearchConfig(), TrendConfig(), InducingConfig()
