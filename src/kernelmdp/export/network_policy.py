"""The policy of a network: a few layers of tanh from the state, and perhaps the period, to actions.

Distilled controllers follow it exactly. Its numbers are those that files hold, in single precision.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Domain
from kernelmdp.mdp.policy import Policy
from kernelmdp.types import Period


class NetworkPolicy(Policy):
    """A network whose last outputs are actions, or scores of finite actions.

    Angles enter as cosine and sine. Actions of a box are clipped to it. Of finite actions the one
    with the highest score is taken.

    Attributes:
        weights: The weights of each layer, (outputs, inputs).
        biases: The biases of each layer.
        states: The state space, to which states are brought first.
        space: The action space.
        horizon: H, the unit of the period.
        reads_period: Whether the last input is the period, as a share of H.

    >>> import kernelmdp as km
    >>> box = km.Box([-1.0], [1.0])
    >>> weights, biases = (jnp.array([[-2.0]]),), (jnp.zeros(1),)
    >>> NetworkPolicy(weights, biases, box, box, 5, False)([0.25], period=0)
    array([-0.5])
    """

    weights: tuple[Float[Array, "_ _"], ...]
    biases: tuple[Float[Array, " _"], ...]
    states: Domain = eqx.field(static=True)
    space: Domain = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    reads_period: bool = eqx.field(static=True)

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        inputs = network_inputs(self.states.nearest(states), self.states)
        if self.reads_period:
            share = jnp.broadcast_to(period / self.horizon, (states.shape[0], 1))
            inputs = jnp.concatenate([inputs, share.astype(inputs.dtype)], axis=1)
        outputs = network_outputs(self.weights, self.biases, inputs)
        if self.space.points is not None:
            return jnp.asarray(np.array(self.space.points))[jnp.argmax(outputs, axis=1)]
        return self.space.nearest(outputs)


def network_inputs(states: Float[Array, "n m"], space: Domain) -> Float[Array, "n f"]:
    """Replace each angle by its cosine, and add the sines behind all coordinates.

    Args:
        states: The states, (n, m).
        space: The state space.

    Returns:
        The inputs, (n, f).

    >>> import kernelmdp as km
    >>> turn = km.Box([0.0, 0.0], [4.0, 9.0], periodic=[0])
    >>> network_inputs(jnp.array([[1.0, 5.0]]), turn).round(3).tolist()  # a quarter of a turn
    [[0.0, 5.0, 1.0]]
    """
    columns = [states[:, axis] for axis in range(states.shape[1])]
    sines = []
    for axis, factor in enumerate(angular_factors(space)):
        if factor:
            angle = factor * columns[axis]
            columns[axis] = jnp.cos(angle)
            sines.append(jnp.sin(angle))
    return jnp.stack([*columns, *sines], axis=1)


def angular_factors(space: Domain) -> Float[np.ndarray, " m"]:
    """Compute the factors that turn periodic coordinates into angles.

    Args:
        space: The state space.

    Returns:
        One factor for each coordinate; 0 where it is not periodic.

    >>> import kernelmdp as km
    >>> angular_factors(km.Box([0.0, 0.0], [1.0, 1.0], periodic=[1])).round(2).tolist()
    [0.0, 6.28]
    """
    low, high = space.bounds
    factors = np.zeros(space.dimension)
    for axis in space.periodic:
        factors[axis] = 2 * np.pi / (high[axis] - low[axis])
    return factors


def network_outputs(
    weights: tuple[Array, ...], biases: tuple[Array, ...], inputs: Float[Array, "n f"]
) -> Float[Array, "n o"]:
    """Evaluate a network: layers of tanh, and a linear one at the end.

    Args:
        weights: The weights of each layer, (outputs, inputs).
        biases: The biases of each layer.
        inputs: The inputs, (n, f).

    Returns:
        The outputs of the last layer, (n, o).
    """
    values = inputs
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        values = jnp.tanh(values @ weight.T + bias[None, :])
    return values @ weights[-1].T + biases[-1][None, :]
