"""What Theorems 3 and 4 share: the means are draws of Gaussian processes."""

import dataclasses
import math

from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError
from kernelmdp.kernels import Kernel, OutputKernel
from kernelmdp.numerics.checks import choice, integer, positive_number
from kernelmdp.theory import deviation_sums
from kernelmdp.theory.bound import log
from kernelmdp.theory.gains import GainArguments, LearnedFunction, learned_functions
from kernelmdp.theory.prior_suprema import PriorSuprema, beta, prior_suprema
from kernelmdp.theory.width_sums import PLANNERS, VERSIONS, require_normalised


@dataclasses.dataclass(frozen=True)
class GPSetting:
    """A problem whose means are draws of Gaussian processes.

    Attributes:
        horizon: The number of periods H.
        version: "paper", "repaired" or "improved".
        domain: The domain of z.
        reward: The reward.
        transition: The transition.
        variances: The noise variances λ_R and λ_P.
        prior_suprema: Suprema of draws and of their derivatives.
    """

    horizon: int
    version: str
    domain: Domain
    reward: LearnedFunction
    transition: LearnedFunction
    variances: tuple[float, float]
    prior_suprema: PriorSuprema

    def slope_level(self, delta: float) -> float:
        """Compute the level L̄ of the partial derivatives.

        Args:
            delta: The probability δ of the theorem.

        Returns:
            L̄.
        """
        axes, m = self.domain.dimension, self.transition.outputs
        return self.prior_suprema.slope_level(axes, m, delta, self.version)

    def betas(self, tau: int, delta: float) -> tuple[float, float]:
        """Compute β_R and β_P of the last episode.

        Args:
            tau: The number of episodes τ.
            delta: The probability δ of the theorem.

        Returns:
            β_R and β_P.
        """
        version, m = self.version, self.transition.outputs
        joint = version == "improved" and self.transition.shared
        reward, transition = (
            beta(
                self.domain,
                slope=self.slope_level(delta),
                episode=tau,
                delta=delta,
                outputs=outputs,
                version=version,
            )
            for outputs in (1, 1 if joint else m)
        )
        # ``joint_beta`` bounds the errors of m outputs together.
        return reward, transition + math.sqrt(m) if joint and m > 1 else transition

    def log_deviation_sums(self, tau: int, *, squares: bool = False) -> tuple[float, float]:
        """Bound ln Σσ_R and ln Σ‖σ_P‖, or ln Σσ_Z if all outputs share a kernel (set "lmax").

        Args:
            tau: The number of episodes τ.
            squares: Whether to bound √(T·ΣΣσ²) instead of ΣΣσ.

        Returns:
            The bounds for reward and transition.
        """
        H, steps = self.horizon, tau * self.horizon
        log_sums = []
        for learned, variance in zip((self.reward, self.transition), self.variances, strict=True):
            gain, m, kappa = (
                learned.gain(steps, variance),
                learned.outputs,
                learned.variance_bound,
            )
            if self.version == "improved":
                shared = learned.shared
                log_sum = deviation_sums.improved_lemma(
                    horizon=H,
                    steps=steps,
                    gain=gain / m if shared else gain,
                    variance_bound=kappa,
                    regulariser=variance,
                    outputs=1 if shared else m,
                    squares=squares,
                )
            else:
                # For m > 1 γ_{mH−1} is at most that of H transitions, which have one output more.
                episode_gain = learned.gain(math.ceil((m * H - 1) / m), variance)
                log_sum = deviation_sums.paper_gp_lemma(
                    steps=steps,
                    gain=gain,
                    episode_gain=episode_gain,
                    noise_variance=variance,
                    variance_bound=1.0 if self.version == "paper" else kappa,
                )
            log_sums.append(log_sum)
        return log_sums[0], log_sums[1]

    def log_net_terms(self, tau: int, delta: float) -> tuple[float, float]:
        """Compute ln of what the nets add to Σ 2βσ (note B5): σ([z]_l) ≤ σ(z) + Λ/(l² L̄).

        Args:
            tau: The number of episodes τ.
            delta: The probability δ of the theorem.

        Returns:
            The terms of reward and transition; −∞ if there are no nets.
        """
        slope = self.slope_level(delta)
        if self.domain.finite or self.version == "paper" or slope == 0:
            return -math.inf, -math.inf
        m = self.transition.outputs
        width = 1.0 if self.version == "improved" and self.transition.shared else math.sqrt(m)
        common = log(self.horizon * math.pi**2 / (3 * slope))
        beta_reward, beta_transition = self.betas(tau, delta)
        return (
            common + log(beta_reward * self.prior_suprema.lipschitz_reward),
            common + log(beta_transition * width * self.prior_suprema.lipschitz_transition),
        )

    def noise_lipschitz(self, reward_bound: float) -> float:
        """Bound L by the Gaussian noise: L ≤ 2 sup|R̄| (H − 1)/√(2πλ_P) (note B8).

        Args:
            reward_bound: A bound of sup|R̄|.

        Returns:
            The bound of L.
        """
        return 2 * reward_bound * (self.horizon - 1) / math.sqrt(2 * math.pi * self.variances[1])

    def tail_mean(self, tau: int) -> float:
        """Bound E[sup|R̄| 1_A]/P(A) for events A of probability p = 4/(3T) (note B7).

        The bound is x + b²/2x with x = b√ln(a/p). It is at most E sup|R̄|/P(A), which is smaller for
        the smallest T.

        Args:
            tau: The number of episodes τ.

        Returns:
            The bound.
        """
        supremum, inverse_probability = self.prior_suprema.reward, 3 * tau * self.horizon / 4
        log_a, b = supremum.constants()
        log_odds = log_a + math.log(inverse_probability)
        if b == 0 or log_odds <= 0:
            return supremum.expected * inverse_probability
        x = b * math.sqrt(log_odds)
        return min(x + b**2 / (2 * x), supremum.expected * inverse_probability)


def make_gp_setting(
    arguments: GainArguments,
    horizon: int,
    version: str,
    reward_noise: float,
    transition_noise: float,
    suprema: PriorSuprema | None,
    planner: str,
) -> GPSetting:
    """Check the arguments of Theorem 3 or 4.

    Args:
        arguments: The arguments that all theorems share.
        horizon: The number of periods H.
        version: "paper", "repaired" or "improved".
        reward_noise: Standard deviation of the reward's noise.
        transition_noise: Standard deviation of the transition's noise.
        suprema: Suprema of draws. None computes them from the kernels.
        planner: "exact" or "approximate".

    Returns:
        The setting.

    Raises:
        ArgumentError: If an argument is invalid or missing.
    """
    choice("version", version, VERSIONS)
    choice("planner", planner, PLANNERS)
    domain = arguments.get("domain")
    if domain is None:
        raise ArgumentError("domain", "join(state=..., action=...), for nets", None)
    reward, transition = learned_functions(arguments)
    for role, learned in (("reward", reward), ("transition", transition)):
        require_normalised(role, learned, version)
    if suprema is None:
        kernels = reward.kernel, transition.kernel
        if not (isinstance(kernels[0], Kernel) and isinstance(kernels[1], OutputKernel)):
            raise ArgumentError("suprema", "those of draws, or both kernels", None)
        suprema = prior_suprema(kernels[0], kernels[1], domain)
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
        prior_suprema=suprema,
    )
