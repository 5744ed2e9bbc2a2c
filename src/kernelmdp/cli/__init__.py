"""The command line, ``kmdp``: one file for each group of commands, all on one ``app``."""

from kernelmdp.cli import audit, learning, report, studies, theory
from kernelmdp.cli.command import app, keep_compiled, main, value_of

__all__ = [
    "app",
    "audit",
    "keep_compiled",
    "learning",
    "main",
    "report",
    "studies",
    "theory",
    "value_of",
]
