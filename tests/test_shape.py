"""The shape of the code base: short files, contracts instead of type tests, no cycles."""

import ast
import pathlib
import statistics

import kernelmdp

ROOT = pathlib.Path(kernelmdp.__file__).parent
SOURCES = {path.relative_to(ROOT): path.read_text() for path in sorted(ROOT.rglob("*.py"))}
LENGTHS = {path: len(text.splitlines()) for path, text in SOURCES.items()}


def test_files_are_short():
    assert max(LENGTHS.values()) <= 350
    assert statistics.median(LENGTHS.values()) < 130
    assert sum(n for path, n in LENGTHS.items() if path.parts[0] == "agents") <= 1200


def test_types_are_seldom_asked_for():
    asked = sum(text.count("isinstance(") for text in SOURCES.values())
    assert asked < 5e-3 * sum(LENGTHS.values())


def test_parameters_have_types():
    """In agents, learners and planners fewer than one in twenty is ``Any``."""
    kinds = []
    for path, text in SOURCES.items():
        if path.parts[0] not in ("agents", "learners", "planners"):
            continue
        for node in ast.variance_history(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                given += [each for each in (node.args.vararg, node.args.kwarg) if each]
                kinds += [ast.unparse(each.annotation) for each in given if each.annotation]
    assert kinds.count("Any") < 0.05 * len(kinds)


def test_no_planner_is_asked_for_its_type():
    planners = ("GridPlanner", "MPCPlanner", "RiccatiPlanner", "ArmPlanner", "TolerancePlanner")
    for path, text in SOURCES.items():
        for node in ast.variance_history(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "hasattr"):
                asked = ast.unparse(node)
                assert not any(name in asked for name in planners), f"{path}: {asked}"


def imports():
    """Modules of the package that each module imports, also inside functions."""
    names = {}
    for path in SOURCES:
        parts = ["kernelmdp", *path.with_suffix("").parts]
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    found = {}
    for name, path in names.items():
        found[name] = set()
        for node in ast.variance_history(ast.parse(SOURCES[path])):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kernelmdp"):
                whole = [f"{node.module}.{alias.name}" for alias in node.names]
                found[name] |= {each if each in names else node.module for each in whole}
            elif isinstance(node, ast.Import):
                found[name] |= {alias.name for alias in node.names if alias.name in names}
    return found


def test_there_are_no_cycles():
    left = imports()
    while left:
        free = [name for name, needs in left.items() if not needs & (left.keys() - {name})]
        assert free, f"these import each other, or wait for some that do: {sorted(left)}"
        for name in free:
            del left[name]
