"""A check that a confidence rule keeps the contract of such rules."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from kernelmdp.confidence.beliefs import Beliefs
from kernelmdp.confidence.coverage import Coverage
from kernelmdp.confidence.rule import ConfidenceRule
from kernelmdp.confidence.sets import ConfidenceSets
from kernelmdp.conformance import Checklist, ConformanceReport
from kernelmdp.domains import Box, join
from kernelmdp.gp import posterior
from kernelmdp.gp.mean_functions import as_mean
from kernelmdp.kernels import Index, SquaredExponential
from kernelmdp.mdp import Gaussian

#: Number of points at which sets are compared; they are among the data.
PROBES = 16
#: Number of rows of data: enough to make every set smaller on two coordinates.
ROWS = 40


def check_confidence(rule: ConfidenceRule) -> ConformanceReport:
    """Check a confidence rule on beliefs about a small system.

    Args:
        rule: The rule.

    Returns:
        The checks that passed.

    Raises:
        ConformanceError: At the first check that fails.

    >>> import kernelmdp as km
    >>> print(check_confidence(km.Confidence(norm_reward=1.0, norm_transition=1.0)).name)
    Confidence
    """
    checklist = Checklist()
    domain = join(state=Box([-1.0], [1.0]), action=Box([-1.0], [1.0]))
    noise, kernel = Gaussian(0.1), SquaredExponential(0.7)
    priors = [
        posterior(prior_kernel, noise_variance=0.01, domain=domain)
        for prior_kernel in (kernel, kernel @ Index(1))
    ]
    before = Beliefs(priors[0], priors[1], as_mean("zero", 1, 2), jnp.ones(1))
    points = jnp.asarray(domain.spread_points(ROWS))
    after = before.condition(points, jnp.sin(points[:, 0]), 0.5 * points[:, 1:])
    arguments: dict[str, Any] = {
        "horizon": 5,
        "domain": domain,
        "reward_noise": noise,
        "transition_noise": noise,
    }
    built = [rule.sets(beliefs, episode=2, **arguments) for beliefs in (before, after)]
    right = all(isinstance(sets, ConfidenceSets) for sets in built)
    checklist.require("sets are ConfidenceSets", right, type(built[0]).__name__)
    right = all(isinstance(sets.coverage, Coverage) for sets in built)
    checklist.require(
        "coverage is a value, not a sentence", right, type(built[0].coverage).__name__
    )
    probes = points[:PROBES]
    widths = [np.stack([np.asarray(w) for w in sets.half_widths(probes)]) for sets in built]
    finite = all(bool((np.isfinite(width) & (width >= 0)).all()) for width in widths)
    checklist.require("half-widths are finite and at least 0", finite, f"{widths[0][:, :2]}")
    smaller = bool((widths[1].mean(axis=1) <= widths[0].mean(axis=1) + 1e-12).all())
    checklist.require("data do not make sets wider where they are", smaller, f"{widths[1][:, :2]}")
    regularisers = rule.regularisers_for
    checklist.require("it says with which regularisers to learn", callable(regularisers), "nothing")
    return checklist.result(type(rule).__name__)
