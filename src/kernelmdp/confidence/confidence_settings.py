"""The settings of confidence sets, and presets by name."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from kernelmdp.confidence.assumptions import THEOREM_1, THEOREM_3
from kernelmdp.confidence.beliefs import Beliefs
from kernelmdp.confidence.construction import BETAS, build
from kernelmdp.confidence.rule import ConfidenceRule
from kernelmdp.confidence.sets import ConfidenceSets
from kernelmdp.confidence.shapes import SHAPES
from kernelmdp.confidence.suprema import supremum
from kernelmdp.confidence.theorem import Theorem
from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp import Noise, Problem
from kernelmdp.numerics.checks import choice, integer, positive_number, with_suggestion
from kernelmdp.numerics.tracing import as_float, is_traced
from kernelmdp.registry import Registry

#: Settings of the paper: means of bounded RKHS norm, or means drawn from Gaussian processes.
SETTINGS = ("rkhs", "gp")
#: Which information gain enters β.
GAINS = ("maximum", "realised")
#: Regularisers by name; a number is also allowed.
REGULARISERS = ("paper", "noise")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Confidence(ConfidenceRule):
    """How confidence sets are built. The defaults are the preset "valid".

    Attributes:
        setting: "rkhs": the means are fixed functions of bounded norm (Theorem 1). "gp": the means
            are draws of the prior and the noise is Gaussian of known variance (Theorem 3).
        regulariser: λ of the posteriors: "paper" (H and mH), "noise" (the noise variances), or a
            number that multiplies the noise variances.
        gain: The information gain in β: "maximum" (paper) or "realised" (note B9).
        beta: How norm and noise combine in the setting "rkhs": "paper" adds them, "mixture" adds
            their squares, which is smaller and valid (docs/theory.md, Lemma 7). "dual" intersects
            sets over regularisers where kernels have finite rank (Proposition 8).
        shape: The shape of the set of next states: "trace" (paper), "lmax", "ellipsoid" or "box"
            (note D0), or "likelihood" for tables (Proposition 9).
        delta: The sets hold for all episodes at once with probability 1 − 2δ/3. The last third is
            for the martingale of the regret bound.
        scale: The factor of β. No theorem applies below 1.
        margin: Added to the gain under the root; a convention of bandits (note D5).
        split: Whether each set gets a share of δ, and not all of it (note D5).
        divide: Whether the noise counts as σ/√λ, and not as σ (note D5). See ``igp_ucb``.
        norm_reward: B_R, a bound of the norm of the mean reward. None means unknown: B_R of
            ``assumed_norms`` is used, and no theorem applies.
        norm_transition: B_P, the same for (P − offset)/scale.
        assumed_norms: Norms used where a bound is unknown. None means those that the problem
            suggests, or 1.

    >>> Confidence(norm_reward=1.0, norm_transition=1.0).coverage.covered
    True
    >>> print(Confidence(scale=0.1, norm_reward=1.0, norm_transition=1.0).coverage)
    not covered: beta is scaled by 0.1
    """

    #: The preset of which these are changes, in files.
    preset: ClassVar[str] = "valid"

    setting: str = "rkhs"
    regulariser: str | float = "noise"
    gain: str = "realised"
    beta: str = "mixture"
    shape: str = "lmax"
    delta: float = 0.1
    scale: float = 1.0
    margin: float = 0.0
    split: bool = True
    divide: bool = True
    norm_reward: float | None = None
    norm_transition: float | None = None
    assumed_norms: Sequence[float] | None = None

    def __post_init__(self) -> None:
        choice("setting", self.setting, SETTINGS)
        choice("gain", self.gain, GAINS)
        choice("beta", self.beta, tuple(BETAS))
        choice("shape", self.shape, SHAPES)
        if isinstance(self.regulariser, str):
            choice("regulariser", self.regulariser, REGULARISERS)
        else:
            positive_number("regulariser", self.regulariser)
        if self.beta == "dual" and self.shape == "ellipsoid":
            raise ArgumentError("shape", "another than 'ellipsoid' with beta='dual'", self.shape)
        if self.setting == "gp" and self.shape == "likelihood":
            raise ArgumentError("shape", "'likelihood' in the setting 'rkhs'", self.shape)
        if self.setting == "gp" and self.regulariser == "paper":
            raise ArgumentError(
                "regulariser",
                "'noise' in the setting 'gp', where λ is the noise variance",
                "'paper'",
            )
        if not positive_number("delta", self.delta) < 1:
            raise ArgumentError("delta", "a probability between 0 and 1", self.delta)
        positive_number("scale", self.scale)
        if not (math.isfinite(self.margin) and self.margin >= 0):
            raise ArgumentError("margin", "a finite number of at least 0", self.margin)
        for name in ("norm_reward", "norm_transition"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ArgumentError(name, "a finite number of at least 0, or None", value)
        if self.assumed_norms is not None:
            assumed = tuple(float(norm) for norm in self.assumed_norms)
            if len(assumed) != 2 or not all(math.isfinite(norm) and norm >= 0 for norm in assumed):
                raise ArgumentError("assumed_norms", "two finite numbers of at least 0", assumed)
            object.__setattr__(self, "assumed_norms", assumed)

    @property
    def norms(self) -> tuple[float, float]:
        """Norm bounds B_R and B_P, known or assumed."""
        typical = (1.0, 1.0) if self.assumed_norms is None else self.assumed_norms
        pairs = zip((self.norm_reward, self.norm_transition), typical, strict=True)
        reward, transition = (assumed if known is None else known for known, assumed in pairs)
        return as_float(reward), as_float(transition)

    @property
    def theorem(self) -> Theorem:
        return THEOREM_1 if self.setting == "rkhs" else THEOREM_3

    def bounded(self, problem: Problem) -> Problem:
        """Bound the rewards of a problem that has no bound, in the setting "gp".

        sup|R̄| of a draw exceeds C with probability at most δ/6, which Theorem 3 counts. Plans must
        not value rewards beyond C, or the martingale of the regret has no bound (note B11).

        Args:
            problem: The problem.

        Returns:
            The problem, with ``reward_bounds`` of ±C where none were known.
        """
        unknown = math.inf in problem.reward_range and problem.reward is None
        if self.setting == "rkhs" or not unknown or problem.horizon == 1:
            return problem
        level = supremum(problem.reward_kernel, problem.points).level(count=1, delta=self.delta)
        if not math.isfinite(level):
            return problem
        return dataclasses.replace(problem, reward_bounds=(-level, level))

    def for_problem(self, problem: Problem) -> "Confidence":
        changes: dict[str, Any] = {}
        if self.assumed_norms is None:
            changes["assumed_norms"] = problem.assumed_norms
        for name in ("norm_reward", "norm_transition"):
            value = getattr(problem, name)
            if getattr(self, name) is None and value is not None:
                changes[name] = value
        return dataclasses.replace(self, **changes)

    def regularisers_for(self, problem: Problem) -> tuple[float, float | np.ndarray]:
        return self.regularisers(problem.horizon, problem.mean_dimension, *problem.noise_variances)

    def regularisers(
        self,
        horizon: int,
        outputs: int,
        reward_noise_variance: float,
        transition_noise_variance: Any,
        *,
        floor: float | None = None,
    ) -> tuple[float, float | np.ndarray]:
        """Compute λ_R and λ_P, the parameters ``noise_variance`` of the two posteriors.

        Args:
            horizon: H.
            outputs: m.
            reward_noise_variance: The noise variance of rewards.
            transition_noise_variance: The noise variance of transitions in scaled units: one
                number, or m.
            floor: The smallest variance. Without noise a positive floor is needed, because a
                regulariser cannot be 0.

        Returns:
            λ_R, and λ_P as one number, or as m numbers where noise variances differ.
        """
        horizon = integer("horizon", horizon, least=1)
        outputs = integer("outputs", outputs, least=1)
        if self.regulariser == "paper":
            return float(horizon), float(outputs * horizon)
        factor = 1.0 if self.regulariser == "noise" else float(self.regulariser)
        reward = _positive("reward_noise_variance", reward_noise_variance, floor)
        transition = _positive("transition_noise_variance", transition_noise_variance, floor)
        if (transition == transition.flat[0]).all():
            return factor * float(reward.flat[0]), factor * float(transition.flat[0])
        return factor * float(reward.flat[0]), factor * transition

    def sets(
        self,
        beliefs: Beliefs,
        *,
        episode: int,
        horizon: int,
        domain: Domain,
        reward_noise: Noise,
        transition_noise: Noise,
        slope: float | None = None,
    ) -> ConfidenceSets:
        """Build the confidence sets of an episode.

        Args:
            beliefs: Posteriors of reward and transition from the episodes before.
            episode: The number of the episode, counted from 1.
            horizon: H.
            domain: Where z = (s, a) lies.
            reward_noise: Noise of rewards.
            transition_noise: Noise of next states, in units of the state.
            slope: A bound of all partial derivatives of the learned functions, for the setting
                "gp" on boxes. None computes it from the kernels (``suprema.slope_bound``).

        Returns:
            The sets.
        """
        return build(
            self,
            beliefs,
            episode=episode if is_traced(episode) else integer("episode", episode, least=1),
            horizon=integer("horizon", horizon, least=1),
            domain=domain,
            reward_noise=reward_noise,
            transition_noise=transition_noise,
            slope=None if slope is None else positive_number("slope", slope),
        )


#: Confidence rules by name.
PRESETS = Registry[ConfidenceRule]("confidence")
PRESETS.register(
    "paper", Confidence(regulariser="paper", gain="maximum", beta="paper", shape="trace")
)
PRESETS.register("valid", Confidence())
PRESETS.register("practical", Confidence(beta="paper", scale=0.1))
# Fitted kernels give each output its own kernel. A box keeps the width of each output.
PRESETS.register("fitted", Confidence(beta="paper", scale=0.05, shape="box"))
# Covered, and smaller than "valid": for kernels of finite rank, and for tables.
PRESETS.register("dual", Confidence(beta="dual"))
PRESETS.register("likelihood", Confidence(shape="likelihood"))


def igp_ucb(
    *, rounds: int, noise: float, norm: float, delta: float = 0.1, gain: str = "realised"
) -> Confidence:
    """Make the confidence sets of IGP-UCB for H = 1 (Chowdhury and Gopalan 2017).

    They have λ = 1 + 2/T and β = B + σ√(2(γ + 1 + ln(1/δ))).

    Args:
        rounds: T.
        noise: σ.
        norm: B.
        delta: δ.
        gain: "maximum" or "realised".

    Returns:
        The rule.

    >>> igp_ucb(rounds=100, noise=0.1, norm=1.0).margin
    1.0
    """
    variance = positive_number("noise", noise) ** 2
    return Confidence(
        regulariser=(1 + 2 / integer("rounds", rounds, least=1)) / variance,
        gain=gain,
        beta="paper",
        delta=delta,
        margin=1.0,
        split=False,
        divide=False,
        norm_reward=norm,
        norm_transition=0.0,
    )


def as_confidence(
    value: str | ConfidenceRule | Mapping[str, Any] | None, *, default: str = "practical"
) -> ConfidenceRule:
    """Make a confidence rule from the name of a preset, or from changes to a preset.

    Args:
        value: A rule, which is returned as it is; the name of a preset; or a mapping of changes,
            with the preset's ``name``.
        default: The preset if none is named.

    Returns:
        The rule.

    Raises:
        ArgumentError: If a change names no field of the preset.

    >>> as_confidence("practical").coverage.covered
    False
    >>> as_confidence({"name": "valid", "delta": 0.2}).delta
    0.2
    """
    if isinstance(value, ConfidenceRule):
        return value
    if isinstance(value, Mapping):
        changes = dict(value)
        preset = as_confidence(changes.pop("name", None), default=default)
        fields = sorted(field.name for field in dataclasses.fields(preset))  # type: ignore[arg-type]
        for name in changes:
            if name not in fields:
                expected = f"changes to name and {', '.join(fields)}"
                raise ArgumentError("confidence", expected, with_suggestion(name, fields))
        return dataclasses.replace(preset, **changes)  # type: ignore[type-var]
    rule = PRESETS.find(default if value is None else value)
    return rule() if callable(rule) else rule


def _positive(name: str, value: Any, floor: float | None) -> np.ndarray:
    variance = np.asarray(value, dtype=float)
    if not (np.isfinite(variance) & (variance >= 0)).all():
        raise ArgumentError(name, "finite and at least 0", variance.tolist())
    if floor is not None:
        variance = np.asarray(np.maximum(variance, positive_number("floor", floor)))
    if not (variance > 0).all():
        raise ArgumentError(name, "greater than 0, or a positive floor", variance.tolist())
    return variance
