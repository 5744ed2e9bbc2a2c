"""The assumptions of Theorem 11: the truth lies in some member of a family of kernels and norms."""

import functools
from collections.abc import Iterator
from typing import Any

from kernelmdp.confidence.plan_assumptions import OF_ALL_PLANS, OF_OPTIMISM
from kernelmdp.confidence.run_assumptions import OF_ALL_RUNS, OF_BETA, OF_NOISE, OF_NORMS, ROUNDING
from kernelmdp.confidence.theorem import Assumption, Evidence, Theorem
from kernelmdp.kernels import as_kernel, as_output_kernel

#: Assumptions about the norms of one kernel, which those about the family replace.
REPLACED = ("norm bounds are known", "norm bounds are not below the norms of the system")


def _outside_the_family(e: Evidence) -> Iterator[str]:
    assert e.system is not None
    for role, _ in e.learned:
        known, kernel = getattr(e.system, f"norm_{role}"), str(getattr(e.system, f"{role}_kernel"))
        family = getattr(e.confidence, f"{role}_family") or ()
        # Norms of other kernels cannot be compared.
        m = e.system.mean_dimension
        norms = [norm for text, norm in family if _written_out(role, text, m) == kernel]
        if known is not None and norms and max(norms) < known * (1 - ROUNDING):
            yield f"the norm of {kernel} in the family is below that of the system, {known:g}"


def _written_out(role: str, text: str, outputs: int) -> str:
    """The kernel as a system writes it: that of a transition names its outputs."""
    if role == "reward":
        return str(as_kernel("reward_family", text))
    return str(as_output_kernel("transition_family", text, outputs))


def _all_contradicted(e: Evidence) -> Iterator[str]:
    if e.totals.get("contradicted"):
        yield "the data contradict every member of the family"


def _no_regret_bound(e: Evidence) -> Iterator[str]:
    if hasattr(e.confidence, "reward_family"):
        yield "no regret bound is stated for a family of kernels"


#: Assumptions about a family.
OF_FAMILY = (
    Assumption(
        "the norms of the family are not below that of the system",
        "run",
        _outside_the_family,
        (
            *("confidence.reward_family", "confidence.transition_family"),
            *("confidence.lengthscales", "confidence.norm_factors"),
        ),
    ),
    Assumption("the data allow a member of the family", "sets", _all_contradicted),
    Assumption("a regret bound is stated", "regret", _no_regret_bound),
)
#: All assumptions of Theorem 11.
ASSUMPTIONS = (
    *OF_ALL_RUNS,
    *OF_BETA,
    *OF_FAMILY,
    *(each for each in OF_NORMS if each.name not in REPLACED),
    *OF_NOISE,
    *OF_ALL_PLANS,
    *OF_OPTIMISM,
)


def _family_text(family: Any) -> str:
    largest = dict[str, float]()
    for text, norm in family:
        largest[text] = max(norm, largest.get(text, 0.0))
    return " or ".join(f"{text} up to norm {norm:g}" for text, norm in largest.items())


@functools.cache
def _named(name: str) -> Theorem:
    return Theorem(name, ASSUMPTIONS, has_sets=True)


def family_theorem(reward: Any = None, transition: Any = None) -> Theorem:
    """Return Theorem 11, whose name says for which truths it holds.

    Args:
        reward: The family of the reward, pairs (kernel, norm); None where it is not known yet.
        transition: The family of the transition.

    Returns:
        The theorem.

    >>> family_theorem([("se(0.5)", 2.0), ("se(0.5)", 4.0)]).name
    'Theorem 11, for any truth in the family (reward: se(0.5) up to norm 4)'
    """
    texts = [
        f"{role}: {_family_text(family)}"
        for role, family in (("reward", reward), ("transition", transition))
        if family
    ]
    about = f" ({'; '.join(texts)})" if texts else ""
    return _named(f"Theorem 11, for any truth in the family{about}")


#: Theorem 11, for a family that is not named.
THEOREM_11 = family_theorem()
