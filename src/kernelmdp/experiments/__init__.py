"""Runs on disk: started, stopped, gone on with, and checked against the theory.

>>> from kernelmdp.experiments import RunConfig
>>> RunConfig("rkhs", "psrl").seed
0
"""

from kernelmdp.experiments.audit import Audit, audit
from kernelmdp.experiments.bounds import RunBound, run_bound
from kernelmdp.experiments.config import RunConfig, read_config
from kernelmdp.experiments.run import run
from kernelmdp.experiments.studies import Study, study

__all__ = [
    "Audit",
    "RunBound",
    "RunConfig",
    "Study",
    "audit",
    "read_config",
    "run",
    "run_bound",
    "study",
]
