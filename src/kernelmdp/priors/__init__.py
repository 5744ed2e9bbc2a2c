"""Priors for PSRL whose posteriors have no closed form (the paper's footnote allows any prior).

>>> import kernelmdp as km
>>> sorted(km.priors.PRIORS)
['hyperparameters', 'norm-ball', 'student-t', 'unknown-noise']
"""

from typing import Any

from kernelmdp.errors import ArgumentError
from kernelmdp.priors.conformance import check_prior
from kernelmdp.priors.diagnostics import EXACT, Diagnostics
from kernelmdp.priors.heavy_tails import HeavyTails
from kernelmdp.priors.hyperparameters import Hyperparameters
from kernelmdp.priors.norm_ball import NormBall
from kernelmdp.priors.prior import Prior, PriorProblem, PriorState
from kernelmdp.priors.unknown_noise import UnknownNoise
from kernelmdp.registry import Registry

__all__ = [
    "EXACT",
    "PRIORS",
    "Diagnostics",
    "HeavyTails",
    "Hyperparameters",
    "NormBall",
    "Prior",
    "PriorProblem",
    "PriorState",
    "UnknownNoise",
    "as_prior",
    "check_prior",
]

#: Classes of priors by name.
PRIORS = Registry[type[Prior]]("prior")
for _kind in (HeavyTails, Hyperparameters, UnknownNoise, NormBall):
    PRIORS.register(_kind.name, _kind)


def as_prior(prior: Any) -> Prior | None:
    """Make a prior from its name, or from its description.

    Args:
        prior: A prior, which is returned as it is; its name; or a mapping with its name and
            settings.

    Returns:
        The prior, or None for "gaussian", whose posterior has a closed form.

    Raises:
        ArgumentError: If there is no such prior or setting.

    >>> as_prior("gaussian") is None, as_prior("student-t").name
    (True, 'student-t')
    """
    if isinstance(prior, Prior):
        return prior
    settings = dict(prior) if isinstance(prior, dict) else {"name": prior}
    name = settings.pop("name", None)
    if name == "gaussian" and not settings:
        return None
    if isinstance(settings.get("log_prior"), str):
        raise ArgumentError("prior", "the Prior object the agent was made with", repr(prior))
    try:
        return PRIORS.find(name)(**settings)
    except TypeError as error:
        raise ArgumentError("prior", f"settings of {name}", f"{settings} ({error})") from None
