"""What a bound needs to know of reward and transition: information gains, κ, numbers of outputs.

Gains are computed from kernel, domain and λ. Or the user passes them, as a number or as a function
of n. For the transition n counts transitions, each with all its outputs (the structured gain, math
A3). The paper's γ_{mT}(P) is never smaller.
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

#: Closed forms are costly, so they are computed for n rounded up to powers of this factor only.
#: They stay upper bounds, because γ_n grows with n. A larger factor is faster and less tight.
ROUNDING_FACTOR = 1.1

#: From n and λ to an upper bound of γ_n(k, Z, λ). λ is never implicit.
Gain = Callable[[int, float], float]


class GainArguments(TypedDict, total=False):
    """Arguments that all theorems share: where information gains come from.

    Pass kernels and a domain, or gains. With gains also pass the state dimension, the variance
    bounds and ``shared_kernel``, if their defaults do not fit.

    Attributes:
        reward_kernel: The reward kernel, or its text, on ``domain``.
        transition_kernel: The transition kernel, or its text. A scalar kernel is used for every
            coordinate of the state.
        domain: The domain of z, ``join(state=..., action=...)``.
        gain_reward: The gain of the reward: a number, a function of n, or a function of n and λ.
        gain_transition: The gain of the transition, likewise.
        state_dimension: The dimension m of the state, 1 by default.
        variance_bound_reward: The bound κ of the reward's prior variance, 1 by default.
        variance_bound_transition: The bound κ of the transition's prior variance, 1 by default.
        shared_kernel: Whether all outputs of the transition are independent and have the same
            kernel (k ⊗ 1). True by default.
        tight: Whether to compute gains by optimal designs. They are smaller, but take seconds to
            minutes.
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
    """The reward or the transition, with what a bound needs to know of it.

    Attributes:
        gain: The information gain of all outputs together, as a function of n and λ.
        variance_bound: The bound κ of the prior variance.
        outputs: The number of outputs m.
        shared: Whether all outputs are independent and have the same kernel.
        exponents: The exponent of n in the gain, by rate ("paper" and "improved"). None if it is
            unknown.
        kernel: The kernel. None if only the gain is known.
        any_regulariser: Whether the gain is known for every λ. A number, or a function of n alone,
            is for one λ only.
    """

    gain: Gain
    variance_bound: float
    outputs: int
    shared: bool
    exponents: dict[str, float | None]
    kernel: Kernel | OutputKernel | None = None
    any_regulariser: bool = True


def learned_functions(arguments: GainArguments) -> tuple[LearnedFunction, LearnedFunction]:
    """Make reward and transition from the arguments of a theorem.

    Args:
        arguments: The arguments that all theorems share.

    Returns:
        The reward and the transition.

    Raises:
        ArgumentError: If an argument is unknown, missing or invalid.
    """
    unknown = set(arguments) - set(GainArguments.__annotations__)
    if unknown:
        raise ArgumentError(min(unknown), "an argument of this bound", repr(arguments))
    domain = arguments.get("domain")
    if domain is not None and not isinstance(domain, Domain):
        raise ArgumentError("domain", "join(state=..., action=...)", repr(domain))
    return _learned("reward", arguments, domain), _learned("transition", arguments, domain)


def _learned(role: str, arguments: Any, domain: Domain | None) -> LearnedFunction:
    gain, kernel_like = arguments.get(f"gain_{role}"), arguments.get(f"{role}_kernel")
    if kernel_like is not None:
        if domain is None:
            raise ArgumentError("domain", f"one for the {role}_kernel", None)
        kernel: Kernel | OutputKernel = (
            as_kernel("reward_kernel", kernel_like)
            if role == "reward"
            else as_output_kernel(
                "transition_kernel", kernel_like, _state_dimension(arguments, domain)
            )
        )
        return _from_kernel(role, kernel, domain, gain, bool(arguments.get("tight", False)))
    if gain is None:
        raise ArgumentError(f"gain_{role}", f"a gain, or a {role}_kernel and a domain", None)
    return LearnedFunction(
        gain=_as_gain(f"gain_{role}", gain),
        variance_bound=positive_number(
            f"variance_bound_{role}", arguments.get(f"variance_bound_{role}", 1.0)
        ),
        outputs=1 if role == "reward" else _state_dimension(arguments, domain),
        shared=role == "reward" or bool(arguments.get("shared_kernel", True)),
        exponents={"paper": None, "improved": None},
        any_regulariser=_depends_on_regulariser(gain),
    )


def _from_kernel(
    role: str, kernel: Kernel | OutputKernel, domain: Domain, gain: Any, tight: bool
) -> LearnedFunction:
    variance_bound = kernel.variance_bound(domain)
    if not math.isfinite(variance_bound):
        raise ArgumentError(f"{role}_kernel", "a finite variance bound on the domain", kernel)
    outputs = kernel.outputs
    shared = outputs == 1 or _shared_kernel(kernel) is not None
    bound = kernel.bind(domain.names)
    exponents = {
        rate: 0.0 if domain.finite else gain_exponent(bound, domain.dimension, rate=rate)
        for rate in ("paper", "improved")
    }
    gain_function = (
        _computed(kernel, domain, tight) if gain is None else _as_gain(f"gain_{role}", gain)
    )
    any_regulariser = gain is None or _depends_on_regulariser(gain)
    return LearnedFunction(
        gain_function, variance_bound, outputs, shared, exponents, kernel, any_regulariser
    )


def _state_dimension(arguments: Any, domain: Domain | None) -> int:
    if "state_dimension" in arguments:
        return integer("state_dimension", arguments["state_dimension"], least=1)
    if domain is not None and "state" in domain.names:
        return len(domain.names["state"])
    return 1


def _depends_on_regulariser(value: Any) -> bool:
    """Whether a gain is a function of n and λ."""
    return callable(value) and len(inspect.signature(value).parameters) > 1


def _as_gain(argument: str, value: Any) -> Gain:
    """The gain of a user as a function of n and λ."""
    if callable(value):
        if _depends_on_regulariser(value):
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


def _computed(kernel: Kernel | OutputKernel, domain: Domain, tight: bool) -> Gain:
    """Certified upper bounds of γ_n(k, Z, λ), each computed once."""
    # On finite sets designs cost little. For kernels of infinite rank there is no other bound.
    if tight or (domain.finite and not _has_finite_rank(kernel, domain)):
        curves: dict[float, GainCurve] = {}

        def by_design(n: int, regulariser: float) -> float:
            if regulariser not in curves:
                curves[regulariser] = GainCurve(kernel, domain, np.array([regulariser]), 1)
            return curves[regulariser].at(n)

        return by_design

    shared, m = _shared_kernel(kernel), kernel.outputs
    if shared is not None:
        single = _computed(shared, domain, tight)
        return lambda n, regulariser: m * single(n, regulariser)
    leaves, structure = jax.tree.flatten(kernel)
    numbers = tuple((np.shape(leaf), np.asarray(leaf).tobytes()) for leaf in leaves)

    def closed_form(n: int, regulariser: float) -> float:
        if n == 0:
            return 0.0
        power = math.ceil(math.log(n, ROUNDING_FACTOR) - 1e-9)
        key = (structure, numbers, domain, power, regulariser)
        if key not in _CLOSED_FORMS:
            rounded = math.ceil(ROUNDING_FACTOR**power)
            bounds = upper_bounds(kernel, domain, rounded, regulariser, designs=False)
            _CLOSED_FORMS[key] = min(bounds.values())
        return _CLOSED_FORMS[key]

    return closed_form


#: Closed forms that were computed. All versions of a bound, reward and transition share them.
_CLOSED_FORMS: dict[Any, float] = {}


def _has_finite_rank(kernel: Kernel | OutputKernel, domain: Domain) -> bool:
    return all(math.isfinite(part.rank(domain)) for part in kernel.parts())


def _shared_kernel(kernel: Kernel | OutputKernel) -> Kernel | None:
    """The k of k ⊗ identity, which several independent outputs share; otherwise None."""
    split = None if kernel.scalar else kernel.decompose(same_noise=True)
    return split.parts[0].kernel if split is not None and split.axes is None else None


def gain_bound(
    kernel: Kernel | OutputKernel,
    *,
    domain: Domain,
    n: int,
    noise_variance: float,
    tight: bool = False,
) -> float:
    """Compute the upper bound of γ_n(k, Z, λ) that the theorems use.

    Args:
        kernel: The kernel k.
        domain: The domain Z.
        n: The number of observations. For several outputs each observation has all of them.
        noise_variance: The noise variance λ.
        tight: Whether to use optimal designs, which are smaller but slower.

    Returns:
        The bound.

    >>> from kernelmdp import Box, kernels
    >>> gain = gain_bound(kernels.Linear(), domain=Box([-1.0], [1.0]), n=10, noise_variance=1.0)
    >>> print(f"{gain:.2f}")
    1.24
    """
    noise = positive_number("noise_variance", noise_variance)
    return _computed(kernel, domain, tight)(integer("n", n, least=0), noise)
