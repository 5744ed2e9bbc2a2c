"""Settings of the warnings of a state that is not enough, and of a plant that has changed."""

import dataclasses

from kernelmdp.numerics.checks import integer, positive_number


@dataclasses.dataclass(frozen=True)
class LagConfig:
    """How ``missing_past`` decides whether the observed state is enough.

    Attributes:
        periods: How many periods back it looks.
        error: Coordinates that are predicted, or follow from the present, with errors below this
            share of their change are not tested. A missing velocity leaves far larger ones.
        share: The share of the mean square error that the past must explain.
        gain: How much more of it a longer lag must explain than a shorter one.
        rows: Rows of the last two episodes that are looked at. The time grows with their cube.
        least_rows: Fewer rows tell nothing.

    >>> LagConfig().periods
    3
    """

    periods: int = 3
    error: float = 0.2
    share: float = 0.3
    gain: float = 0.1
    rows: int = 200
    least_rows: int = 20

    def __post_init__(self) -> None:
        for name in ("periods", "rows", "least_rows"):
            integer(name, getattr(self, name), least=1)
        for name in ("error", "share", "gain"):
            positive_number(name, getattr(self, name))


#: The default.
LAGS = LagConfig()


@dataclasses.dataclass(frozen=True)
class ChangeConfig:
    """When ``warn_if_changed`` says that the plant has changed.

    Attributes:
        deviations: An episode must miss its predictions by this many times as many standard
            deviations as each of the last episodes did, and as expected.
        error: Its error must be above this share of the usual change of the state. Without noise a
            model is surer than it is right, and smaller errors are no sign of a change.

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
