"""Learners: data in, beliefs out, and MDPs that planners can read.

>>> import kernelmdp as km
>>> sorted(km.learners.LEARNERS)
['counts', 'fitted', 'fixed', 'linear-quadratic']
"""

from kernelmdp.learners.conformance import check_learner
from kernelmdp.learners.fitted_kernels import FittedKernels
from kernelmdp.learners.fitted_settings import FittedSettings
from kernelmdp.learners.fixed_kernels import FixedKernels, prior_beliefs
from kernelmdp.learners.learner import Learner, LearnerRequirements
from kernelmdp.learners.mcmc import MCMC
from kernelmdp.learners.registry import LEARNERS, LearnerLike, as_learner

__all__ = [
    "LEARNERS",
    "MCMC",
    "FittedKernels",
    "FittedSettings",
    "FixedKernels",
    "Learner",
    "LearnerLike",
    "LearnerRequirements",
    "as_learner",
    "check_learner",
    "prior_beliefs",
]
