"""Docstrings, comments and names of the package keep the rules of ``tools/docstring_rules.py``."""

import pathlib

import pytest

import kernelmdp
import kmdp
from tools import docstring_rules

ROOT = pathlib.Path(kernelmdp.__file__).parent
COMMANDS = pathlib.Path(kmdp.__file__).parent
MODULES = sorted([*ROOT.rglob("*.py"), *COMMANDS.rglob("*.py")])


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT.parent)))
def test_modules_keep_the_rules(path):
    breaches = docstring_rules.check(path)
    if breaches:
        pytest.fail("\n".join(map(str, breaches)), pytrace=False)
