"""What a bound needs of the two learned functions: gains, variance bounds, numbers of outputs.

Gains are computed from kernel, domain and λ, or given: as a number, or as a function of n. For the
transition n counts transitions, each with all its outputs (the structured gain, math A3); the
paper's γ_{mT}(P) is never smaller.
"""

import dataclasses
import inspect
import math
from collections.abc import Callable
from typing import Any, TypedDict

import jax
import numpy as np

from kernelmdp.confidence.gains import GainCurve
from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError
from kernelmdp.information import upper_bounds
from kernelmdp.kernels import Kernel, OutputKernel, as_kernel, as_output_kernel
from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.theory.gain_growth import gain_exponent

#: Costly closed forms are computed for n rounded up to powers of this: γ_n grows with n.
RUNG = 1.1

#: n and λ to an upper bound of γ_n(k, Z, λ). λ is never implicit.
Gain = Callable[[int, float], float]


class GainArguments(TypedDict, total=False):
    """Where gains come from; words that all theorems share.

    - ``reward_kernel``, ``transition_kernel`` (kernels or their texts) on ``domain``, a
      ``join(state=..., action=...)``; a scalar transition kernel is meant for every coordinate.
    - or ``gain_reward``, ``gain_transition``: numbers, or functions of n, or of n and λ; then also
      ``state_dimension`` m (1 unless given), ``variance_bound_reward`` and
      ``variance_bound_transition`` κ (1 unless given), and ``shared_kernel``: whether the
      transition kernel is one kernel for all outputs, independently (k ⊗ 1; the default).
    - ``tight``: gains by optimal designs: smaller, but they take seconds to minutes.
    """

    reward_kernel: Any
    transition_kernel: Any
    domain: Any
    gain_reward: Any
    gain_transition: Any
    state_dimension: int
    variance_bound_reward: float
    variance_bound_transition: float
    shared_kernel: bool
    tight: bool


@dataclasses.dataclass(frozen=True)
class LearnedFunction:
    """The reward, or the transition: gain of all outputs together, κ, m, and how γ_n grows."""

    gain: Gain
    variance_bound: float
    outputs: int
    shared: bool
    powers: dict[str, float | None]
    kernel: Kernel | OutputKernel | None = None
    #: Whether the gain is that of any λ; a number, or a function of n alone, is for one λ only.
    any_regulariser: bool = True


def both(words: GainArguments) -> tuple[LearnedFunction, LearnedFunction]:
    """Reward and transition, as the words say."""
    unknown = set(words) - set(GainArguments.__annotations__)
    if unknown:
        raise ArgumentError(min(unknown), "a word that this bound knows", repr(words))
    domain = words.get("domain")
    if domain is not None and not isinstance(domain, Domain):
        raise ArgumentError("domain", "join(state=..., action=...)", repr(domain))
    return _learned("reward", words, domain), _learned("transition", words, domain)


def _learned(role: str, words: Any, domain: Domain | None) -> LearnedFunction:
    given, own = words.get(f"gain_{role}"), words.get(f"{role}_kernel")
    if own is not None:
        if domain is None:
            raise ArgumentError("domain", f"one for the {role}_kernel", None)
        found: Kernel | OutputKernel = (
            as_kernel("reward_kernel", own)
            if role == "reward"
            else as_output_kernel("transition_kernel", own, _state_dimension(words, domain))
        )
        return _of_kernel(role, found, domain, given, bool(words.get("tight", False)))
    if given is None:
        raise ArgumentError(f"gain_{role}", f"a gain, or a {role}_kernel and a domain", None)
    return LearnedFunction(
        gain=_given(f"gain_{role}", given),
        variance_bound=positive_number(
            f"variance_bound_{role}", words.get(f"variance_bound_{role}", 1.0)
        ),
        outputs=1 if role == "reward" else _state_dimension(words, domain),
        shared=role == "reward" or bool(words.get("shared_kernel", True)),
        powers={"paper": None, "improved": None},
        any_regulariser=_knows_regulariser(given),
    )


def _of_kernel(
    role: str, found: Kernel | OutputKernel, domain: Domain, given: Any, tight: bool
) -> LearnedFunction:
    top = found.variance_bound(domain)
    if not math.isfinite(top):
        raise ArgumentError(f"{role}_kernel", "a finite variance bound on the domain", found)
    outputs = found.outputs
    shared = outputs == 1 or _shared(found) is not None
    bound = found.bind(domain.names)
    rates = {
        rate: 0.0 if domain.finite else gain_exponent(bound, domain.dimension, rate=rate)
        for rate in ("paper", "improved")
    }
    gain = _computed(found, domain, tight) if given is None else _given(f"gain_{role}", given)
    knows = given is None or _knows_regulariser(given)
    return LearnedFunction(gain, top, outputs, shared, rates, found, knows)


def _state_dimension(words: Any, domain: Domain | None) -> int:
    if "state_dimension" in words:
        return integer("state_dimension", words["state_dimension"], least=1)
    if domain is not None and "state" in domain.names:
        return len(domain.names["state"])
    return 1


def _knows_regulariser(value: Any) -> bool:
    return callable(value) and len(inspect.signature(value).parameters) > 1


def _given(argument: str, value: Any) -> Gain:
    if callable(value):
        if _knows_regulariser(value):
            return lambda n, regulariser: float(value(n, regulariser))
        return lambda n, regulariser: float(value(n))
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise ArgumentError(
            argument, "a number of at least 0, or a function of n (and λ)", repr(value)
        )
    return lambda n, regulariser: number


def _computed(found: Kernel | OutputKernel, domain: Domain, tight: bool) -> Gain:
    """Certified upper bounds of γ_n(k, Z, λ), each computed once."""
    # On finite sets designs cost little, and only they know a kernel of infinite rank.
    if tight or (domain.finite and not _finite(found, domain)):
        curves: dict[float, GainCurve] = {}

        def by_design(n: int, regulariser: float) -> float:
            if regulariser not in curves:
                curves[regulariser] = GainCurve(found, domain, np.array([regulariser]), 1)
            return curves[regulariser].at(n)

        return by_design

    one, m = _shared(found), found.outputs
    if one is not None:
        alone = _computed(one, domain, tight)
        return lambda n, regulariser: m * alone(n, regulariser)
    leaves, structure = jax.tree.flatten(found)
    numbers = tuple((np.shape(leaf), np.asarray(leaf).tobytes()) for leaf in leaves)

    def closed(n: int, regulariser: float) -> float:
        if n == 0:
            return 0.0
        step = math.ceil(math.log(n, RUNG) - 1e-9)
        key = (structure, numbers, domain, step, regulariser)
        if key not in _KNOWN:
            rung = math.ceil(RUNG**step)
            bounds = upper_bounds(found, domain, rung, regulariser, designs=False)
            _KNOWN[key] = min(bounds.values())
        return _KNOWN[key]

    return closed


#: Closed forms that were computed: versions of a bound, and both functions, share them.
_KNOWN: dict[Any, float] = {}


def _finite(found: Kernel | OutputKernel, domain: Domain) -> bool:
    return all(math.isfinite(part.rank(domain)) for part in found.parts())


def _shared(found: Kernel | OutputKernel) -> Kernel | None:
    """k of k ⊗ identity, the one kernel of several independent outputs; else None."""
    split = None if found.scalar else found.decompose(same_noise=True)
    return split.parts[0].kernel if split is not None and split.axes is None else None


def gain_bound(
    kernel: Kernel | OutputKernel,
    *,
    domain: Domain,
    n: int,
    noise_variance: float,
    tight: bool = False,
) -> float:
    """The upper bound of γ_n(k, Z, λ) that bounds are computed with.

    >>> from kernelmdp import Box, kernels
    >>> gain = gain_bound(kernels.Linear(), domain=Box([-1.0], [1.0]), n=10, noise_variance=1.0)
    >>> print(f"{gain:.2f}")
    1.24
    """
    noise = positive_number("noise_variance", noise_variance)
    return _computed(kernel, domain, tight)(integer("n", n, least=0), noise)
