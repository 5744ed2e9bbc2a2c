"""Training of the network of a distilled controller, by Adam on labelled states.

Actions at a limit of the action space are clipped, so the network may exceed the limit there: the
loss of a label at a limit counts errors on one side only. The scores of finite actions have the
cross-entropy of softmax.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from kernelmdp.domains import Domain
from kernelmdp.export.distillation import DistillationConfig
from kernelmdp.export.network_policy import NetworkPolicy, network_inputs, network_outputs
from kernelmdp.numerics.modules import Module, jit
from kernelmdp.types import Key

#: A label this near to a limit, as a share of half the range, is at the limit. Plans clip their
#: actions, so labels at a limit differ from it by rounding only.
AT_LIMIT = 1e-6
#: The least deviation of an input, as a share of the largest one. An input that hardly changes in
#: the data would otherwise be blown up where it does change.
LEAST_DEVIATION = 1e-3
#: Decay rates of Adam's means of slopes and of their squares, and what keeps its steps finite: the
#: values of its authors (Kingma and Ba 2015).
FIRST_DECAY, SECOND_DECAY, SMALLEST = 0.9, 0.999, 1e-8
#: Share of the usual size of the first weights of the last layer. Outputs begin near the middle.
#: With weights of 0, actions that no label has would keep equal scores.
FIRST_OUTPUTS = np.float32(0.1)
#: Number type of training. It takes half the time of double precision, and files hold it.
PRECISION = np.float32


class Network(Module):
    """A network in units of its data: inputs have mean 0 and deviation 1, actions limits −1 and 1.

    Attributes:
        weights: The weights of each layer, (outputs, inputs).
        biases: The biases of each layer.
        centre: The mean of each input.
        scale: The deviation of each input.
        reads_period: 1 if the last input, the period, counts, and 0 otherwise.
    """

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    centre: Float[Array, " f"]
    scale: Float[Array, " f"]
    reads_period: Float[Array, ""]

    def policy(self, states: Domain, space: Domain, horizon: int) -> NetworkPolicy:
        """Make the policy of the network, in units of states and actions.

        Args:
            states: The state space.
            space: The action space.
            horizon: The number of periods.

        Returns:
            The policy, whose numbers are rounded to single precision. Its last input is the period,
            with weights of 0 if it does not count.
        """
        middle, half = action_units(space)
        weights, biases = ([np.asarray(x, float) for x in y] for y in (self.weights, self.biases))
        scale = np.asarray(self.scale, float)
        biases[0] = biases[0] - weights[0] @ (np.asarray(self.centre, float) / scale)
        weights[0] = weights[0] / scale
        weights[0][:, -1] *= float(self.reads_period)
        weights[-1], biases[-1] = half[:, None] * weights[-1], half * biases[-1] + middle
        first, second = (
            tuple(jnp.asarray(x.astype(PRECISION).astype(float)) for x in y)
            for y in (weights, biases)
        )
        return NetworkPolicy(first, second, states, space, horizon, True)


def action_units(space: Domain) -> tuple[Float[np.ndarray, " o"], Float[np.ndarray, " o"]]:
    """Return the middle and half the width of each output: an action's coordinate, or a score.

    Args:
        space: The action space.

    Returns:
        The middles and the halves, (o,) each.
    """
    if space.points is not None:
        return np.zeros(len(space.points)), np.ones(len(space.points))
    low, high = space.bounds
    return (low + high) / 2, (high - low) / 2


def inputs_with_period(
    states: Float[np.ndarray, "n m"], periods: Int[np.ndarray, " n"], space: Domain, horizon: int
) -> Float[np.ndarray, "n f"]:
    """Compute the inputs of a network, of which the last is the period.

    Args:
        states: The states, (n, m).
        periods: The periods, (n,).
        space: The state space.
        horizon: The number of periods.

    Returns:
        The inputs, (n, f).
    """
    inputs = np.asarray(network_inputs(space.nearest(jnp.asarray(states)), space))
    return np.concatenate([inputs, periods[:, None] / horizon], axis=1)


def targets_of(actions: np.ndarray, space: Domain) -> Float[np.ndarray, "n o"]:
    """Convert labels to what the network is trained on.

    Args:
        actions: The labels, (n, q).
        space: The action space.

    Returns:
        Actions with limits −1 and 1, or 1 for the label among finite actions and 0 for the others.
    """
    if space.points is not None:
        differences = np.abs(actions[:, None, :] - np.array(space.points)[None]).sum(axis=2)
        return np.eye(len(space.points))[differences.argmin(axis=1)]
    middle, half = action_units(space)
    return (actions - middle) / half


def untrained(
    inputs: Float[np.ndarray, "n f"],
    outputs: int,
    config: DistillationConfig,
    *,
    reads_period: bool,
    key: Key,
) -> Network:
    """Make a network before training.

    Args:
        inputs: Inputs that decide the units.
        outputs: The number of outputs.
        config: The settings.
        reads_period: Whether the period counts.
        key: Decides the first weights.

    Returns:
        The network, with small outputs.
    """
    sizes = [inputs.shape[1], *[config.width] * config.layers, outputs]
    keys = jax.random.split(key, len(sizes) - 1)
    weights = [
        jax.random.normal(k, (after, before), PRECISION) / PRECISION(before**0.5)
        for k, before, after in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]
    weights[-1] = FIRST_OUTPUTS * weights[-1]
    deviations = inputs.std(axis=0)
    scale = np.maximum(deviations, LEAST_DEVIATION * deviations.max())
    return Network(
        weights=tuple(weights),
        biases=tuple(jnp.zeros(size, PRECISION) for size in sizes[1:]),
        centre=jnp.asarray(inputs.mean(axis=0).astype(PRECISION)),
        scale=jnp.asarray(scale.astype(PRECISION)),
        reads_period=jnp.asarray(PRECISION(reads_period)),
    )


def trained(
    network: Network,
    inputs: np.ndarray,
    targets: np.ndarray,
    config: DistillationConfig,
    *,
    finite: bool,
    key: Key,
) -> Network:
    """Train a network further.

    Args:
        network: The network.
        inputs: The inputs of all labelled states, (n, f).
        targets: The targets, (n, o).
        config: The settings.
        finite: Whether actions are finite.
        key: Decides the batches.

    Returns:
        The network.
    """
    # Rows are padded to a power of two, so that few programs serve all rounds.
    capacity = 1 << (len(inputs) - 1).bit_length()
    padding = ((0, capacity - len(inputs)), (0, 0))
    x, y = (jnp.asarray(np.pad(each.astype(PRECISION), padding)) for each in (inputs, targets))
    count = jnp.asarray(len(inputs))
    weights, biases = _fitted(network, x, y, count, key, config, finite)
    return dataclasses.replace(network, weights=weights, biases=biases)


@jit
def _fitted(
    network: Network,
    inputs: Float[Array, "N f"],
    targets: Float[Array, "N o"],
    count: Array,
    key: Key,
    config: DistillationConfig,
    finite: bool,
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    scaled = (inputs - network.centre[None, :]) / network.scale[None, :]
    scaled = scaled.at[:, -1].multiply(network.reads_period)

    def loss(parameters: Any, rows: Array) -> Array:
        outputs = network_outputs(parameters[0], parameters[1], scaled[rows])
        return finite_loss(outputs, targets[rows]) if finite else box_loss(outputs, targets[rows])

    def one_step(carry: Any, given: Any) -> tuple[Any, None]:
        parameters, means, squares = carry
        step_key, rate, number = given
        rows = jax.random.randint(step_key, (config.batch,), 0, count)
        slopes = jax.grad(loss)(parameters, rows)
        means = jax.tree.map(lambda x, g: FIRST_DECAY * x + (1 - FIRST_DECAY) * g, means, slopes)
        squares = jax.tree.map(
            lambda x, g: SECOND_DECAY * x + (1 - SECOND_DECAY) * g**2, squares, slopes
        )
        first, second = (1 - decay**number for decay in (FIRST_DECAY, SECOND_DECAY))
        parameters = jax.tree.map(
            lambda x, m, v: x - rate * (m / first) / (jnp.sqrt(v / second) + SMALLEST),
            parameters,
            means,
            squares,
        )
        return (parameters, means, squares), None

    parameters = (network.weights, network.biases)
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    numbers = np.arange(1, config.steps + 1)
    rates = config.learning_rate * (1 + np.cos(np.pi * (numbers - 1) / config.steps)) / 2
    given = [jnp.asarray(each.astype(PRECISION)) for each in (rates, numbers)]
    keys = jax.random.split(key, config.steps)
    return jax.lax.scan(one_step, (parameters, zeros, zeros), (keys, *given))[0][0]


def box_loss(outputs: Float[Array, "n q"], targets: Float[Array, "n q"]) -> Float[Array, ""]:
    """Compute the mean square error, where outputs may exceed a limit that their target is at.

    Args:
        outputs: The outputs, (n, q).
        targets: Actions with limits −1 and 1, (n, q).

    Returns:
        The loss.

    >>> float(box_loss(jnp.array([[3.0], [0.0]]), jnp.array([[1.0], [0.5]])))
    0.125
    """
    errors = outputs - targets
    errors = jnp.where(targets >= 1 - AT_LIMIT, jnp.minimum(errors, 0.0), errors)
    errors = jnp.where(targets <= -1 + AT_LIMIT, jnp.maximum(errors, 0.0), errors)
    return jnp.mean(errors**2)


def finite_loss(outputs: Float[Array, "n o"], targets: Float[Array, "n o"]) -> Float[Array, ""]:
    """Compute the mean cross-entropy of scores.

    Args:
        outputs: The scores, (n, o).
        targets: 1 for the right action, 0 for the others, (n, o).

    Returns:
        The loss.

    >>> round(float(finite_loss(jnp.zeros((1, 2)), jnp.array([[1.0, 0.0]]))), 3)
    0.693
    """
    return -jnp.mean(jnp.sum(targets * jax.nn.log_softmax(outputs, axis=1), axis=1))
