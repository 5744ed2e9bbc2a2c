"""Confidence sets for an unknown lengthscale and norm: a family of kernels (theory, Theorem 11)."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import numpy as np

from kernelmdp.confidence.confidence_settings import PRESETS, Confidence
from kernelmdp.confidence.family_assumptions import family_theorem
from kernelmdp.confidence.family_sets import COLUMNS, Member
from kernelmdp.confidence.theorem import Theorem
from kernelmdp.errors import ArgumentError
from kernelmdp.kernels import Kernel, KernelBase, OutputKernel, as_kernel, as_output_kernel
from kernelmdp.mdp import Problem
from kernelmdp.numerics.checks import positive_number


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdaptiveConfidence(Confidence):
    """Confidence sets that hold for any truth in a family of kernels and norms.

    A plausible model lies in the set of some member that data do not contradict. δ is not divided
    between members.

    Plans are optimistic within one member for reward and one for transition. They take turns, such
    that the sums of the half-widths of their sets stay balanced. Claims are about all members.

    Attributes:
        beta: "dual".
        reward_family: Pairs (kernel, norm) for the mean reward. None makes the family from the
            problem's kernel.
        transition_family: The same for the scaled residuals of the transition.
        lengthscales: Factors of the lengthscales of the problem's kernels, if no family is given.
            The default spans a factor of 8 around the problem's own.
        norm_factors: Norms there, as multiples of the norm that the problem suggests.

    >>> import kernelmdp as km
    >>> sets = AdaptiveConfidence(lengthscales=(1.0, 4.0))  # "adaptive" has all defaults
    >>> print(km.GPUCRL("rkhs", confidence=sets, seed=0).coverage)  # doctest: +ELLIPSIS
    covered by the confidence sets of Theorem 11, for any truth in the family (reward: se(0.5) ...
    """

    preset: ClassVar[str] = "adaptive"
    plans_in_sets: ClassVar[bool] = False
    columns: ClassVar[tuple[str, ...]] = COLUMNS

    beta: str = "dual"
    reward_family: Sequence[Any] | None = None
    transition_family: Sequence[Any] | None = None
    lengthscales: Sequence[float] = (0.5, 1.0, 2.0, 4.0)
    norm_factors: Sequence[float] = (0.5, 1.0, 2.0, 4.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        fixed: dict[str, Any] = {
            "setting": "rkhs",
            "beta": "dual",
            "gain": "realised",
            "regulariser": "noise",
        }
        fixed |= {"scale": 1.0, "margin": 0.0, "split": True, "divide": True}
        for name, value in fixed.items():
            if getattr(self, name) != value:
                raise ArgumentError(name, f"{value!r} for a family", getattr(self, name))
        if self.shape not in ("lmax", "trace"):
            raise ArgumentError("shape", "'lmax' or 'trace' for a family", self.shape)
        for name in ("lengthscales", "norm_factors"):
            factors = tuple(positive_number(name, factor) for factor in getattr(self, name))
            object.__setattr__(self, name, factors)
        for name in ("reward_family", "transition_family"):
            family = getattr(self, name)
            if family is not None:
                object.__setattr__(self, name, _checked_family(name, family))

    def family(self, role: str) -> list[Member]:
        """List the members for one role.

        Args:
            role: "reward" or "transition".

        Returns:
            The members; their kernels are numbered as in ``members``.
        """
        texts = self._kernels(role)
        pairs = getattr(self, f"{role}_family") or ()
        return [Member(texts.index(text), norm) for text, norm in pairs]

    def members(self, problem: Problem) -> list[tuple[Kernel, OutputKernel]]:
        """Make the different kernels of the family.

        Args:
            problem: The problem that is learned.

        Returns:
            Kernels of reward and transition. The shorter list is repeated at its end.
        """
        m, rewards, states = (
            problem.mean_dimension, self._kernels("reward"), self._kernels("transition")
        )  # fmt: skip
        count = max(len(rewards), len(states))
        return [
            (as_kernel("reward_family", reward), as_output_kernel("transition_family", state, m))
            for reward, state in zip(
                _repeated(rewards, count), _repeated(states, count), strict=True
            )
        ]

    def for_problem(self, problem: Problem) -> "AdaptiveConfidence":
        changes: dict[str, Any] = {}
        kernels = {"reward": problem.reward_kernel, "transition": problem.transition_kernel}
        for (role, kernel), assumed in zip(kernels.items(), problem.assumed_norms, strict=True):
            if getattr(self, f"{role}_family") is None:
                known = getattr(problem, f"norm_{role}")
                norm = assumed if known is None else known
                scaled = [str(stretched(kernel, factor)) for factor in self.lengthscales]
                changes[f"{role}_family"] = tuple(
                    (text, norm * factor) for text in scaled for factor in self.norm_factors
                )
        return dataclasses.replace(self, **changes)

    def bounded(self, problem: Problem) -> Problem:
        """Bound the rewards of a problem by those of the family, and forget its own norms.

        Args:
            problem: The problem.

        Returns:
            The problem as an agent sees it that knows the family alone.

        Raises:
            ArgumentError: If the problem has constraints.
        """
        if problem.constraints:
            raise ArgumentError(
                "confidence", "another than 'adaptive' with constraints", "a family"
            )
        changes: dict[str, Any] = {"norm_reward": None, "norm_transition": None}
        if problem.reward is None and problem.reward_bounds is None:
            level = max(
                norm * math.sqrt(as_kernel("reward_family", text).variance_bound(problem.points))
                for text, norm in self.reward_family or ()
            )
            changes["reward_bounds"] = (-level, level)
        return dataclasses.replace(problem, **changes)

    @property
    def theorem(self) -> Theorem:
        return family_theorem(self.reward_family, self.transition_family)

    def _kernels(self, role: str) -> list[str]:
        return list(dict.fromkeys(text for text, _ in getattr(self, f"{role}_family") or ()))


def stretched(kernel: KernelBase, factor: float) -> Any:
    """Multiply all lengthscales of a kernel.

    Args:
        kernel: The kernel.
        factor: The factor.

    Returns:
        The kernel with other lengthscales, and equal in everything else.

    Raises:
        ArgumentError: If it has none.

    >>> import kernelmdp as km
    >>> print(stretched(km.kernel("2.0 * se([0.5, 1.0])"), 2.0))
    2.0 * se([1.0, 2.0])
    """
    leaves, structure = jax.tree_util.tree_flatten_with_path(kernel)
    is_scale = [jax.tree_util.keystr(path).endswith(".lengthscale") for path, _ in leaves]
    if not any(is_scale):
        raise ArgumentError("confidence", "a family of your own for a kernel", str(kernel))
    changed = [
        leaf * factor if scale else leaf for (_, leaf), scale in zip(leaves, is_scale, strict=True)
    ]
    return jax.tree.unflatten(structure, changed)


def _repeated(texts: list[str], count: int) -> list[str]:
    return texts + texts[-1:] * (count - len(texts))


def _checked_family(name: str, family: Sequence[Any]) -> tuple[tuple[str, float], ...]:
    """Pairs of text and norm."""
    members = []
    for pair in family:
        if isinstance(pair, str) or len(pair) != 2:
            raise ArgumentError(name, "pairs (kernel, norm)", repr(pair))
        norm = float(pair[1])
        if not (np.isfinite(norm) and norm > 0):
            raise ArgumentError(name, "norms that are positive numbers", pair[1])
        members.append((str(pair[0]), norm))
    if not members:
        raise ArgumentError(name, "at least one pair (kernel, norm)", family)
    return tuple(members)


PRESETS.register("adaptive", AdaptiveConfidence())
