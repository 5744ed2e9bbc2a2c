"""How large and how steep draws of the priors are, and the nets of the GP setting."""

import dataclasses
import math

import numpy as np

from kernelmdp.confidence import Supremum, constants_level, slopes, supremum
from kernelmdp.confidence.nets import layout, log_count
from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError
from kernelmdp.kernels import Kernel, OutputKernel
from kernelmdp.theory.bound import log


@dataclasses.dataclass(frozen=True)
class PriorSuprema:
    """sup|R̄| and the suprema of the partial derivatives of R̄ and P̄, with Λ of the kernels.

    A ``Supremum`` is E sup|g| and sup-deviation; by Borell-TIS it has the paper's constants a and
    b, and a smaller level of its own.

    >>> import kernelmdp as km
    >>> points = km.join(state=km.Box([0.0], [1.0]), action=km.Box([0.0], [1.0]))
    >>> found = prior_suprema(km.kernel("se(1.0)"), km.kernel("se(1.0) @ index(1)"), points)
    >>> found.reward.rigorous
    True
    """

    reward: Supremum
    reward_slope: Supremum
    transition_slope: Supremum
    lipschitz_reward: float
    lipschitz_transition: float

    def reward_level(self, delta: float, version: str) -> float:
        """C: sup|R̄| exceeds it with probability at most δ/6. The paper's is b√ln(6a/δ)."""
        return _level(self.reward, 1, delta, version)

    def slope_level(self, axes: int, outputs: int, delta: float, version: str) -> float:
        """L̄: some partial derivative of R̄, or of P̄, exceeds it with probability at most δ/6."""
        return max(
            _level(self.reward_slope, axes, delta, version),
            _level(self.transition_slope, axes * outputs, delta, version),
        )


def prior_suprema(reward: Kernel, transition: OutputKernel, domain: Domain) -> PriorSuprema:
    """From kernels, by chaining; an error where derivatives of draws are not known to be bounded.

    >>> from kernelmdp import Box, join, kernels
    >>> k, box = kernels.SquaredExponential(0.5), Box([0.0], [1.0])
    >>> found = prior_suprema(k, k @ kernels.Index(1), join(state=box, action=box))
    >>> print(f"{found.reward.expected:.2f} {found.reward_slope.deviation:.0f}")
    3.80 2
    """
    worst = []
    for role, kernel in (("reward", reward), ("transition", transition)):
        found = slopes(kernel, domain)
        if not all(math.isfinite(own.expected) for own in found):
            raise ArgumentError(
                f"{role}_kernel",
                "one whose draws have bounded derivatives (Matern: nu greater than 2) under a GP "
                "prior",
                kernel,
            )
        expected = max((own.expected for own in found), default=0.0)
        worst.append(
            Supremum(expected, max((own.deviation for own in found), default=0.0), rigorous=True)
        )
    constants = [transition.constants_of(i, domain) for i in range(transition.outputs)]
    return PriorSuprema(
        reward=supremum(reward, domain),
        reward_slope=worst[0],
        transition_slope=worst[1],
        lipschitz_reward=reward.constants(domain).lipschitz,
        lipschitz_transition=max(own.lipschitz for own in constants),
    )


def log_cells(domain: Domain, *, slope: float, episode: int, version: str) -> float:
    """ln|S_l| + ln|A_l|; the paper's counts are no whole numbers and may be below 1 (math B25)."""
    if version != "paper":
        _, sides, together, log_points = layout(domain)
        counts = np.maximum(1.0, np.ceil(2 * sides * together * (episode**2 * slope)))
        return log_points + float(np.log(counts).sum())
    total = 0.0
    for part in _boxes(domain):
        low, high = part.bounds
        m, side = part.dimension, float((high - low).max())
        total += m * (math.log(2 * m) + 2 * math.log(episode) + log(side * slope))
    return total


def beta(
    domain: Domain, *, slope: float, episode: int, delta: float, outputs: int, version: str
) -> float:
    """√(2 ln(|S_l||A_l| m π² l²/δ)), ``gp_beta``; on finite sets ``finite_beta`` (math A4)."""
    inside = math.log(outputs) + 2 * math.log(math.pi * episode) - math.log(delta)
    if domain.finite:
        return math.sqrt(2 * (inside + log_count(domain) - math.log(2)))
    cells = log_cells(domain, slope=slope, episode=episode, version=version)
    return math.sqrt(2 * (inside + max(cells, 0.0)))


def _level(own: Supremum, count: int, delta: float, version: str) -> float:
    if version == "paper":
        log_a, b = own.constants()
        return constants_level(log_a=log_a, b=b, count=count, delta=delta)
    return own.level(count=count, delta=delta)


def _boxes(domain: Domain) -> tuple[Domain, ...]:
    if not all(part.bounded and not part.finite for part in domain.parts):
        raise ArgumentError(
            "domain", "boxes for version='paper' (the others take finite sets too)", domain
        )
    return domain.parts
