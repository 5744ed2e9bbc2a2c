"""Confidence sets for an unknown lengthscale and norm: a family of kernels (theory, Theorem 11)."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import numpy as np

from kernelmdp.confidence.confidence_settings import PRESETS, Confidence
from kernelmdp.confidence.family_assumptions import family_theorem
from kernelmdp.confidence.family_sets import COLUMNS
from kernelmdp.confidence.theorem import Theorem
from kernelmdp.errors import ArgumentError
from kernelmdp.kernels import Kernel, KernelBase, OutputKernel, as_kernel, as_output_kernel
from kernelmdp.mdp import Problem
from kernelmdp.numerics.checks import positive_number

#: A kernel as text, and a bound of the norm of functions in its RKHS.
Member = tuple[str, float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdaptiveConfidence(Confidence):
    """Confidence sets that hold for any truth in a family of kernels and norms.

    A plausible model lies in the set of some member that data do not contradict. δ is not divided
    between members. For one kernel, the set of a larger norm contains that of a smaller one. So a
    kernel needs one norm, the largest that you think possible.

    Attributes:
        reward_family: Pairs (kernel, norm) for the mean reward. None makes the family from the
            problem's kernel.
        transition_family: The same for the scaled residuals of the transition.
        lengthscales: Factors of the lengthscales of the problem's kernels, if no family is given.
            The default spans a factor of 8 around the problem's own.
        norm_factor: The largest norm there, as a multiple of the norm that the problem suggests.
            With the default, the norm may be unknown by a factor of 8 around half of it.

    >>> import kernelmdp as km
    >>> agent = km.GPUCRL("rkhs", confidence="adaptive", seed=0)
    >>> print(agent.coverage)  # doctest: +ELLIPSIS
    covered by the confidence sets of Theorem 11, for any truth in the family (reward: se(0.25) ...
    """

    preset: ClassVar[str] = "adaptive"
    columns: ClassVar[tuple[str, ...]] = COLUMNS

    beta: str = "dual"
    reward_family: Sequence[Any] | None = None
    transition_family: Sequence[Any] | None = None
    lengthscales: Sequence[float] = (0.5, 1.0, 2.0, 4.0)
    norm_factor: float = 4.0

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
        positive_number("norm_factor", self.norm_factor)
        factors = tuple(positive_number("lengthscales", factor) for factor in self.lengthscales)
        object.__setattr__(self, "lengthscales", factors)
        for name in ("reward_family", "transition_family"):
            family = getattr(self, name)
            if family is not None:
                object.__setattr__(self, name, _checked_family(name, family))

    def member_norms(self, role: str) -> list[float]:
        """Return the norm bound of each member.

        Args:
            role: "reward" or "transition".

        Returns:
            The bounds, one for each of ``members``.
        """
        column = 1 if role == "reward" else 3
        return [member[column] for member in self._padded()]

    def members(self, problem: Problem) -> list[tuple[Kernel, OutputKernel]]:
        """Make the kernels of the members.

        Args:
            problem: The problem that is learned.

        Returns:
            Kernels of reward and transition. The shorter family is repeated at its end.
        """
        m = problem.mean_dimension
        return [
            (as_kernel("reward_family", reward), as_output_kernel("transition_family", state, m))
            for reward, _, state, _ in self._padded()
        ]

    def for_problem(self, problem: Problem) -> "AdaptiveConfidence":
        changes: dict[str, Any] = {}
        kernels = {"reward": problem.reward_kernel, "transition": problem.transition_kernel}
        for (role, kernel), assumed in zip(kernels.items(), problem.assumed_norms, strict=True):
            if getattr(self, f"{role}_family") is None:
                known = getattr(problem, f"norm_{role}")
                norm = self.norm_factor * (assumed if known is None else known)
                scaled = [str(stretched(kernel, factor)) for factor in self.lengthscales]
                changes[f"{role}_family"] = tuple((text, norm) for text in scaled)
        return dataclasses.replace(self, **changes)

    def bounded(self, problem: Problem) -> Problem:
        """Bound the rewards of a problem by those of the family, and forget its own norms.

        Args:
            problem: The problem.

        Returns:
            The problem as an agent sees it that knows the family alone.
        """
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

    def _padded(self) -> list[tuple[str, float, str, float]]:
        rewards, states = list(self.reward_family or ()), list(self.transition_family or ())
        count = max(len(rewards), len(states))
        pairs = zip(_repeated(rewards, count), _repeated(states, count), strict=True)
        return [(*reward, *state) for reward, state in pairs]


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


def _repeated(family: list[Member], count: int) -> list[Member]:
    return family + family[-1:] * (count - len(family))


def _checked_family(name: str, family: Sequence[Any]) -> tuple[Member, ...]:
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
