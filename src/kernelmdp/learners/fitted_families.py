"""The kernel families that are fitted to data, with units that follow from the data."""

from typing import Any

import numpy as np
from jaxtyping import Float

from kernelmdp.gp.ard import ARDFamily
from kernelmdp.gp.free_kernels import free_kernel
from kernelmdp.gp.hyperpriors import HyperPrior
from kernelmdp.gp.kernel_families import KernelFamily
from kernelmdp.gp.undrawable_kernels import undrawable_part
from kernelmdp.gp.used_inputs import on_inputs
from kernelmdp.kernels import Kernel
from kernelmdp.learners.fitted_data import FittedData
from kernelmdp.learners.known_increments import prior_changes
from kernelmdp.mdp.measured_cost import limit_size
from kernelmdp.numerics.tracing import as_array

#: Smallest width of an axis. It only prevents a division by zero.
LEAST_WIDTH = 1e-9


def dynamics_family(data: FittedData, trend: Float[np.ndarray, "d1 m"]) -> KernelFamily:
    """Make the kernel family of the increments minus their trend.

    Its units are the widths of the axes and the root mean squares of the residuals.

    Args:
        data: The data.
        trend: A row of levels, then d rows of slopes.

    Returns:
        The family.
    """
    learned, problem = data.learned, data.problem
    sizes = np.ones(len(learned))
    if not len(data) and problem.known_motion.is_prior:
        change = prior_changes(problem)[learned] / data.scale[learned]
        sizes = np.maximum(problem.prior_error * change, data.settings.minimum_scale)
    if len(data):
        sizes = np.sqrt(np.mean(data.motion_rows(trend, data.fitted)[1] ** 2, axis=0))
        least = np.full(len(sizes), data.settings.minimum_scale)
        # A prior model that was right so far may be wrong elsewhere.
        change = np.sqrt(np.mean(data.increments**2, axis=0)) / data.scale
        least = np.maximum(least, problem.prior_error * change[learned])
        for axis in problem.measured:
            # Costs that were low so far do not tell how high they are elsewhere.
            least[learned.index(axis)] = limit_size(problem, axis) / data.scale[axis]
        sizes = np.maximum(sizes, least)
    return _family(data, data.settings.transition_kernel, sizes, problem.motion_inputs)


def reward_family(data: FittedData) -> KernelFamily:
    """Make the kernel family of the reward.

    Its units are the widths of the axes and the largest observed absolute reward. A mean
    instead of the maximum would shrink with every episode without reward, and exploration
    with it.

    Args:
        data: The data.

    Returns:
        The family.
    """
    rewards = data.reward_rows[1]
    size = float(np.abs(rewards).max()) if len(rewards) else 0.0
    # If all rewards were 0, they do not tell the size of rewards elsewhere.
    sizes = np.array([size if size > 1e-9 else 1.0])
    return _family(data, data.settings.reward_kernel, sizes, data.problem.inputs)


def reward_prior(data: FittedData) -> HyperPrior:
    """Return the prior of the parameters of the reward's kernel.

    Args:
        data: The data.

    Returns:
        The prior.
    """
    settings = data.settings
    many = len(data.problem.inputs) >= settings.relevance_inputs
    return settings.relevance_prior if many else settings.reward_prior


def termination_family(data: FittedData) -> KernelFamily:
    """Make the kernel family of termination, whose targets are 0 and 1.

    Args:
        data: The data.

    Returns:
        The family.
    """
    return _ard_family(data, np.ones(1), data.problem.inputs)


def undrawable_expression(data: FittedData) -> Kernel | None:
    """Find the part of the user's expressions of which no functions can be drawn.

    Args:
        data: The data.

    Returns:
        The part, or None.
    """
    reward = None if data.problem.reward is not None else data.settings.reward_kernel
    points = data.problem.points
    for expression in (reward, data.settings.transition_kernel):
        for kernel in () if expression is None else expression.bind(points.names).parts():
            part = undrawable_part(kernel, points.dimension)
            if part is not None:
                return part
    return None


def _family(
    data: FittedData, expression: Any, sizes: np.ndarray, inputs: tuple[int, ...]
) -> KernelFamily:
    """Squared exponentials with a lengthscale for every axis, or the user's expression."""
    if expression is None:
        return _ard_family(data, sizes, inputs)
    low_high = data.settings.expression_bounds
    names = {
        name: [inputs.index(j) for j in places if j in inputs]
        for name, places in data.problem.points.names.items()
    }
    family = free_kernel(
        expression.bind(names).parts(),
        sizes=sizes,
        dimension=len(inputs),
        spread=data.settings.expression_spread,
        bounds=(low_high[0], low_high[1]),
    )
    return _on_inputs(data, family, inputs)


def _ard_family(data: FittedData, sizes: np.ndarray, inputs: tuple[int, ...]) -> KernelFamily:
    """Squared exponentials. An angle is embedded in a circle, whose diameter is its width."""
    low, high = data.bounds
    angular, widths = np.ones(len(low)), np.maximum(high - low, LEAST_WIDTH)
    for axis in data.box.periodic:
        angular[axis] = 2 * np.pi / (high[axis] - low[axis])
        widths[axis] = 2.0
    used = list(inputs)
    angles = tuple(inputs.index(axis) for axis in data.box.periodic if axis in inputs)
    family = ARDFamily(as_array(widths[used]), as_array(sizes), as_array(angular[used]), angles)
    return _on_inputs(data, family, inputs)


def _on_inputs(data: FittedData, family: KernelFamily, inputs: tuple[int, ...]) -> KernelFamily:
    """Kernels of points, of which measured costs are no input.

    A cost is learned with the prior of a reward: it is often flat where an agent has been. And
    its signal is at least as large as its limit. An indicator that was always 0 suggests less.
    """
    problem, count, prior = data.problem, len(family.sizes), reward_prior(data)
    signal = prior.signal._replace(low=1.0)
    prior = HyperPrior(prior.lengthscale, signal, prior.noise)
    priors = {data.learned.index(j): prior for j in problem.measured if count > 1}
    return on_inputs(family, inputs, problem.points.dimension, priors)
