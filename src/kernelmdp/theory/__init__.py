"""The theory as code: regret bounds as numbers, and lemmas and certificates to check runs with.

>>> import kernelmdp as km
>>> sorted(km.theory.BOUNDS)[0]
'corollary1'
"""

from kernelmdp.theory import certificates, chances, lemmas
from kernelmdp.theory.bound import Bound
from kernelmdp.theory.gains import gain_bound
from kernelmdp.theory.gp import theorem3, theorem4
from kernelmdp.theory.growth import gain_exponent
from kernelmdp.theory.paths import Paths, paths
from kernelmdp.theory.rkhs import theorem1, theorem2
from kernelmdp.theory.special import corollary1, corollary2, linear_quadratic, tabular

#: By the name they have on the command line.
BOUNDS = {
    "theorem1": theorem1,
    "theorem2": theorem2,
    "theorem3": theorem3,
    "theorem4": theorem4,
    "corollary1": corollary1,
    "corollary2": corollary2,
    "tabular": tabular,
}

__all__ = [
    "BOUNDS",
    "Bound",
    "Paths",
    "certificates",
    "chances",
    "corollary1",
    "corollary2",
    "gain_bound",
    "gain_exponent",
    "lemmas",
    "linear_quadratic",
    "paths",
    "tabular",
    "theorem1",
    "theorem2",
    "theorem3",
    "theorem4",
]
