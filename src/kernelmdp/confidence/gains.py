"""Upper bounds of the maximum information gain before each episode, for the paper's β."""

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

#: Bounds that are not lines in n are computed at powers of this ratio, and n is rounded up to one.
#: A smaller ratio gives tighter bounds and more of them to compute.
RUNG = 1.25


class GainCurve:
    """Upper bounds of γ_{(l−1)H} for l = 1, 2, ..., never decreasing, each computed once.

    For a transition kernel the gain is the structured one, in which every point is observed with
    all its outputs (note A3). Of the dual certificates only the two nearest to n/λ are used, even
    if others exist. The curve therefore does not depend on what else was computed, and a resumed
    run gets the same numbers.

    Args:
        kernel: The kernel.
        domain: The set of points.
        noise: λ: one number, or one for each output.
        horizon: H.
    """

    def __init__(
        self, kernel: Kernel | OutputKernel, domain: Domain, noise: np.ndarray, horizon: int
    ) -> None:
        self.horizon = horizon
        shared: dict[tuple[int, float], _KernelGain] = {}  # equal outputs share their bounds
        self._parts = [
            shared.setdefault((id(part), variance), _KernelGain(part, domain, variance))
            for part, variance in _independent_kernels(kernel, domain, noise)
        ]
        self._values = [0.0]

    def before(self, episode: int) -> float:
        """Bound the gain at n = (episode − 1)·H.

        Args:
            episode: The number of the episode, counted from 1.

        Returns:
            The bound. It is never smaller than that of an earlier episode.
        """
        while len(self._values) < episode:
            bound = self.at(len(self._values) * self.horizon)
            # γ_n never decreases, so the maximum of two bounds is a bound too.
            self._values.append(max(self._values[-1], bound))
        return self._values[episode - 1]

    def at(self, n: int) -> float:
        """Bound the gain of n points.

        Args:
            n: The number of points.

        Returns:
            The bound.
        """
        return sum(part.bound(n) for part in self._parts) if n > 0 else 0.0


class _KernelGain:
    """Bounds of the gain for one scalar kernel."""

    def __init__(self, kernel: Kernel, domain: Domain, noise: float) -> None:
        self.kernel, self.domain, self.noise = kernel, domain, noise
        self._certified = dual_certificates.is_certifiable(kernel, domain)
        self._bounds: dict[int, float] = {}

    def bound(self, n: int) -> float:
        if self._certified:
            ratio = n / self.noise
            ladder = dual_certificates.ladder(self.kernel, self.domain)
            ladder.bound(ratio, exactly=False)  # makes both certificates if they do not exist
            step = math.floor(math.log(ratio, dual_certificates.RUNG))
            nearest = [
                ladder.certificates[dual_certificates.RUNG**power] for power in (step, step + 1)
            ]
            return min(*(line.bound(ratio) for line in nearest), self._finite_rank(n))
        # γ_n grows with n, so the bound at the next rung holds for all n before it.
        rung = math.ceil(RUNG ** math.ceil(math.log(n, RUNG) - 1e-12))
        if rung not in self._bounds:
            bounds = upper_bounds(self.kernel, self.domain, max(rung, n), self.noise)
            if not bounds:
                raise ArgumentError(
                    "gain", "'realised' for a kernel without a variance bound", self.kernel
                )
            self._bounds[rung] = min(bounds.values())
        return min(self._bounds[rung], self._finite_rank(n))

    def _finite_rank(self, n: int) -> float:
        rank = self.kernel.rank(self.domain)
        variance_bound = self.kernel.variance_bound(self.domain)
        if not (math.isfinite(rank) and math.isfinite(variance_bound)):
            return math.inf
        return closed_forms.finite_rank(
            rank=int(rank), variance_bound=variance_bound, n=n, noise_variance=self.noise
        )


def _independent_kernels(
    kernel: Kernel | OutputKernel, domain: Domain, noise: np.ndarray
) -> list[tuple[Kernel, float]]:
    """Scalar kernels with noise variances, whose gains add up to at least the gain of all."""
    kernel = kernel.bind(domain.names)
    decomposition = kernel.decompose(same_noise=True)
    if decomposition is None:  # a sum: ln|I + A + B| ≤ ln|I + A| + ln|I + B|
        return [
            part for term in kernel.terms() for part in _independent_kernels(term, domain, noise)
        ]
    variances = np.broadcast_to(noise, (kernel.outputs,))
    parts = decomposition.parts
    if decomposition.axes is None:
        return [(parts[0].kernel, float(variance)) for variance in variances]
    if np.array_equal(decomposition.axes, np.eye(kernel.outputs)):
        pairs = zip(parts, variances, strict=True)
        return [(part.kernel, float(variance)) for part, variance in pairs]
    # In the coordinates of B's eigenvectors the noises mix. The least variance gives a bound.
    least = float(noise.min())
    return [(part.kernel, least / float(part.scale)) for part in parts]


def gain_before(
    kernel: Kernel | OutputKernel, domain: Domain, noise: Any, *, horizon: int, episode: int
) -> float:
    """Bound γ_{(l−1)H}(k, Z, λ). Curves are cached by kernel, domain, λ and H.

    Args:
        kernel: k.
        domain: Z.
        noise: λ: one number, or one for each output.
        horizon: H.
        episode: l, counted from 1.

    Returns:
        The bound.
    """
    leaves, structure = jax.tree.flatten(kernel)
    variances = np.atleast_1d(np.asarray(noise, dtype=float))
    numbers = tuple((np.shape(leaf), np.asarray(leaf).tobytes()) for leaf in leaves)
    key = (structure, numbers, domain, variances.tobytes(), horizon)
    if key not in _CURVES:
        _CURVES[key] = GainCurve(kernel, domain, variances, horizon)
    return _CURVES[key].before(episode)


#: The cache of ``gain_before``: one curve for each problem of the process.
_CURVES: dict[Any, GainCurve] = {}
