"""Runs on disk: started, stopped, gone on with."""

from kernelmdp.experiments.run import RunConfig, read_config, run

__all__ = ["RunConfig", "read_config", "run"]
