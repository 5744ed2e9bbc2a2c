"""The command line ``kmdp``. Each module adds its commands to the same ``app``."""

from kernelmdp.cli import audit, bound, export, report, run, serve, study
from kernelmdp.cli.command import app, main, parse_value

__all__ = [
    "app",
    "audit",
    "bound",
    "export",
    "main",
    "parse_value",
    "report",
    "run",
    "serve",
    "study",
]
