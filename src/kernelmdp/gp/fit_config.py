"""Numerical settings of fits and of posteriors on inducing points, each with its reason.

None is part of the mathematics. All are fixed when a program is compiled.
"""

import dataclasses

from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import choice, integer, positive_number


def _require(config: object, *, whole: tuple[str, ...], shares: tuple[str, ...]) -> None:
    """Raise ArgumentError unless fields are positive, some whole, and some below 1."""
    for name, value in vars(config).items():
        if name in whole:
            integer(name, value, least=1)
        elif (
            type(value) not in (bool, str) and positive_number(name, value) >= 1 and name in shares
        ):
            raise ArgumentError(name, "a number between 0 and 1", value)


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """How ``fit`` searches for the parameters of a kernel.

    Attributes:
        steps: The number of steps of a search: one evaluation each ("bfgs"), or one or more
            ("lbfgs"). A fit continues from the last one, so the first fit need not
            converge. ``minimise`` says how far 25 steps get.
        method: "bfgs" is ours, "lbfgs" is optax's. Ours compiles faster; optax's gets
            further with more than three coordinates. All results so far were found with the
            default.
        longest: The longest step, in log-odds within the bounds. From the middle, 2 goes
            three quarters of the way to a bound. Gradients far from a minimum can have any
            size.
        margin: Starts keep this share of the way to either bound away from it. At a bound
            the log-odds are infinite and the gradient is zero. From 2 % a search can still
            leave.
        decrease: The share of the decrease promised by the gradient that a step must
            achieve (Armijo). With the textbook value almost any descent is accepted.
        shrink: The factor of a step that did not descend. An evaluation costs as much as a
            step, so steps shrink faster than by the common factor 1/2.
        curvature: The least curvature along a step that updates the Hessian. Below it
            rounding decides the sign.
        least_length: The least length by which a direction is divided. It only prevents a
            division by zero.
        jitter: Added to the noise variance in the likelihood, as a share of the signal
            variance. It keeps matrices with repeated points positive definite in 64 bits.
        from_medians: Whether a second search starts at the prior medians. The first, from
            the last fit, may be in a local minimum that new data have made bad. The better
            result is used.
        tolerance: A search from the last fit ends when it expects less decrease of the loss
            than this, in nats. Settled on epidemic and reactor, where 0.1 costs up to a quarter
            of the return and 0 gains nothing. Searches from the medians take all steps,
            because they may begin on a plateau.

    >>> SearchConfig(steps=50).steps
    50
    """

    steps: int = 25
    method: str = "bfgs"
    longest: float = 2.0
    margin: float = 0.02
    decrease: float = 1e-4
    shrink: float = 0.3
    curvature: float = 1e-10
    least_length: float = 1e-12
    jitter: float = 1e-9
    from_medians: bool = True
    tolerance: float = 0.01

    def __post_init__(self) -> None:
        choice("method", self.method, ("bfgs", "lbfgs"))
        _require(self, whole=("steps",), shares=("margin", "decrease", "shrink", "jitter"))
        if self.margin >= 0.5:
            raise ArgumentError("margin", "a share below one half", self.margin)


@dataclasses.dataclass(frozen=True)
class TrendConfig:
    """How ``linear_trend`` fits levels and slopes.

    Attributes:
        steep: The prior standard deviation of slopes, in units of the target's size over
            the width of an axis. With 10 the prior hardly changes slopes that data show.
        rounds: The number of rounds in which weights and residual variance are computed in
            turn. The variance converges in three or four; further rounds cost nothing.
        least_variance: The least residual variance, in units of the target's size. It keeps
            the regression regular for a line without noise.
        least_size: The least size of a target. It only prevents a division by zero.

    >>> TrendConfig().steep
    10.0
    """

    steep: float = 10.0
    rounds: int = 10
    least_variance: float = 1e-6
    least_size: float = 1e-12

    def __post_init__(self) -> None:
        _require(self, whole=("rounds",), shares=("least_variance",))


@dataclasses.dataclass(frozen=True)
class InducingConfig:
    """How posteriors on inducing points are computed.

    Attributes:
        jitter: Added to K(U, U), as a share of the signal variance. Inducing points may
            repeat or nearly so. With 1e-8 the factor exists in 64 bits, and variances at
            inducing points are wrong by that share.
        fourier_features: The number of random features of a prior draw. They matter only
            where there are no data, and set the cost of evaluating a draw. With 192 the
            deviation there is right to a tenth.
        most_features: The largest number of features of a prior draw of an expression,
            whose products multiply them. It bounds the memory of evaluating a draw.
        chunk: The number of points treated at once. Their rows of kernel values stay within
            a processor's cache.
        slack: Added to I in I − A⁻¹, whose smallest eigenvalues may round to less than
            zero. It is a hundredth of the jitter.
        least_variance: The least variance by which a column is divided when inducing points
            are selected. Below it every point is explained, and the order of the others
            does not matter.

    >>> InducingConfig(fourier_features=500).fourier_features
    500
    """

    jitter: float = 1e-8
    fourier_features: int = 192
    most_features: int = 4096
    chunk: int = 1024
    slack: float = 1e-10
    least_variance: float = 1e-12

    def __post_init__(self) -> None:
        _require(
            self,
            whole=("fourier_features", "most_features", "chunk"),
            shares=("jitter", "slack", "least_variance"),
        )


#: Default settings of a search.
SEARCH = SearchConfig()
#: Default settings of a trend.
TREND = TrendConfig()
#: Default settings of posteriors on inducing points.
INDUCING = InducingConfig()
