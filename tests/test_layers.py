"""The order of layers: a module imports from its own layer or from lower ones, never sideways."""

import ast
import pathlib

import pytest

import kernelmdp

ROOT = pathlib.Path(kernelmdp.__file__).parent
MODULES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))

# From the bottom; layers of one row are siblings that do not know each other.
ORDER = [
    [
        "errors",
        "types",
        "numerics",
        "domains",
        "conformance",
        "version",
        "registry",
        "settings",
        "archive",
    ],
    ["kernels"],
    ["gp", "mdp"],
    ["information"],
    ["confidence"],
    ["priors"],
    ["learners", "planners", "logs", "controllers"],
    ["agents", "theory", "envs"],
    ["classics", "export"],
    ["experiments"],
    ["report", "serving"],
    ["cli"],
]
# The ground on which everything stands has an order of its own.
GROUND = {
    "errors": set(),
    "types": set(),
    "version": set(),
    "conformance": {"errors"},
    "archive": {"errors"},
    "registry": {"errors", "numerics"},
    "settings": {"errors", "numerics"},
    "numerics": {"errors", "types"},
    "domains": {"errors", "types", "numerics"},
}
# Lower layers that a layer must not know all the same: a planner only ever sees an MDP.
APART = {"planners": {"kernels", "gp", "information", "confidence", "priors"}}
LEVEL = {layer: level for level, row in enumerate(ORDER) for layer in row}


def layer_of(path):
    return path.parts[0].removesuffix(".py")


def imported_layers(path, source):
    """Layers of this package that a module imports; None for a name of the package itself."""
    package = ["kernelmdp", *path.parent.parts]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            # `from kernelmdp import gp` names a layer, `from kernelmdp.gp import x` has one.
            targets = [base if len(base) > 1 else [*base, alias.name] for alias in node.names]
        else:
            continue
        for target in targets:
            if target[0] == "kernelmdp":
                yield target[1] if len(target) > 1 and target[1] in LEVEL else None


def may_import(layer, other):
    if other is None:
        return False
    if layer in GROUND:
        return other == layer or other in GROUND[layer]
    if other in APART.get(layer, ()):
        return False
    return other == layer or LEVEL[other] < LEVEL[layer]


def forbidden_imports(path, source):
    layer = layer_of(path)
    return [other for other in imported_layers(path, source) if not may_import(layer, other)]


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_imports_point_downward(path):
    if path == pathlib.Path("__init__.py"):
        return  # the shop window, which shows every layer
    assert layer_of(path) in LEVEL, f"{path} has no place in the order of layers"
    assert forbidden_imports(path, (ROOT / path).read_text()) == []


@pytest.mark.parametrize(
    ("path", "source", "found"),
    [
        ("gp/posterior.py", "from kernelmdp.kernels import Kernel", []),
        ("gp/posterior.py", "from kernelmdp.gp.basis import Basis", []),
        ("gp/posterior.py", "from kernelmdp.information.gain import gain", ["information"]),
        ("gp/posterior.py", "from kernelmdp import mdp", ["mdp"]),
        ("gp/posterior.py", "from kernelmdp import kernel", [None]),
        ("gp/posterior.py", "import kernelmdp", [None]),
        ("gp/posterior.py", "from ..agents import psrl", ["agents"]),
        ("gp/posterior.py", "from . import basis", []),
        ("kernels/base.py", "def f():\n    import kernelmdp.gp.posterior", ["gp"]),
        ("domains.py", "from kernelmdp.numerics.tracing import is_traced", []),
        ("domains.py", "from kernelmdp.kernels import Kernel", ["kernels"]),
        ("errors.py", "from kernelmdp.types import Point", ["types"]),
        ("planners/grid_planner.py", "from kernelmdp.confidence import sets", ["confidence"]),
        ("experiments/run.py", "from kernelmdp.report import read", ["report"]),
        ("agents/psrl.py", "from kernelmdp.envs import make", ["envs"]),
        ("agents/agent.py", "from kernelmdp.export import controller_of", ["export"]),
        ("learners/fitted_kernels.py", "from kernelmdp.planners import Planner", ["planners"]),
    ],
)
def test_the_rule_itself(path, source, found):
    assert forbidden_imports(pathlib.Path(path), source) == found


# One place factorises matrices.

FACTORISATIONS = {"cholesky", "cho_factor", "cho_solve", "solve_triangular"}
FACTOR = pathlib.Path("numerics/factorisation.py")


def factorisations(source):
    """Factorisations of JAX, NumPy or SciPy in use; those of numerics.factor do not count."""
    tree = ast.parse(source)
    found, foreign = [], set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            foreign |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("kernelmdp"):
            foreign |= {alias.asname or alias.name for alias in node.names}
            found += [alias.name for alias in node.names if alias.name in FACTORISATIONS]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in FACTORISATIONS:
            root = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root.id in foreign:
                found.append(node.attr)
    return found


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_only_one_module_factorises(path):
    found = factorisations((ROOT / path).read_text())
    assert found if path == FACTOR else not found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import jax.numpy as jnp\njnp.linalg.cholesky(a)", ["cholesky"]),
        ("import jax\njax.scipy.linalg.cho_solve(a, b)", ["cho_solve"]),
        ("from jax.scipy import linalg\nlinalg.cho_factor(a)", ["cho_factor"]),
        ("from jax.scipy.linalg import solve_triangular", ["solve_triangular"]),
        ("from kernelmdp.numerics.factorisation import cholesky\ncholesky(a)", []),
        ("import numpy as np\nnp.linalg.eigh(a)\nself.cholesky(a)", []),
    ],
)
def test_the_search_itself(source, found):
    assert factorisations(source) == found


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_files_are_named_after_concepts(path):
    assert not {part.removesuffix(".py") for part in path.parts} & {
        "common",
        "helper",
        "helpers",
        "misc",
        "util",
        "utils",
    }
