"""Constants of a kernel on a domain, and how they combine in sums and products.

Write φ for the feature map of k, k(x, y) = ⟨φ(x), φ(y)⟩, and d_k(x, y) = ‖φ(x) − φ(y)‖.

- variance bound κ ≥ sup k(x, x).
- Lipschitz Λ: d_k(x, y) ≤ Λ ‖x − y‖₂; curvature Q: ‖∂²_u φ‖ ≤ Q for every unit direction u.
- The same constants along each coordinate axis, Λ_j and Q_j. Nets need these: they stay sharp when
  lengthscales differ, and are 0 along a coordinate on which the kernel does not depend.
- modulus(h): d_k(x, y) ≤ modulus(h) whenever |x_j − y_j| ≤ h_j. It is finite for every continuous
  kernel, even where Λ is not (Matern with ν ≤ 1).

An infinite constant means "not available".
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np


@dataclasses.dataclass(frozen=True)
class KernelConstants:
    """Constants of one kernel on one domain; see the module's text.

    Attributes:
        variance_bound: κ.
        lipschitz: Λ.
        curvature: Q.
        axis_lipschitz: Λ_j, (d,).
        axis_curvature: Q_j, (d,).
        modulus: Bounds d_k from displacements h, (d,).
        constant_variance: Whether k(x, x) is the same at every x.

    >>> import kernelmdp as km
    >>> constants = km.kernel("se(0.5)").constants(km.Box([0.0], [1.0]))
    >>> constants.variance_bound, constants.lipschitz
    (1.0, 2.0)
    """

    variance_bound: float
    lipschitz: float
    curvature: float
    axis_lipschitz: np.ndarray
    axis_curvature: np.ndarray
    modulus: Callable[[np.ndarray], float]
    constant_variance: bool = False

    def supremum(self, on_net: float, spacing: np.ndarray) -> float:
        """Bound sup σ² over a box from its maximum v on a net.

        It holds for any σ²(x) = ⟨Cφ(x), φ(x)⟩ with 0 ⪯ C ⪯ I, such as a posterior variance or the
        residual of a low-rank approximation. It is the smallest of three bounds:

        - κ;
        - first order: σ is 1-Lipschitz in d_k, so σ ≤ √v + modulus(spacing/2);
        - second order: ∂²σ² ≥ −2σ‖C∂²φ‖, so multilinear interpolation is too low by at most s·c,
          c = ¼ Σ_j h_j² Q_j, and s = sup σ solves s² ≤ v + c s.

        Args:
            on_net: v.
            spacing: The net's spacing h_j along each axis, (d,); 0 for finite sets.

        Returns:
            The bound.
        """
        has_spacing = spacing > 0
        if not has_spacing.any():
            return min(on_net, self.variance_bound)
        first_order = (math.sqrt(on_net) + self.modulus(spacing / 2)) ** 2
        c = 0.25 * float(np.sum(spacing[has_spacing] ** 2 * self.axis_curvature[has_spacing]))
        second_order = ((c + math.sqrt(c**2 + 4 * on_net)) / 2) ** 2
        return min(first_order, second_order, self.variance_bound)


def linear_modulus(axis_lipschitz: np.ndarray, lipschitz: float) -> Callable[[np.ndarray], float]:
    """Make the modulus that follows from Lipschitz constants.

    Args:
        axis_lipschitz: Λ_j, (d,).
        lipschitz: Λ.

    Returns:
        The modulus, a function of displacements (d,).
    """

    def modulus(offsets: np.ndarray) -> float:
        nonzero = offsets > 0
        along_axes = float(np.sum(axis_lipschitz[nonzero] * offsets[nonzero]))
        straight = lipschitz * float(np.linalg.norm(offsets)) if nonzero.any() else 0.0
        return min(along_axes, straight)

    return modulus


def unknown_constants(dimension: int, *, variance_bound: float) -> KernelConstants:
    """Make constants without smoothness, for discrete kernels and user functions.

    Args:
        dimension: d.
        variance_bound: κ.

    Returns:
        The constants.
    """
    infinite = np.full(dimension, math.inf)
    return KernelConstants(
        variance_bound=variance_bound,
        lipschitz=math.inf,
        curvature=math.inf,
        axis_lipschitz=infinite,
        axis_curvature=infinite,
        modulus=linear_modulus(infinite, math.inf),
    )


def add(first: KernelConstants, second: KernelConstants) -> KernelConstants:
    """Compute the constants of k₁ + k₂, whose features are those of both kernels together.

    On disjoint coordinates the squared constants take their maximum, else their sum.

    Args:
        first: Constants of k₁.
        second: Constants of k₂.

    Returns:
        The constants of the sum.
    """
    disjoint = _disjoint(first, second)

    def combine(a: float, b: float) -> float:
        return max(a, b) if disjoint else math.hypot(a, b)

    return KernelConstants(
        variance_bound=first.variance_bound + second.variance_bound,
        lipschitz=combine(first.lipschitz, second.lipschitz),
        curvature=combine(first.curvature, second.curvature),
        axis_lipschitz=np.hypot(first.axis_lipschitz, second.axis_lipschitz),
        axis_curvature=np.hypot(first.axis_curvature, second.axis_curvature),
        modulus=lambda h: math.hypot(first.modulus(h), second.modulus(h)),
        constant_variance=first.constant_variance and second.constant_variance,
    )


def multiply(first: KernelConstants, second: KernelConstants) -> KernelConstants:
    """Compute the constants of k₁·k₂, whose features are φ₁ ⊗ φ₂.

    ∂(φ₁⊗φ₂) = ∂φ₁⊗φ₂ + φ₁⊗∂φ₂. The cross term ⟨∂φ₁, φ₁⟩⟨φ₂, ∂φ₂⟩ vanishes when either kernel has
    constant variance, and then squares add: Λ² ≤ Λ₁²κ₂ + κ₁Λ₂². That rule also holds on disjoint
    coordinates (Cauchy-Schwarz). Otherwise the norms add: linear·linear has Λ = 2ρ, not √2 ρ.

    Args:
        first: Constants of k₁.
        second: Constants of k₂.

    Returns:
        The constants of the product.
    """
    root1, root2 = math.sqrt(first.variance_bound), math.sqrt(second.variance_bound)
    orthogonal = first.constant_variance or second.constant_variance
    disjoint = _disjoint(first, second)
    slope1, slope2 = _times(first.lipschitz, root2), _times(second.lipschitz, root1)
    bend1, bend2 = _times(first.curvature, root2), _times(second.curvature, root1)
    cross = _times(first.lipschitz, second.lipschitz)
    if orthogonal and disjoint:
        lipschitz = max(slope1, slope2)
    elif orthogonal or disjoint:
        lipschitz = math.hypot(slope1, slope2)
    else:
        lipschitz = slope1 + slope2
    if disjoint and all(map(math.isfinite, (bend1, bend2, cross))):
        # Maximum over |u₁|² + |u₂|² = 1 of u₁² bend₁ + 2 u₁ u₂ cross + u₂² bend₂.
        curvature = (bend1 + bend2) / 2 + math.hypot((bend1 - bend2) / 2, cross)
    else:
        curvature = bend1 + 2 * cross + bend2
    along1 = _times_array(first.axis_lipschitz, root2)
    along2 = _times_array(second.axis_lipschitz, root1)
    return KernelConstants(
        variance_bound=first.variance_bound * second.variance_bound,
        lipschitz=lipschitz,
        curvature=curvature,
        axis_lipschitz=np.hypot(along1, along2) if orthogonal else along1 + along2,
        axis_curvature=_times_array(first.axis_curvature, root2)
        + 2 * _times_array(first.axis_lipschitz, second.axis_lipschitz)
        + _times_array(second.axis_curvature, root1),
        modulus=lambda h: _times(first.modulus(h), root2) + _times(second.modulus(h), root1),
        constant_variance=first.constant_variance and second.constant_variance,
    )


def scale(constants: KernelConstants, factor: float) -> KernelConstants:
    """Compute the constants of c·k, c > 0. Features grow by √c.

    Args:
        constants: Constants of k.
        factor: c.

    Returns:
        The constants of c·k.
    """
    root = math.sqrt(factor)
    return dataclasses.replace(
        constants,
        variance_bound=constants.variance_bound * factor,
        lipschitz=constants.lipschitz * root,
        curvature=constants.curvature * root,
        axis_lipschitz=constants.axis_lipschitz * root,
        axis_curvature=constants.axis_curvature * root,
        modulus=lambda h: constants.modulus(h) * root,
    )


def restrict(
    constants: KernelConstants, positions: Sequence[int], dimension: int
) -> KernelConstants:
    """Compute the constants, on all coordinates, of a kernel that depends on some of them.

    Args:
        constants: Constants on these coordinates.
        positions: The coordinates.
        dimension: The number of all coordinates.

    Returns:
        The constants on all coordinates.
    """
    index = np.array(positions)
    axis_lipschitz, axis_curvature = np.zeros(dimension), np.zeros(dimension)
    axis_lipschitz[index] = constants.axis_lipschitz
    axis_curvature[index] = constants.axis_curvature
    return dataclasses.replace(
        constants,
        axis_lipschitz=axis_lipschitz,
        axis_curvature=axis_curvature,
        modulus=lambda h: constants.modulus(h[index]),
    )


def _disjoint(first: KernelConstants, second: KernelConstants) -> bool:
    return not np.any((first.axis_lipschitz > 0) & (second.axis_lipschitz > 0))


def _times(a: float, b: float) -> float:
    # Here 0·∞ = 0: a kernel that does not vary contributes nothing, even if the other has Λ = ∞.
    return 0.0 if a == 0 or b == 0 else a * b


def _times_array(a: np.ndarray, b: np.ndarray | float) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.where((a == 0) | (np.asarray(b) == 0), 0.0, a * b)
