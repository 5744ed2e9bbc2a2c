"""The theory as code: regret bounds as numbers, and lemmas and certificates that check runs.

>>> import kernelmdp as km
>>> sorted(km.theory.BOUNDS)[0]
'corollary1'
"""

from kernelmdp.theory import certificates, value_lemmas, variance_lemmas
from kernelmdp.theory.bound import Bound
from kernelmdp.theory.gain_growth import gain_exponent
from kernelmdp.theory.gains import gain_bound
from kernelmdp.theory.gp_theorems import theorem3, theorem4
from kernelmdp.theory.noise_theorems import theorem16, theorem17
from kernelmdp.theory.prior_suprema import PriorSuprema, prior_suprema
from kernelmdp.theory.rkhs_theorems import theorem1, theorem2
from kernelmdp.theory.sampling_theorem import theorem18
from kernelmdp.theory.special_cases import corollary1, corollary2, lqr_constants, tabular
from kernelmdp.theory.variance_theorem import theorem19

#: Functions that compute regret bounds, by their names on the command line.
BOUNDS = {
    "theorem1": theorem1,
    "theorem2": theorem2,
    "theorem3": theorem3,
    "theorem4": theorem4,
    "theorem16": theorem16,
    "theorem17": theorem17,
    "theorem18": theorem18,
    "theorem19": theorem19,
    "corollary1": corollary1,
    "corollary2": corollary2,
    "tabular": tabular,
}

__all__ = [
    "BOUNDS",
    "Bound",
    "PriorSuprema",
    "certificates",
    "corollary1",
    "corollary2",
    "gain_bound",
    "gain_exponent",
    "lqr_constants",
    "prior_suprema",
    "tabular",
    "theorem1",
    "theorem2",
    "theorem3",
    "theorem4",
    "theorem16",
    "theorem17",
    "theorem18",
    "theorem19",
    "value_lemmas",
    "variance_lemmas",
]
