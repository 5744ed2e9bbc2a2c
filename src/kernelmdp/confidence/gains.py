"""The maximum information gain before each episode, as the paper's β wants it."""

import math
from typing import Any

import jax
import numpy as np

from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError
from kernelmdp.information import closed_forms, dual_certificates, upper_bounds
from kernelmdp.kernels import (
    Kernel,
    OutputKernel,
)

#: Bounds that are not lines in n are computed for n rounded up to this ratio's powers.
RUNG = 1.25
#: Ratio of the dual's rungs: β grows with the root of the gain, so 3.5 % of it is under 2 % of β.
LADDER = 3.0


class GainCurve:
    """Upper bounds of γ_{(l−1)H} for l = 1, 2, ..., never decreasing, each computed once.

    For a transition kernel the structured gain, every point seen with all its outputs (math A3).
    Only the two certificates nearest to n/λ on the dual's ladder are used, whatever others exist:
    so the curve does not depend on what else was computed, and a resumed run finds the same.
    """

    def __init__(
        self, kernel: Kernel | OutputKernel, domain: Domain, noise: np.ndarray, horizon: int
    ) -> None:
        self.horizon = horizon
        made: dict[tuple[int, float], _KernelGain] = {}  # equal outputs share their bounds
        self._parts = [
            made.setdefault((id(k), own), _KernelGain(k, domain, own))
            for k, own in _parts(kernel, domain, noise)
        ]
        self._values = [0.0]

    def before(self, episode: int) -> float:
        """The bound at n = (episode − 1)·H."""
        while len(self._values) < episode:
            bound = self.at(len(self._values) * self.horizon)
            self._values.append(max(self._values[-1], bound))  # a larger bound is still one
        return self._values[episode - 1]

    def at(self, n: int) -> float:
        """The bound at any n, by itself."""
        return sum(part.bound(n) for part in self._parts) if n > 0 else 0.0


class _KernelGain:
    """Bounds for one kernel on points."""

    def __init__(self, kernel: Kernel, domain: Domain, noise: float) -> None:
        self.kernel, self.domain, self.noise = kernel, domain, noise
        self._certified = dual_certificates.applicable(kernel, domain)
        self._known: dict[int, float] = {}

    def bound(self, n: int) -> float:
        if self._certified:
            ratio = n / self.noise
            rungs = dual_certificates.ladder(self.kernel, self.domain)
            rungs.bound(ratio, exactly=False)  # makes the two, if nobody has
            step = math.floor(math.log(ratio, dual_certificates.RUNG))
            nearest = [
                rungs.certificates[dual_certificates.RUNG**power] for power in (step, step + 1)
            ]
            return min(*(line.bound(ratio) for line in nearest), self._finite_rank(n))
        # γ_n grows with n, so the bound at the next rung holds for all n before it.
        rung = math.ceil(RUNG ** math.ceil(math.log(n, RUNG) - 1e-12))
        if rung not in self._known:
            found = upper_bounds(self.kernel, self.domain, max(rung, n), self.noise)
            if not found:
                raise ArgumentError(
                    "gain", "'realised' for a kernel without a variance bound", self.kernel
                )
            self._known[rung] = min(found.values())
        return min(self._known[rung], self._finite_rank(n))

    def _finite_rank(self, n: int) -> float:
        rank = self.kernel.rank(self.domain)
        top = self.kernel.variance_bound(self.domain)
        if not (math.isfinite(rank) and math.isfinite(top)):
            return math.inf
        return closed_forms.finite_rank(
            rank=int(rank), variance_bound=top, n=n, noise_variance=self.noise
        )


def _parts(
    kernel: Kernel | OutputKernel, domain: Domain, noise: np.ndarray
) -> list[tuple[Kernel, float]]:
    """Kernels on points, with noise variances, whose gains add up to at least the whole gain."""
    kernel = kernel.bind(domain.names)
    split = kernel.decompose(same_noise=True)
    if split is None:  # a sum: ln|I + A + B| ≤ ln|I + A| + ln|I + B|
        return [part for term in kernel.terms() for part in _parts(term, domain, noise)]
    each = np.broadcast_to(noise, (kernel.outputs,))
    if split.axes is None:
        return [(split.parts[0].kernel, float(own)) for own in each]
    if np.array_equal(split.axes, np.eye(kernel.outputs)):
        return [(part.kernel, float(own)) for part, own in zip(split.parts, each, strict=True)]
    # In the coordinates of B's eigenvectors; with different noise the least one bounds.
    least = float(noise.min())
    return [(part.kernel, least / float(part.scale)) for part in split.parts]


def gain_before(
    kernel: Kernel | OutputKernel, domain: Domain, noise: Any, *, horizon: int, episode: int
) -> float:
    """γ_{(l−1)H}(k, Z, λ), from a curve that is kept for kernel, domain, λ and H."""
    leaves, structure = jax.tree.flatten(kernel)
    own = np.atleast_1d(np.asarray(noise, dtype=float))
    numbers = tuple((np.shape(leaf), np.asarray(leaf).tobytes()) for leaf in leaves)
    key = (structure, numbers, domain, own.tobytes(), horizon)
    if key not in _CURVES:
        _CURVES[key] = GainCurve(kernel, domain, own, horizon)
    return _CURVES[key].before(episode)


_CURVES: dict[Any, GainCurve] = {}
