"""What every prior promises, checked: for priors of ours and for those of others."""

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.confidence.beliefs import Beliefs
from kernelmdp.conformance import Checklist, Conformance
from kernelmdp.domains import Box, join
from kernelmdp.gp import posterior
from kernelmdp.gp.mean_functions import as_mean
from kernelmdp.kernels import Index, SquaredExponential
from kernelmdp.mdp import Gaussian, Model
from kernelmdp.priors.diagnostics import Diagnostics
from kernelmdp.priors.prior import Prior, PriorProblem

#: Rows of data, and draws whose mean is looked at.
ROWS, DRAWS = 40, 20


def check_prior(prior: Prior) -> Conformance:
    """Check a prior on beliefs about a small system.

    Args:
        prior: The prior.

    Returns:
        The promises that were kept.

    Raises:
        ConformanceError: At the first promise that is broken.

    >>> import kernelmdp as km
    >>> print(check_prior(km.priors.UnknownNoise()).name)
    unknown-noise
    """
    checklist, keys = Checklist(), jax.random.split(jax.random.key(0), 3)
    domain = join(state=Box([-1.0], [1.0]), action=Box([-1.0], [1.0]))
    noise, kernel = Gaussian(0.1), SquaredExponential(1.0)
    posteriors = [
        posterior(each, noise_variance=0.01, domain=domain, tolerance=1e-4)
        for each in (kernel, kernel @ Index(1))
    ]
    beliefs = Beliefs(posteriors[0], posteriors[1], as_mean("zero", 1, 2), jnp.ones(1))
    setting = PriorProblem(beliefs, noise, noise, norm_reward=20.0, norm_transition=20.0)
    before, started = prior.init(setting, key=keys[0])
    points = jnp.asarray(domain.spread(ROWS))
    rewards, outcomes = jnp.sin(points[:, 0]), 0.5 * points[:, 1:]
    after, run_segment = prior.learn(before, points, rewards, outcomes, key=keys[1])
    right = all(isinstance(each, Diagnostics) for each in (started, run_segment))
    checklist.require("begin and learn say how the chains went", right, type(run_segment).__name__)

    def predicted(model: Model) -> np.ndarray:
        return np.asarray(model(points).state)[:, 0]

    one, same, other = (
        predicted(prior.draw(after, key=key)) for key in (keys[2], keys[2], keys[0])
    )
    checklist.require("draws are finite", bool(np.isfinite(one).all()), f"{one[:3]}")
    checklist.require("the same key gives the same draw", np.array_equal(one, same), "another")
    checklist.require("another key gives another draw", not np.array_equal(one, other), "the same")
    truth = np.asarray(outcomes)[:, 0]
    errors = [
        float(np.mean((predicted(prior.mean(state)) - truth) ** 2)) for state in (before, after)
    ]
    checklist.require("data make the mean better", errors[1] < errors[0], f"{errors}")
    drawn = [predicted(prior.draw(after, key=key)) for key in jax.random.split(keys[2], DRAWS)]
    spread = float(np.mean((np.mean(drawn, axis=0) - truth) ** 2))
    promise = "draws after data are nearer to the truth than the mean before any"
    checklist.require(promise, spread < errors[0], f"{spread:.3g} and {errors[0]:.3g}")
    return checklist.result(prior.name)
