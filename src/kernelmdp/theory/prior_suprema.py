"""Sizes and slopes of draws of GP priors, and the nets of Theorems 3 and 4."""

import dataclasses
import math

import numpy as np

from kernelmdp.confidence import Supremum, constants_level, slopes, supremum
from kernelmdp.confidence.nets import axis_layout, log_count
from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError
from kernelmdp.kernels import Kernel, OutputKernel
from kernelmdp.theory.bound import log


@dataclasses.dataclass(frozen=True)
class PriorSuprema:
    """Suprema of draws of the priors and of their partial derivatives, with Λ of the kernels.

    A ``Supremum`` holds E sup|g| and the largest standard deviation. By Borell-TIS they give the
    paper's constants a and b, and a smaller level.

    Attributes:
        reward: sup|R̄|.
        reward_slope: The supremum of the partial derivatives of R̄.
        transition_slope: The supremum of the partial derivatives of P̄.
        lipschitz_reward: Λ of the reward kernel.
        lipschitz_transition: The largest Λ of the transition kernel's outputs.

    >>> import kernelmdp as km
    >>> points = km.join(state=km.Box([0.0], [1.0]), action=km.Box([0.0], [1.0]))
    >>> suprema = prior_suprema(km.kernel("se(1.0)"), km.kernel("se(1.0) @ index(1)"), points)
    >>> suprema.reward.rigorous
    True
    """

    reward: Supremum
    reward_slope: Supremum
    transition_slope: Supremum
    lipschitz_reward: float
    lipschitz_transition: float

    def reward_level(self, delta: float, version: str) -> float:
        """Compute C, which sup|R̄| exceeds with probability at most δ/6.

        Args:
            delta: The probability δ of the theorem.
            version: "paper" for the paper's b√ln(6a/δ), otherwise a smaller level.

        Returns:
            C.
        """
        return _level(self.reward, 1, delta, version)

    def slope_level(self, axes: int, outputs: int, delta: float, version: str) -> float:
        """Compute L̄, which a partial derivative of R̄ or P̄ exceeds with probability at most δ/6.

        Args:
            axes: The number of coordinates of z.
            outputs: The number of outputs of the transition.
            delta: The probability δ of the theorem.
            version: "paper" for the paper's level, otherwise a smaller one.

        Returns:
            L̄.
        """
        return max(
            _level(self.reward_slope, axes, delta, version),
            _level(self.transition_slope, axes * outputs, delta, version),
        )


def prior_suprema(reward: Kernel, transition: OutputKernel, domain: Domain) -> PriorSuprema:
    """Compute the suprema of kernels by chaining.

    Args:
        reward: The reward kernel.
        transition: The transition kernel.
        domain: The domain of z, ``join(state=..., action=...)``.

    Returns:
        The suprema.

    Raises:
        ArgumentError: If derivatives of draws are not known to be bounded.

    >>> from kernelmdp import Box, join, kernels
    >>> k, box = kernels.SquaredExponential(0.5), Box([0.0], [1.0])
    >>> suprema = prior_suprema(k, k @ kernels.Index(1), join(state=box, action=box))
    >>> print(f"{suprema.reward.expected:.2f} {suprema.reward_slope.deviation:.0f}")
    3.80 2
    """
    largest_slopes = []
    for role, kernel in (("reward", reward), ("transition", transition)):
        axis_slopes = slopes(kernel, domain)
        if not all(math.isfinite(slope.expected) for slope in axis_slopes):
            raise ArgumentError(
                f"{role}_kernel",
                "one whose draws have bounded derivatives (Matern: nu greater than 2) under a GP "
                "prior",
                kernel,
            )
        expected = max((slope.expected for slope in axis_slopes), default=0.0)
        largest_slopes.append(
            Supremum(
                expected,
                max((slope.deviation for slope in axis_slopes), default=0.0),
                rigorous=True,
            )
        )
    constants = [transition.constants_of(i, domain) for i in range(transition.outputs)]
    return PriorSuprema(
        reward=supremum(reward, domain),
        reward_slope=largest_slopes[0],
        transition_slope=largest_slopes[1],
        lipschitz_reward=reward.constants(domain).lipschitz,
        lipschitz_transition=max(output.lipschitz for output in constants),
    )


def log_net_size(domain: Domain, *, slope: float, episode: int, version: str) -> float:
    """Compute ln|S_l| + ln|A_l|, the size of the net of an episode.

    The paper's sizes are not integers and may be below 1 (note B25).

    Args:
        domain: The domain of z.
        slope: The level L̄ of the partial derivatives.
        episode: The number l of the episode, counted from 1.
        version: "paper" for the paper's sizes, otherwise integers.

    Returns:
        The logarithm of the number of points.
    """
    if version != "paper":
        _, sides, dimensions, log_points = axis_layout(domain)
        counts = np.maximum(1.0, np.ceil(2 * sides * dimensions * (episode**2 * slope)))
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
    """Compute √(2 ln(|S_l||A_l| m π² l²/δ)), ``gp_beta``; on finite sets ``finite_beta`` (note A4).

    Args:
        domain: The domain of z.
        slope: The level L̄ of the partial derivatives.
        episode: The number l of the episode, counted from 1.
        delta: The probability δ of the theorem.
        outputs: The number m of outputs.
        version: "paper" for the paper's net, otherwise one of integer size.

    Returns:
        β_l.
    """
    log_odds = math.log(outputs) + 2 * math.log(math.pi * episode) - math.log(delta)
    if domain.finite:
        return math.sqrt(2 * (log_odds + log_count(domain) - math.log(2)))
    log_size = log_net_size(domain, slope=slope, episode=episode, version=version)
    return math.sqrt(2 * (log_odds + max(log_size, 0.0)))


def _level(supremum: Supremum, count: int, delta: float, version: str) -> float:
    """A level that one of ``count`` suprema exceeds with probability at most δ/6."""
    if version == "paper":
        log_a, b = supremum.constants()
        return constants_level(log_a=log_a, b=b, count=count, delta=delta)
    return supremum.level(count=count, delta=delta)


def _boxes(domain: Domain) -> tuple[Domain, ...]:
    """The parts of a domain, which must all be boxes."""
    if not all(part.bounded and not part.finite for part in domain.parts):
        raise ArgumentError(
            "domain", "boxes for version='paper' (the others take finite sets too)", domain
        )
    return domain.parts
