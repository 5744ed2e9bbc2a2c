"""Run the command line with ``python -m kmdp``."""

from kmdp import main

main()
