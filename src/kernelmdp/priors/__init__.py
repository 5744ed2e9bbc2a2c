"""Priors without a closed form, for PSRL: its prior may be any (the paper's footnote).

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


def as_prior(given: Any) -> Prior | None:
    """A prior, its word, or its description; None for "gaussian", which has a closed form.

    >>> as_prior("gaussian") is None, as_prior("student-t").name
    (True, 'student-t')
    """
    if isinstance(given, Prior):
        return given
    words = dict(given) if isinstance(given, dict) else {"name": given}
    name = words.pop("name", None)
    if name == "gaussian" and not words:
        return None
    if isinstance(words.get("log_prior"), str):
        raise ArgumentError("prior", "the Prior object the agent was made with", repr(given))
    try:
        return PRIORS.find(name)(**words)
    except TypeError as error:
        raise ArgumentError("prior", f"words that {name} has", f"{words} ({error})") from None
