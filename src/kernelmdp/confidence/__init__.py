"""Confidence sets for the mean reward and the mean transition of an unknown MDP.

>>> import kernelmdp as km
>>> km.confidence.as_confidence("practical").scale
0.1
"""

from kernelmdp.confidence.adaptive import AdaptiveConfidence
from kernelmdp.confidence.beliefs import Beliefs, KnownReward
from kernelmdp.confidence.beta import (
    finite_beta,
    gp_beta,
    joint_beta,
    log_cells,
    misspecified_beta,
    mixture_beta,
    net_counts,
    rkhs_beta,
)
from kernelmdp.confidence.confidence_settings import PRESETS, Confidence, as_confidence, igp_ucb
from kernelmdp.confidence.conformance import check_confidence
from kernelmdp.confidence.coverage import NO_THEOREM, Coverage
from kernelmdp.confidence.rule import ConfidenceRule
from kernelmdp.confidence.sets import ConfidenceSets, Containment, Plausible
from kernelmdp.confidence.suprema import (
    Supremum,
    constants_level,
    estimated_supremum,
    slope_bound,
    slopes,
    supremum,
)

__all__ = [
    "NO_THEOREM",
    "PRESETS",
    "AdaptiveConfidence",
    "Beliefs",
    "Confidence",
    "ConfidenceRule",
    "ConfidenceSets",
    "Containment",
    "Coverage",
    "KnownReward",
    "Plausible",
    "Supremum",
    "as_confidence",
    "check_confidence",
    "constants_level",
    "estimated_supremum",
    "finite_beta",
    "gp_beta",
    "igp_ucb",
    "joint_beta",
    "log_cells",
    "misspecified_beta",
    "mixture_beta",
    "net_counts",
    "rkhs_beta",
    "slope_bound",
    "slopes",
    "supremum",
]
