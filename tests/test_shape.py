"""The shape of the code base: short files, contracts instead of type tests, no cycles."""

import ast
import io
import pathlib
import statistics
import tokenize

import kernelmdp

ROOT = pathlib.Path(kernelmdp.__file__).parent
SOURCES = {path.relative_to(ROOT): path.read_text() for path in sorted(ROOT.rglob("*.py"))}
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(source):
    """The number of lines with code: not blank, not only a comment, not inside a docstring."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                lines.difference_update(range(node.lineno, node.end_lineno + 1))
    return len(lines)


LENGTHS = {path: code_lines(text) for path, text in SOURCES.items()}


def test_only_code_is_counted():
    source = '"""Docstring\n\non lines."""\n\n# Comment.\nx = """a\nb"""  # text\n\nf(\n    x,\n)\n'
    assert code_lines(source) == 5


def test_files_are_short():
    """The limits are at most 5 % above what was reached when they were set."""
    assert max(LENGTHS.values()) <= 265
    assert statistics.median(LENGTHS.values()) <= 88
    assert sum(n for path, n in LENGTHS.items() if path.parts[0] == "agents") <= 2300


def test_types_are_seldom_asked_for():
    calls = [
        node
        for text in SOURCES.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"
    ]
    assert len(calls) < 6.9e-3 * sum(LENGTHS.values())


def test_parameters_have_types():
    """In agents, learners and planners fewer than one in twenty is ``Any``."""
    kinds = []
    for path, text in SOURCES.items():
        if path.parts[0] not in ("agents", "learners", "planners"):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                given += [each for each in (node.args.vararg, node.args.kwarg) if each]
                kinds += [ast.unparse(each.annotation) for each in given if each.annotation]
    assert kinds.count("Any") < 0.05 * len(kinds)


def test_no_planner_is_asked_for_its_type():
    planners = ("GridPlanner", "MPCPlanner", "RiccatiPlanner", "ArmPlanner", "TolerancePlanner")
    for path, text in SOURCES.items():
        for node in ast.walk(ast.parse(text)):
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
        for node in ast.walk(ast.parse(SOURCES[path])):
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
