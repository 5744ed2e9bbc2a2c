"""Runs on disk: started, stopped, gone on with, and checked against the theory."""

from kernelmdp.experiments.audit import Audit, audit
from kernelmdp.experiments.bounds import RunBound, run_bound
from kernelmdp.experiments.config import RunConfig, read_config
from kernelmdp.experiments.run import run

__all__ = ["Audit", "RunBound", "RunConfig", "audit", "read_config", "run", "run_bound"]
