"""Find the leaves of a pytree that a function passes on unchanged, from its traced program."""

from collections.abc import Callable
from typing import Any

import jax


def changed_leaves(function: Callable[[Any], Any], tree: Any) -> list[bool]:
    """Find out which leaves a function from a pytree to a pytree of the same structure changes.

    The function is traced, not run. A leaf counts as unchanged only if the program returns the
    input itself, whatever its value is.

    Args:
        function: The function.
        tree: Its argument. All leaves are arrays.

    Returns:
        For each leaf whether the function computes it anew.

    >>> pair = jax.numpy.ones(2), jax.numpy.ones(2)
    >>> changed_leaves(lambda pair: (pair[0], pair[1] + 1.0), pair)
    [False, True]
    """
    leaves, structure = jax.tree.flatten(tree)

    def on_leaves(leaves: list[Any]) -> list[Any]:
        return jax.tree.leaves(function(jax.tree.unflatten(structure, leaves)))

    program = jax.make_jaxpr(on_leaves)(leaves).jaxpr
    sources = [_source(program, variable) for variable in program.outvars]
    return [source != index for index, source in enumerate(sources)]


def _source(program: Any, variable: Any) -> int | None:
    """The index of the input that a variable of a program is equal to, or None."""
    for index, argument in enumerate(program.invars):
        if argument is variable:
            return index
    for equation in program.eqns:
        for position, result in enumerate(equation.outvars):
            if result is variable:
                inner = equation.params.get("jaxpr")
                if inner is None or equation.primitive.name not in ("jit", "pjit"):
                    return None
                source = _source(inner.jaxpr, inner.jaxpr.outvars[position])
                return None if source is None else _source(program, equation.invars[source])
    return None
