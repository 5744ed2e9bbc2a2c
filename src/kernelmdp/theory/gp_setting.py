"""What Theorems 3 and 4 share: a problem whose means are draws of Gaussian processes."""

import dataclasses
import math

from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError
from kernelmdp.kernels import Kernel, OutputKernel
from kernelmdp.numerics.checks import choice, integer, positive_number
from kernelmdp.theory import deviation_sums
from kernelmdp.theory.bound import log
from kernelmdp.theory.gains import GainArguments, LearnedFunction, both
from kernelmdp.theory.prior_suprema import PriorSuprema, beta, prior_suprema
from kernelmdp.theory.width_sums import PLANNERS, VERSIONS, require_normalised


@dataclasses.dataclass(frozen=True)
class GPSetting:
    """What both theorems share."""

    horizon: int
    version: str
    domain: Domain
    reward: LearnedFunction
    transition: LearnedFunction
    variances: tuple[float, float]
    prior_suprema: PriorSuprema

    def slope(self, delta: float) -> float:
        """L̄, beyond which partial derivatives do not go."""
        axes, m = self.domain.dimension, self.transition.outputs
        return self.prior_suprema.slope_level(axes, m, delta, self.version)

    def betas(self, tau: int, delta: float) -> tuple[float, float]:
        """β_R and β_P of the last episode."""
        version, m = self.version, self.transition.outputs
        joint = version == "improved" and self.transition.shared
        reward, transition = (
            beta(
                self.domain,
                slope=self.slope(delta),
                episode=tau,
                delta=delta,
                outputs=outputs,
                version=version,
            )
            for outputs in (1, 1 if joint else m)
        )
        # Errors of m outputs together: ``joint_beta``.
        return reward, transition + math.sqrt(m) if joint and m > 1 else transition

    def sums(self, tau: int, *, squares: bool = False) -> tuple[float, float]:
        """ln of Σσ_R and of Σ‖σ_P‖, or of Σσ_Z where outputs share a kernel (set "lmax")."""
        H, steps = self.horizon, tau * self.horizon
        found = []
        for own, variance in zip((self.reward, self.transition), self.variances, strict=True):
            gain, m, top = own.gain(steps, variance), own.outputs, own.variance_bound
            if self.version == "improved":
                alone = own.shared
                total = deviation_sums.improved(
                    horizon=H,
                    steps=steps,
                    gain=gain / m if alone else gain,
                    variance_bound=top,
                    regulariser=variance,
                    outputs=1 if alone else m,
                    squares=squares,
                )
            else:
                # γ_{mH−1}: of H transitions when m > 1, as the last lacks one output only.
                inside = own.gain(math.ceil((m * H - 1) / m), variance)
                total = deviation_sums.printed_gp(
                    steps=steps,
                    gain=gain,
                    gain_of_episode=inside,
                    noise_variance=variance,
                    top=1.0 if self.version == "paper" else top,
                )
            found.append(total)
        return found[0], found[1]

    def nets(self, tau: int, delta: float) -> tuple[float, float]:
        """ln of what the nets add to Σ 2βσ (math B5): σ([z]_l) ≤ σ(z) + Λ/(l² L̄)."""
        slope = self.slope(delta)
        if self.domain.finite or self.version == "paper" or slope == 0:
            return -math.inf, -math.inf
        m = self.transition.outputs
        width = 1.0 if self.version == "improved" and self.transition.shared else math.sqrt(m)
        common = log(self.horizon * math.pi**2 / (3 * slope))
        ours, theirs = self.betas(tau, delta)
        return (
            common + log(ours * self.prior_suprema.lipschitz_reward),
            common + log(theirs * width * self.prior_suprema.lipschitz_transition),
        )

    def free_lipschitz(self, top: float) -> float:
        """L ≤ 2 sup|R̄| (H − 1)/√(2πλ_P): Gaussian noise provides it (math B8)."""
        return 2 * top * (self.horizon - 1) / math.sqrt(2 * math.pi * self.variances[1])

    def rare_mean(self, tau: int) -> float:
        """E[sup|R̄| 1_A]/P(A) for events of probability 4/(3T) (math B7): x + b²/2x, x = b√ln(a/p).

        At most E sup|R̄|/P(A), which is less for the smallest T.
        """
        size, scale = self.prior_suprema.reward, 3 * tau * self.horizon / 4
        log_a, b = size.constants()
        odds = log_a + math.log(scale)
        if b == 0 or odds <= 0:
            return size.expected * scale
        x = b * math.sqrt(odds)
        return min(x + b**2 / (2 * x), size.expected * scale)


def setting_of(
    words: GainArguments,
    horizon: int,
    version: str,
    reward_noise: float,
    transition_noise: float,
    sizes: PriorSuprema | None,
    planner: str,
) -> GPSetting:
    """From the words of a theorem, checked."""
    choice("version", version, VERSIONS)
    choice("planner", planner, PLANNERS)
    domain = words.get("domain")
    if domain is None:
        raise ArgumentError("domain", "join(state=..., action=...), for nets", None)
    reward, transition = both(words)
    for role, own in (("reward", reward), ("transition", transition)):
        require_normalised(role, own, version)
    if sizes is None:
        kernels = reward.kernel, transition.kernel
        if not (isinstance(kernels[0], Kernel) and isinstance(kernels[1], OutputKernel)):
            raise ArgumentError("sizes", "those of draws, or both kernels", None)
        sizes = prior_suprema(kernels[0], kernels[1], domain)
    return GPSetting(
        horizon=integer("horizon", horizon, least=1),
        version=version,
        domain=domain,
        reward=reward,
        transition=transition,
        variances=(
            positive_number("reward_noise", reward_noise) ** 2,
            positive_number("transition_noise", transition_noise) ** 2,
        ),
        prior_suprema=sizes,
    )
