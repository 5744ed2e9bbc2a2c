"""A check that a prior keeps the contract of priors."""

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.confidence.beliefs import Beliefs
from kernelmdp.conformance import Checklist, ConformanceReport
from kernelmdp.domains import Box, join
from kernelmdp.gp import posterior
from kernelmdp.gp.mean_functions import as_mean
from kernelmdp.kernels import Index, SquaredExponential
from kernelmdp.mdp import Gaussian, Model
from kernelmdp.priors.diagnostics import Diagnostics
from kernelmdp.priors.prior import Prior, PriorProblem

#: Number of rows of data: enough to improve predictions on two coordinates.
ROWS = 40
#: Number of draws whose mean is compared with the truth.
DRAWS = 20


def check_prior(prior: Prior) -> ConformanceReport:
    """Check a prior on beliefs about a small system.

    Args:
        prior: The prior.

    Returns:
        The checks that passed.

    Raises:
        ConformanceError: At the first check that fails.

    >>> import kernelmdp as km
    >>> print(check_prior(km.priors.UnknownNoise()).name)
    unknown-noise
    """
    checklist, keys = Checklist(), jax.random.split(jax.random.key(0), 3)
    domain = join(state=Box([-1.0], [1.0]), action=Box([-1.0], [1.0]))
    noise, kernel = Gaussian(0.1), SquaredExponential(1.0)
    posteriors = [
        posterior(prior_kernel, noise_variance=0.01, domain=domain, tolerance=1e-4)
        for prior_kernel in (kernel, kernel @ Index(1))
    ]
    beliefs = Beliefs(posteriors[0], posteriors[1], as_mean("zero", 1, 2), jnp.ones(1))
    problem = PriorProblem(beliefs, noise, noise, norm_reward=20.0, norm_transition=20.0)
    before, first_diagnostics = prior.init(problem, key=keys[0])
    points = jnp.asarray(domain.spread_points(ROWS))
    rewards, outcomes = jnp.sin(points[:, 0]), 0.5 * points[:, 1:]
    after, diagnostics = prior.learn(before, points, rewards, outcomes, key=keys[1])
    right = isinstance(first_diagnostics, Diagnostics) and isinstance(diagnostics, Diagnostics)
    checklist.require("init and learn return Diagnostics", right, type(diagnostics).__name__)

    def predicted(model: Model) -> np.ndarray:
        return np.asarray(model(points).state)[:, 0]

    draw, same_key, other_key = (
        predicted(prior.draw(after, key=key)) for key in (keys[2], keys[2], keys[0])
    )
    same, differs = np.array_equal(draw, same_key), not np.array_equal(draw, other_key)
    checklist.require("draws are finite", bool(np.isfinite(draw).all()), f"{draw[:3]}")
    checklist.require("the same key gives the same draw", same, "another")
    checklist.require("another key gives another draw", differs, "the same")
    truth = np.asarray(outcomes)[:, 0]
    errors = [
        float(np.mean((predicted(prior.mean(state)) - truth) ** 2)) for state in (before, after)
    ]
    checklist.require("data make the mean better", errors[1] < errors[0], f"{errors}")
    draws = [predicted(prior.draw(after, key=key)) for key in jax.random.split(keys[2], DRAWS)]
    error = float(np.mean((np.mean(draws, axis=0) - truth) ** 2))
    promise = "draws after data are nearer to the truth than the mean before any"
    checklist.require(promise, error < errors[0], f"{error:.3g} and {errors[0]:.3g}")
    return checklist.result(prior.name)
