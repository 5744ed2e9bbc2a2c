"""The command line, ``kmdp``: one file for each group of commands, all on one ``app``."""

from kernelmdp.cli import audit, bound, report, run, study
from kernelmdp.cli.command import app, enable_compilation_cache, main, parse_value

__all__ = [
    "app",
    "audit",
    "bound",
    "enable_compilation_cache",
    "main",
    "parse_value",
    "report",
    "run",
    "study",
]
