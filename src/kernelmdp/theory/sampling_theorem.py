"""Theorem 18: PSRL under Gaussian priors of finite rank, without nets, tails or L.

A draw and the truth differ by a Gaussian vector of weights, whose length is known in law. That
replaces β: no union over points, and no failure.
"""

import dataclasses
import math
from typing import Unpack

import scipy

from kernelmdp.confidence import Supremum, supremum
from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError
from kernelmdp.gp.compilation import compile_kernel
from kernelmdp.kernels import Independent, Kernel, OutputKernel
from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.theory.bound import Bound, log
from kernelmdp.theory.gains import GainArguments, LearnedFunction, learned_functions
from kernelmdp.theory.noise_theorems import noise_slopes
from kernelmdp.theory.width_sums import assemble_bound, at_least_zero

#: Residual variance to which kernels of infinite rank are compiled by default. A smaller one gives
#: a larger rank. An agent that compiles more closely passes its own.
TOLERANCE = 1e-6
#: Range of the gains at which an episode is given up. The search is within it.
LEAST_LIMIT, LARGEST_LIMIT = 1e-3, 20.0


def theorem18(
    *,
    horizon: int,
    episodes: int,
    reward_noise: float,
    transition_noise: float,
    rank_reward: int | None = None,
    rank_transition: int | None = None,
    reward_bound: float | None = None,
    reward_supremum: Supremum | None = None,
    tolerance: float = TOLERANCE,
    **gain_arguments: Unpack[GainArguments],
) -> Bound:
    """Bound the expected regret of PSRL under GP priors of finite rank and Gaussian noise.

    With x(c) = (eᶜ − 1)/c, γ the gains at λ = σ², E = E sup|R̄| and b² = E sup|R̄|²:
    2√(r_R T σ_R² x(c_R) γ_R) + τH(H − 1) E ψ(y) + H(2EN + s√(Nτ)), where ψ(y) = 2Φ(y/2) − 1,
    y = (4b/(H(H − 1)E)) √(r_P Σ_h (H − h)² x(c_P) γ_P/τ), and N = 2γ_R/c_R + 2γ_P/c_P episodes are
    given up at most. The best c_R and c_P are searched for. An infinite c gives no episode up;
    then x is that of the block lemma.

    Args:
        horizon: The number of periods H.
        episodes: The number of episodes τ.
        reward_noise: Standard deviation of the reward's noise, √λ_R.
        transition_noise: Standard deviation of the transition's noise, √λ_P.
        rank_reward: The number r_R of weights of the reward. None means the rank of the kernel.
        rank_transition: The number r_P of weights of all outputs together.
        reward_bound: A bound of |R̄| for a known reward, which has the gain 0.
        reward_supremum: E sup|R̄| and the largest deviation s. None computes them by chaining.
        tolerance: The residual variance to which kernels of infinite rank are compiled.
        **gain_arguments: Where information gains come from, see ``GainArguments``.

    Returns:
        The bound.

    Raises:
        ArgumentError: If an argument is invalid or missing.

    >>> bound = theorem18(
    ...     horizon=2, episodes=2000, reward_noise=0.2, transition_noise=0.2, rank_reward=10,
    ...     rank_transition=10, reward_supremum=Supremum(1.5, 1.0, rigorous=True),
    ...     gain_reward=10, gain_transition=10,
    ... )
    >>> bound.vacuous, bound.probability
    (False, 'expectation')
    """
    domain = gain_arguments.get("domain")
    reward, transition = learned_functions(gain_arguments)
    H = integer("horizon", horizon, least=1)
    noises = (
        positive_number("reward_noise", reward_noise),
        positive_number("transition_noise", transition_noise),
    )
    size, known = _size(reward, domain, reward_bound, reward_supremum)
    ranks, notes = _ranks(
        reward, transition, domain, rank_reward, rank_transition, known, tolerance
    )
    second_moment = math.hypot(size.expected, size.deviation)
    slopes = noise_slopes(H, second_moment, noises[1])
    squares = float(H), float((slopes**2).sum())

    def at(tau: int) -> Bound:
        functions = [
            _Sampled(function, rank, noise, square, H, tau)
            for function, rank, noise, square in zip(
                (reward, transition), ranks, noises, squares, strict=True
            )
        ]
        learned_sum, given_up = _least(functions, size, H, tau)
        parts = {
            **{
                name: log(part)
                for name, part in zip(("reward", "transition"), learned_sum, strict=True)
            },
            "given up": log(given_up),
        }
        bound = assemble_bound(
            "Theorem 18", "improved", H, tau, parts, size.expected, "expectation",
            (reward, transition), at,
        )  # fmt: skip
        return dataclasses.replace(bound, warnings=(*bound.warnings, *notes))

    return at(integer("episodes", episodes, least=1))


@dataclasses.dataclass(frozen=True)
class _Sampled:
    """A function of which draws are taken, with the constants of its sum."""

    learned: LearnedFunction
    rank: int
    noise: float
    squares: float
    horizon: int
    episodes: int

    @property
    def gain(self) -> float:
        """The sum Σ g_l of all episodes' gains, at most."""
        gain = 2 * self.learned.gain(self.episodes * self.horizon, self.noise**2)
        return gain / self.learned.outputs if self.learned.shared else gain

    @property
    def largest_growth(self) -> float:
        outputs = 1 if self.learned.shared else self.learned.outputs
        return outputs * self.horizon * self.learned.variance_bound / self.noise**2

    def sum_to(self, limit: float) -> float:
        """√(2r)·√(τ Σw² λ x(c) Σg): the sum of Σ_h w_h|f_l − f*| before episodes are given up."""
        limit = min(limit, math.log1p(self.largest_growth))
        growth = math.expm1(limit) / limit
        square = self.episodes * self.squares * self.noise**2 * growth * self.gain
        return math.sqrt(2 * self.rank * square)

    def given_up(self, limit: float) -> float:
        """The number of episodes that gain more than c, at most."""
        return 0.0 if math.isinf(limit) else self.gain / limit


def _least(
    functions: list[_Sampled], size: Supremum, horizon: int, episodes: int
) -> tuple[tuple[float, float], float]:
    """The parts of the bound at the best limits: one search along each axis, twice."""
    limits = [math.inf, math.inf]

    def parts() -> tuple[tuple[float, float], float]:
        pairs = list(zip(functions, limits, strict=True))
        sums = [each.sum_to(c) if each.gain else 0.0 for each, c in pairs]
        sums[1] = saturated(sums[1], episodes * horizon * (horizon - 1) * size.expected)
        count = sum(each.given_up(c) for each, c in pairs)
        loss = horizon * (2 * size.expected * count + size.deviation * math.sqrt(count * episodes))
        return (sums[0], sums[1]), loss

    def total() -> float:
        sums, loss = parts()
        return sum(sums) + loss

    def at(role: int, log_limit: float) -> float:
        limits[role] = math.exp(log_limit)
        return total()

    for role in (1, 0, 1):
        limits[role] = math.inf
        best, chosen = total(), math.inf
        result = scipy.optimize.minimize_scalar(
            lambda log_limit, role=role: at(role, log_limit),
            bounds=(math.log(LEAST_LIMIT), math.log(LARGEST_LIMIT)),
            method="bounded",
        )
        limits[role] = math.exp(result.x) if result.fun < best else chosen
    return parts()


def saturated(linear: float, mass: float) -> float:
    """Bound a sum of differences of values by Mψ(y), where its linear bound is My/√(2π).

    ψ(y) = 2Φ(y/2) − 1 is the total variation of two Gaussians y standard deviations apart. It is
    concave, so Jensen's inequality holds, and at most 1.

    Args:
        linear: The bound with y/√(2π) in place of ψ(y).
        mass: M, the sum of all spans.

    Returns:
        The bound, at most M.

    >>> round(saturated(1.0, 100.0), 3), saturated(1e6, 100.0)
    (1.0, 100.0)
    """
    if mass == 0:
        return 0.0
    return mass * math.erf(linear * math.sqrt(2 * math.pi) / mass / math.sqrt(8))


def _size(
    reward: LearnedFunction,
    domain: Domain | None,
    reward_bound: float | None,
    reward_supremum: Supremum | None,
) -> tuple[Supremum, bool]:
    """E sup|R̄| and its deviation; and whether the reward is known."""
    if reward_bound is not None:
        return Supremum(at_least_zero("reward_bound", reward_bound), 0.0, rigorous=True), True
    if reward_supremum is not None:
        return reward_supremum, False
    if domain is None or not isinstance(reward.kernel, Kernel):
        raise ArgumentError("reward_supremum", "that of draws, or a reward_kernel", None)
    return supremum(reward.kernel.bind(domain.names), domain), False


def _ranks(
    reward: LearnedFunction,
    transition: LearnedFunction,
    domain: Domain | None,
    rank_reward: int | None,
    rank_transition: int | None,
    known: bool,
    tolerance: float,
) -> tuple[tuple[int, int], tuple[str, ...]]:
    """The numbers of weights, and a note where a kernel was compiled."""
    notes: list[str] = []
    ranks = []
    for role, learned, given in (
        ("reward", reward, 0 if known and rank_reward is None else rank_reward),
        ("transition", transition, rank_transition),
    ):
        if given is not None:
            ranks.append(integer(f"rank_{role}", given, least=0))
            continue
        if domain is None or learned.kernel is None:
            raise ArgumentError(f"rank_{role}", f"a number, or a {role}_kernel and a domain", None)
        rank, compiled = rank_of(learned.kernel, domain, tolerance=tolerance)
        ranks.append(rank)
        if compiled:
            notes.append(
                f"the {role}'s prior is that of its kernel compiled to rank {rank}, within "
                f"{tolerance:g} of its variance"
            )
    return (ranks[0], ranks[1]), tuple(notes)


def rank_of(
    kernel: Kernel | OutputKernel, domain: Domain, *, tolerance: float = TOLERANCE
) -> tuple[int, bool]:
    """Count the weights of a kernel on a domain, for all outputs together.

    Args:
        kernel: The kernel.
        domain: The domain of z.
        tolerance: The residual variance to which a kernel of infinite rank is compiled.

    Returns:
        The number, and whether the kernel was compiled because its rank is infinite.

    >>> import kernelmdp as km
    >>> rank_of(km.kernel("linear @ index(2)"), km.Box([-1.0], [1.0]))
    (2, False)
    """
    parts, compiled = kernel.parts(), False
    total = 0
    for part in parts:
        bound = part.bind(domain.names)
        rank = bound.rank(domain)
        if not math.isfinite(rank):
            rank, compiled = compile_kernel(bound, domain, tolerance=tolerance).rank, True
        total += int(rank)
    # Other kernels of several outputs, such as sums, have each part in every output.
    return total if isinstance(kernel, Independent) else total * kernel.outputs, compiled
