"""Run the command line with ``python -m kernelmdp.cli``."""

from kernelmdp.cli import main

main()
