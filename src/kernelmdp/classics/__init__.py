"""Classic algorithms for finite MDPs and for LQR, with which GP-UCRL and PSRL are compared.

>>> import kernelmdp as km
>>> km.classics.UCRL2("riverswim", seed=0).name
'ucrl2'
"""

from kernelmdp.classics.lqr import OFULQ, CertaintyEquivalence, LQRThompson
from kernelmdp.classics.tabular import UCBVI, UCRL2, DirichletPSRL

__all__ = ["OFULQ", "UCBVI", "UCRL2", "CertaintyEquivalence", "DirichletPSRL", "LQRThompson"]
