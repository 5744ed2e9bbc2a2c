"""Beliefs about small unknown MDPs, with the data behind them kept for dense oracles."""

import jax.numpy as jnp
import numpy as np

import kernelmdp as km
from kernelmdp.confidence import Beliefs
from kernelmdp.gp.mean_functions import IdentityMean, ZeroMean

BOX = km.join(state=km.Box([0.0, 0.0], [1.0, 1.0]), action=km.Box([0.0], [1.0]))


def beliefs(
    transition_kernel,
    *,
    domain=BOX,
    reward_kernel="se(0.5)",
    reward=None,
    noise=(0.04, 0.04),
    scale=1.0,
    identity=False,
    engine="exact",
    tolerance=None,
):
    """Prior beliefs; ``noise`` are λ_R and λ_P (scaled units)."""
    kernel = (
        km.kernel(transition_kernel) if isinstance(transition_kernel, str) else (transition_kernel)
    )
    m = kernel.outputs
    make = lambda k, v: km.gp.posterior(  # noqa: E731
        km.kernel(k) if isinstance(k, str) else k,
        noise_variance=v,
        domain=domain,
        engine=engine,
        tolerance=tolerance,
    )
    return Beliefs(
        reward=make(reward_kernel, noise[0]) if reward is None else reward,
        transition=make(kernel, noise[1]),
        offset=IdentityMean(m) if identity else ZeroMean(m),
        scale=jnp.broadcast_to(jnp.asarray(scale, float), (m,)),
    )


def data(n, m, *, domain=BOX, seed=0):
    rng = np.random.default_rng(seed)
    if domain.finite:
        all_points = domain.net(10**6)[0]
        points = all_points[rng.integers(len(all_points), size=n)]
    else:
        low, high = domain.bounds
        points = low + (high - low) * rng.random((n, len(low)))
    return points, rng.standard_normal(n), rng.standard_normal((n, m))
