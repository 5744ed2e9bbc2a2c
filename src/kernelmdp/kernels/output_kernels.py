"""Transition kernels, on pairs of a point and the number of an output in {0, ..., m−1}.

Three forms have fast posteriors: k ⊗ identity (``k @ Index(m)``), k ⊗ B (``k @ Coregional(B)``)
and m different kernels (``Independent([...])``). Sums of these use the dense form.
"""

import abc
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError
from kernelmdp.kernels import constants as rules
from kernelmdp.kernels.base import (
    ATOM,
    PRODUCT,
    SUM,
    IndependentPart,
    Kernel,
    KernelBase,
    OutputDecomposition,
    parenthesised,
    register_operation,
)
from kernelmdp.kernels.constants import KernelConstants
from kernelmdp.kernels.discrete import Coregional, Index
from kernelmdp.numerics.checks import as_points


class OutputKernel(KernelBase):
    """k((x, i), (y, j)) for points x, y and outputs i, j.

    >>> import kernelmdp as km
    >>> transition = km.kernel("se(1.0) @ index(2)")
    >>> transition.outputs, transition([[0.0], [1.0]]).shape  # two points with two outputs each
    (2, (4, 4))
    """

    @abc.abstractmethod
    def bind(self, coordinates: Mapping[str, Sequence[int]]) -> "OutputKernel":
        """Replace names of coordinates, such as state and action, by positions.

        Args:
            coordinates: Positions by name.

        Returns:
            The kernel on positions.
        """

    def terms(self) -> tuple["OutputKernel", ...]:
        """Return the two terms of a sum; for any other kernel, the kernel itself.

        Returns:
            The terms.
        """
        return (self,)

    def __call__(self, first: Any, second: Any = None) -> Float[Array, "nm km"]:
        """Compute the matrix between rows (t, i), ordered by point and then by output."""
        x = as_points("first", first)
        y = x if second is None else as_points("second", second, dimension=x.shape[1])
        scalar = self.as_scalar(x.shape[1])
        return scalar(with_outputs(x, self.outputs), with_outputs(y, self.outputs))

    def variance_bound(self, domain: Domain) -> float:
        _, last = domain.bounds
        scalar = self.bind(domain.names).as_scalar(len(last))
        low, high = domain.bounds
        return scalar.constants_on(
            np.append(low, 0.0), np.append(high, self.outputs - 1.0)
        ).variance_bound


def with_outputs(points: Float[Array | np.ndarray, "n d"], outputs: int) -> Float[Array, "nm d1"]:
    """Make rows (x, i) for every point and output.

    Args:
        points: Points x_t, (n, d).
        outputs: m.

    Returns:
        Rows, (n·m, d + 1); row t·m + i is (x_t, i).
    """
    count = points.shape[0]
    numbers = jnp.tile(jnp.arange(outputs, dtype=points.dtype), count)
    return jnp.concatenate([jnp.repeat(points, outputs, axis=0), numbers[:, None]], axis=1)


@register_operation("outputs")
class Coregionalised(OutputKernel):
    """k(x, y) B[i, j], with B the identity (Index) or positive semi-definite (Coregional).

    Args:
        kernel: k.
        index: B.

    Attributes:
        kernel: k.
        index: B.

    Raises:
        ArgumentError: If ``index`` is neither ``Index`` nor ``Coregional``.

    >>> import kernelmdp as km
    >>> km.kernel("se(1.0)") @ km.kernels.Coregional([[1.0, 0.5], [0.5, 1.0]])
    se(1.0) @ coregional([[1.0, 0.5], [0.5, 1.0]])
    """

    kernel: Kernel
    index: Index | Coregional

    def __init__(self, kernel: Kernel, index: Index | Coregional) -> None:
        if not isinstance(index, Index | Coregional):
            raise ArgumentError("index", "Index(m) or Coregional(B) to the right of @", repr(index))
        self.kernel = kernel
        self.index = index

    @property
    def outputs(self) -> int:
        return self.index.size

    def as_scalar(self, dimension: int) -> Kernel:
        return self.kernel.on(range(dimension)) * self.index.on(dimension)

    def bind(self, coordinates: Mapping[str, Sequence[int]]) -> "Coregionalised":
        return Coregionalised(self.kernel.bind(coordinates), self.index)

    def parts(self) -> tuple[Kernel, ...]:
        return (self.kernel,)

    def decompose(self, *, same_noise: bool) -> OutputDecomposition | None:
        return self.index.across(self.kernel, same_noise)

    def constants_of(self, output: int, domain: Domain) -> KernelConstants:
        return rules.scale(self.kernel.constants(domain), float(self.index.matrix[output, output]))

    def to_text(self) -> tuple[str, int]:
        return f"{parenthesised(self.kernel, ATOM)} @ {self.index}", PRODUCT


class Independent(OutputKernel):
    """1{i = j} k_i(x, y): independent outputs with different kernels.

    Args:
        kernels: The kernels k_i, one for each output.

    Attributes:
        kernels: The kernels k_i.

    Raises:
        ArgumentError: If these are not kernels on points, or none.

    >>> import kernelmdp as km
    >>> Independent([km.kernel("se(1.0)"), km.kernel("linear")]).outputs
    2
    """

    kernels: tuple[Kernel, ...]

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self.kernels = tuple(kernels)
        if not self.kernels or not all(isinstance(k, Kernel) for k in self.kernels):
            raise ArgumentError("kernels", "a list of kernels, one per output", repr(kernels))

    @property
    def outputs(self) -> int:
        return len(self.kernels)

    def as_scalar(self, dimension: int) -> Kernel:
        m = self.outputs
        selectors = [Coregional(np.diag(np.eye(m)[i])) for i in range(m)]
        terms = [
            kernel.on(range(dimension)) * selectors[i].on(dimension)
            for i, kernel in enumerate(self.kernels)
        ]
        total: Kernel = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    def bind(self, coordinates: Mapping[str, Sequence[int]]) -> "Independent":
        return Independent([kernel.bind(coordinates) for kernel in self.kernels])

    def parts(self) -> tuple[Kernel, ...]:
        return self.kernels

    def decompose(self, *, same_noise: bool) -> OutputDecomposition:
        return OutputDecomposition(
            tuple(IndependentPart(kernel) for kernel in self.kernels), jnp.eye(self.outputs)
        )

    def constants_of(self, output: int, domain: Domain) -> KernelConstants:
        return self.kernels[output].constants(domain)

    def variance_bound(self, domain: Domain) -> float:
        return max(kernel.variance_bound(domain) for kernel in self.kernels)

    def to_text(self) -> tuple[str, int]:
        return f"independent({', '.join(k.text() for k in self.kernels)})", ATOM


@register_operation("sum of outputs")
class OutputSum(OutputKernel):
    """The sum of two transition kernels, such as k₁ ⊗ B₁ + k₂ ⊗ B₂.

    Attributes:
        left: The first kernel.
        right: The second kernel, with as many outputs.

    >>> import kernelmdp as km
    >>> km.kernel("se(1.0)") @ Index(2) + km.kernel("linear") @ Index(2)
    se(1.0) @ index(2) + linear @ index(2)
    """

    left: OutputKernel
    right: OutputKernel

    def __check_init__(self) -> None:
        if self.left.outputs != self.right.outputs:
            raise ArgumentError(
                "right", f"a kernel with {self.left.outputs} outputs", self.right.outputs
            )

    @property
    def outputs(self) -> int:
        return self.left.outputs

    def as_scalar(self, dimension: int) -> Kernel:
        return self.left.as_scalar(dimension) + self.right.as_scalar(dimension)

    def bind(self, coordinates: Mapping[str, Sequence[int]]) -> "OutputSum":
        return OutputSum(self.left.bind(coordinates), self.right.bind(coordinates))

    def parts(self) -> tuple[Kernel, ...]:
        return self.left.parts() + self.right.parts()

    def decompose(self, *, same_noise: bool) -> None:
        return None

    def terms(self) -> tuple[OutputKernel, ...]:
        return (self.left, self.right)

    def constants_of(self, output: int, domain: Domain) -> KernelConstants:
        left, right = (part.constants_of(output, domain) for part in self.terms())
        return rules.add(left, right)

    def to_text(self) -> tuple[str, int]:
        right, precedence = self.right.to_text()
        return f"{self.left} + {right if precedence >= PRODUCT else f'({right})'}", SUM
