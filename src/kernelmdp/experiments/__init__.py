"""Runs and studies: learn on disk, resume after a stop, and check results against the theory.

>>> from kernelmdp.experiments import RunConfig
>>> RunConfig("rkhs", "psrl").seed
0
"""

from kernelmdp.experiments import callbacks
from kernelmdp.experiments.audit import Audit, audit
from kernelmdp.experiments.conformance import check_agent
from kernelmdp.experiments.learning_loop import interact
from kernelmdp.experiments.oracle import Oracle
from kernelmdp.experiments.results import Result, Table
from kernelmdp.experiments.run import run
from kernelmdp.experiments.run_bounds import RunBound, run_bound
from kernelmdp.experiments.run_config import RunConfig
from kernelmdp.experiments.run_files import read_config
from kernelmdp.experiments.studies import Study, study

__all__ = [
    "Audit",
    "Oracle",
    "Result",
    "RunBound",
    "RunConfig",
    "Study",
    "Table",
    "audit",
    "callbacks",
    "check_agent",
    "interact",
    "read_config",
    "run",
    "run_bound",
    "study",
]
