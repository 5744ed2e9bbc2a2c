"""Runs on disk: started, stopped, gone on with, and checked against the theory."""

from kernelmdp.experiments.audit import Audit, audit
from kernelmdp.experiments.run import RunConfig, read_config, run

__all__ = ["Audit", "RunConfig", "audit", "read_config", "run"]
