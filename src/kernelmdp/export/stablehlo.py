"""Write the policy of ``predict`` as a StableHLO program, by ``jax.export``.

The program holds the policy itself: for a grid the learned model, and for MPC the whole search.
The memory of the policy is an input and an output. JAX runs the program without this library, and
other tools that read StableHLO can compile it. A file of JSON beside it describes it.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from kernelmdp.errors import ArgumentError
from kernelmdp.export.controller_table import Inputs
from kernelmdp.mdp.policy import Policy

#: Platforms on which the program runs.
PLATFORMS = ("cpu",)


def state_of(observation: jax.Array, inputs: Inputs) -> jax.Array:
    """Convert an observation to a state. This can be traced.

    Args:
        observation: The observation, (k,).
        inputs: How it becomes a state.

    Returns:
        The state, (m,).
    """
    vector = observation - jnp.asarray(inputs.shift, float)
    seconds, columns = dict(inputs.angle_pairs), []
    for i in range(len(inputs.names)):
        if i in seconds:
            columns.append(jnp.arctan2(vector[seconds[i]], vector[i]))
        elif i not in seconds.values():
            columns.append(vector[i])
    for axis in inputs.periodic:
        low, high = inputs.low[axis], inputs.high[axis]
        columns[axis] = low + jnp.mod(columns[axis] - low, high - low)
    return jnp.clip(jnp.stack(columns), jnp.asarray(inputs.low), jnp.asarray(inputs.high))


def first_memory(policy: Policy) -> list[np.ndarray]:
    """Return the memory with which an episode begins, as the program takes it.

    Args:
        policy: The policy.

    Returns:
        The arrays. None if the policy has no memory.

    Raises:
        ArgumentError: If the memory holds a random key, which is no array of numbers.
    """
    leaves = jax.tree.leaves(policy.reset(1))
    for leaf in leaves:
        if jnp.issubdtype(jnp.asarray(leaf).dtype, jax.dtypes.prng_key):
            raise ArgumentError("format", "a policy whose memory holds numbers", "a random key")
    return [np.asarray(leaf) for leaf in leaves]


def stablehlo_program(policy: Policy, inputs: Inputs) -> bytes:
    """Write a policy as a program ``(observation, period, *memory) -> (action, *memory)``.

    Args:
        policy: The policy.
        inputs: How an observation becomes a state.

    Returns:
        The serialised program, which ``jax.export.deserialize`` reads.

    Raises:
        ArgumentError: If ``jax.export`` cannot write the policy, as one that calls Python.
    """
    memory = first_memory(policy)
    structure = jax.tree.structure(policy.reset(1))

    def decide(observation: jax.Array, period: jax.Array, *leaves: jax.Array) -> tuple[Any, ...]:
        state = state_of(observation, inputs)
        before = jax.tree.unflatten(structure, leaves)
        actions, after = policy.decide(before, state[None, :], period)
        return (actions[0], *jax.tree.leaves(after))

    shapes = [
        jax.ShapeDtypeStruct((len(inputs.names),), np.dtype(float)),
        jax.ShapeDtypeStruct((), np.dtype(np.int64)),
        *(jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in memory),
    ]
    try:
        return bytes(export.export(jax.jit(decide), platforms=PLATFORMS)(*shapes).serialize())
    except (NotImplementedError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise ArgumentError("format", "a policy that jax.export can write", reason) from None
