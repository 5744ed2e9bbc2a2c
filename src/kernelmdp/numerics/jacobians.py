"""Functions of rows whose first derivatives have a formula."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Float

#: From parameters and rows (n, p) to values (n, m), or to their Jacobians (n, m, p).
RowFunction = Callable[[Any, Array], Array]


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def call_with_jacobian(
    function: RowFunction, jacobian: RowFunction, parameters: Any, rows: Float[Array, "n p"]
) -> Float[Array, "n m"]:
    """Evaluate a function of rows, and use a formula for its derivatives by the rows.

    The Jacobian of a sum costs about as much as the sum. Without the formula, derivatives along p
    directions cost p times as much. Derivatives of the Jacobian, and derivatives by the parameters,
    are found as usual.

    Args:
        function: From parameters and rows to values. A row's values depend on that row only.
        jacobian: From parameters and rows to the Jacobians of the values by the rows.
        parameters: Any pytree of arrays.
        rows: (n, p).

    Returns:
        The values, (n, m).

    >>> square, slope = lambda c, x: c * x**2, lambda c, x: 2 * c * x[:, :, None]
    >>> rows = jnp.array([[3.0]])
    >>> jax.grad(lambda x: call_with_jacobian(square, slope, 5.0, x)[0, 0])(rows).tolist()
    [[30.0]]
    """
    return function(parameters, rows)


def _jvp(
    function: RowFunction,
    jacobian: RowFunction,
    primals: tuple[Any, Array],
    tangents: tuple[Any, Any],
) -> tuple[Array, Array]:
    parameters, rows = primals
    change, row_change = tangents
    value = call_with_jacobian(function, jacobian, parameters, rows)
    tangent = jnp.zeros_like(value)
    if not isinstance(row_change, SymbolicZero):
        tangent = jnp.einsum("nmp,np->nm", jacobian(parameters, rows), row_change)
    leaves, structure = jax.tree.flatten(parameters)
    changes = jax.tree.leaves(change, is_leaf=lambda leaf: isinstance(leaf, SymbolicZero))
    if not all(isinstance(leaf, SymbolicZero) for leaf in changes):
        dense = [
            jnp.zeros_like(leaf) if isinstance(each, SymbolicZero) else each
            for leaf, each in zip(leaves, changes, strict=True)
        ]
        by_parameters = jax.jvp(
            lambda p: function(p, rows), (parameters,), (jax.tree.unflatten(structure, dense),)
        )[1]
        tangent = tangent + by_parameters
    return value, tangent


call_with_jacobian.defjvp(_jvp, symbolic_zeros=True)
