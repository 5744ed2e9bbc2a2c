"""Settings of the warnings of a state that is not enough, and of a plant that has changed."""

import dataclasses

from kernelmdp.numerics.checks import integer, positive_number


@dataclasses.dataclass(frozen=True)
class LagConfig:
    """How ``missing_past`` decides whether the observed state is enough.

    Attributes:
        periods: How many periods back it looks.
        error: Coordinates that were predicted with errors below this share of their change are not
            tested.
        share: The share of the mean square error of a regression on the present that the past must
            explain. Noise is explained by nothing.
        sure_share: The same where the errors of this regression are below ``error``. Then they may
            be its own, and in systems without a missing past up to 0.78 was explained by chance.
            A missing velocity or delay explained at least 0.97.
        least_error: Errors of the regression below this share of the change are not looked at.
        gain: How much more of it a longer lag must explain than a shorter one.
        rows: Rows of the last episodes that are looked at. The time grows with their cube.
        least_rows: Fewer rows tell nothing. With 36, the regression on the present missed half of a
            motor's heat that is quadratic in state and action, and an earlier action explained it.

    >>> LagConfig().periods
    3
    """

    periods: int = 3
    error: float = 0.2
    share: float = 0.5
    sure_share: float = 0.9
    least_error: float = 0.02
    gain: float = 0.1
    rows: int = 200
    least_rows: int = 60

    def __post_init__(self) -> None:
        for name in ("periods", "rows", "least_rows"):
            integer(name, getattr(self, name), least=1)
        for name in ("error", "share", "sure_share", "least_error", "gain"):
            positive_number(name, getattr(self, name))


#: The default.
LAGS = LagConfig()


@dataclasses.dataclass(frozen=True)
class ChangeConfig:
    """When ``warn_if_changed`` says that the plant has changed.

    Attributes:
        deviations: An episode must miss its predictions by this many times as many standard
            deviations as each of the last episodes did, and as expected.
        error: Its error one step ahead must be above this share of the change of the state. Without
            noise a model is surer than it is right. On Pendulum-v1, which does not change, errors
            of up to 0.06 were up to 149 standard deviations. Plants that changed had 0.6 and more.

    >>> ChangeConfig().deviations
    3.0
    """

    deviations: float = 3.0
    error: float = 0.1

    def __post_init__(self) -> None:
        for name in ("deviations", "error"):
            positive_number(name, getattr(self, name))


#: The default.
CHANGE = ChangeConfig()
