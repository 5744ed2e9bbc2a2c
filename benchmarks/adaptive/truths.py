"""Truths whose lengthscale and norm are unknown within a factor of 8, on the box of ``rkhs``."""

import jax.numpy as jnp
import numpy as np

import kernelmdp as km
from kernelmdp.envs.rkhs import KernelExpansion
from kernelmdp.envs.unit_box import HORIZON, NOISE, StackedFunctions, unit_environment
from kernelmdp.mdp import MeanModel

#: Lengthscales of the family.
LENGTHSCALES = (0.4, 0.8, 1.6, 3.2)
#: Bounds of norms. A truth has a norm between half of one and that one.
NORMS = (2.0, 4.0, 8.0, 16.0)
#: Centres of a truth along each axis.
CENTRES = 8
#: Functions that are tried for one truth.
ATTEMPTS = 20_000


def draw_function(
    kernel: km.kernels.Kernel,
    bound: float,
    sup_range: tuple[float, float],
    rng: np.random.Generator,
) -> KernelExpansion | None:
    """Draw a function with a norm between half the bound and the bound; None if there is none.

    With K = U D Uᵀ for the centres, the weights U D^(−½) w have the norm |w|. Weights of higher
    directions grow with a random power of their eigenvalue, so functions of large norm and small
    values are drawn too.
    """
    axis = np.linspace(-1, 1, CENTRES)
    centres = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    values, directions = np.linalg.eigh(np.asarray(kernel(centres)))
    keep = values > 1e-8 * values[-1]
    values, directions = values[keep][::-1], directions[:, keep][:, ::-1]
    net_axis = np.linspace(-1, 1, 25)
    net = np.stack(np.meshgrid(net_axis, net_axis), axis=-1).reshape(-1, 2)
    on_net = np.asarray(kernel(net, centres)) @ (directions / np.sqrt(values))
    for _ in range(ATTEMPTS):
        power = rng.uniform(-1.0, 1.0)
        w = rng.normal(size=len(values)) * (values / values[0]) ** (-power / 2)
        w *= bound * rng.uniform(0.5, 1.0) / np.linalg.norm(w)
        if sup_range[0] <= np.abs(on_net @ w).max() <= sup_range[1]:
            weights = (directions / np.sqrt(values)) @ w
            return KernelExpansion(kernel, jnp.asarray(centres), jnp.asarray(weights))
    return None


def truth(seed: int) -> tuple[km.envs.Environment, dict[str, tuple[float, float]]]:
    """Make a truth, and the right member of the family: lengthscale and norm by role."""
    rng = np.random.default_rng([25, seed])
    functions, right = {}, {}
    for role, sup_range in (("reward", (0.5, 1.3)), ("transition", (0.5, 0.98))):
        function = None
        while function is None:  # some pairs have no function of this size
            lengthscale, bound = float(rng.choice(LENGTHSCALES)), float(rng.choice(NORMS))
            kernel = km.kernels.SquaredExponential(lengthscale)
            function = draw_function(kernel, bound, sup_range, rng)
        functions[role], right[role] = function, (lengthscale, bound)
    environment = unit_environment(
        name=f"unknown-{seed}",
        dimension=1,
        model=MeanModel(functions["reward"], StackedFunctions((functions["transition"],))),
        reward_kernel=functions["reward"].kernel,
        transition_kernel=functions["transition"].kernel,
        horizon=HORIZON,
        noise=NOISE,
        noise_law="gaussian",
        norms=(right["reward"][1], right["transition"][1]),
    )
    return environment, right
