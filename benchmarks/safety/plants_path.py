"""Importing this module lets the modules of benchmarks/control/plants be imported."""

import pathlib
import sys

# At the end, so that files of this folder with the same name come first.
sys.path.append(str(pathlib.Path(__file__).parents[1] / "control" / "plants"))
