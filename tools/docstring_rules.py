"""Check the docstrings, comments and names of the package, beyond what ruff checks.

Run it on files or folders: ``python -m tools.docstring_rules src/kernelmdp/gp``. It prints one line
``path:line: message`` for every breach, then their number. It needs the standard library only, so
you may copy this file anywhere. CONTRIBUTING.md lists the rules.
"""

import ast
import collections
import functools
import io
import pathlib
import re
import sys
import tokenize
from collections.abc import Iterator
from typing import NamedTuple

#: Sentences with more words are hard to follow at first reading.
LONGEST_SENTENCE = 35
#: Names that say too little. They name no module, class, function, parameter, field or constant.
FORBIDDEN = frozenset(
    "Told words relive see begin beyond exploit Ranged Ends Judge Habits Belief Units Shape usual "
    "spread_out waves Waves remember forget Outlook Known SILENT Choice Law imagination luck "
    "unrest think polished menu cones promises Kept syncing tail watching foreign".split()
)
#: Names that no function or method has. As a module or a field they are clear.
FORBIDDEN_FUNCTIONS = frozenset({"unknown"})
#: Names that no module has, by the package it would be in.
FORBIDDEN_MODULES = {"theory": frozenset("walk paths sums chances widths draws".split())}
#: Names that no variable has. A noun says what the value is.
FORBIDDEN_VARIABLES = frozenset("found own here kept more told words".split())
#: Headings that begin a section of a docstring.
SECTION = re.compile(
    r"(Args|Arguments|Attributes|Returns|Yields|Raises|Warns|Examples?|Notes?|References"
    r"|See Also|Todo):\s*$"
)
#: Sections in which every entry begins with a name.
NAMED = frozenset("Args Arguments Attributes Raises Warns".split())
#: The beginning of such an entry: ``name:``, ``name (type):`` or ``**name:``.
ENTRY = re.compile(r"\\?\*{0,2}([\w.]+)(?: \([^)]*\))?:\s*")
#: Bases outside the package that bring no fields. ``Attributes:`` is compared where all are known.
PLAIN_BASES = frozenset("ABC Module NamedTuple Protocol Generic object Enum".split())
#: Calls that make a name for the type checker, which is no constant.
TYPE_CALLS = frozenset("TypeVar ParamSpec TypeVarTuple NewType".split())
#: Comments for tools, which are no prose.
DIRECTIVE = re.compile(r"#\s*(noqa|type:|fmt:|ruff:|pragma|mypy:|codespell:|!)|#!")
#: Full stops that end no sentence.
ABBREVIATION = re.compile(
    r"\b(e\.g|i\.e|cf|et al|vs|resp|eqs?|figs?|thms?|secs?|apps?|chs?|pp?)\.", re.I
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Breach(NamedTuple):
    """One place that breaks a rule.

    Attributes:
        path: The file.
        line: The line in it, from 1.
        message: What is wrong.
    """

    path: pathlib.Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class Prose(NamedTuple):
    """One paragraph, list item or section entry of a docstring or a comment.

    Attributes:
        line: The line it begins on, from 1.
        text: Its words on one line. Code spans and addresses are replaced by one word each.
    """

    line: int
    text: str


class Class(NamedTuple):
    """What other modules need to know of a class.

    Attributes:
        bases: Names of its base classes, without their modules.
        members: Names of its methods, fields and other attributes.
        module: The file that defines it.
        line: The line it begins on.
    """

    bases: tuple[str, ...]
    members: frozenset[str]
    module: pathlib.Path
    line: int


Package = dict[str, list[Class]]


# --- Reading the syntax tree ---


def _last_name(node: ast.AST | None) -> str:
    """Return ``c`` for ``a.b.c``, ``a.b.c(...)`` and ``a.b.c[...]``; "" for other expressions."""
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.split("[")[0].split(".")[-1]
    return node.id if isinstance(node, ast.Name) else ""


def _own_nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes of a body, but not those of functions and classes inside it."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Function | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module or class, also those under ``if`` and ``try``."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            for name in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, name, []))


def _classes(body: list[ast.stmt]) -> Iterator[ast.ClassDef]:
    """Yield the classes of a module and the classes inside them, but not those in functions."""
    for node in _statements(body):
        if isinstance(node, ast.ClassDef):
            yield node
            yield from _classes(node.body)


def _field_names(node: ast.ClassDef) -> dict[str, ast.AnnAssign]:
    """Return the annotated public fields of a class, without those marked ``ClassVar``."""
    return {
        item.target.id: item
        for item in node.body
        if isinstance(item, ast.AnnAssign)
        and isinstance(item.target, ast.Name)
        and not item.target.id.startswith("_")
        and _last_name(item.annotation) != "ClassVar"
    }


def _has_meaning(field: ast.AnnAssign) -> bool:
    """Return whether the value of a field says what it means, as ``setting(...)`` does."""
    call = field.value
    if not isinstance(call, ast.Call):
        return False
    if _last_name(call) == "setting":
        return True
    metadata = next((word.value for word in call.keywords if word.arg == "metadata"), None)
    return (
        _last_name(call) == "field" and metadata is not None and "meaning" in ast.unparse(metadata)
    )


def _parameters(node: Function, *, method: bool) -> list[ast.arg]:
    """Return the parameters of a function, without ``self`` and ``cls``."""
    positional = [*node.args.posonlyargs, *node.args.args]
    static = any(_last_name(item) == "staticmethod" for item in node.decorator_list)
    if method and not static:
        positional = positional[1:]
    extras = [item for item in (node.args.vararg, node.args.kwarg) if item]
    return [*positional, *node.args.kwonlyargs, *extras]


def _raised(node: Function) -> set[str]:
    """Return the names of the exceptions that a body raises by class."""
    errors = {_last_name(item.exc) for item in _own_nodes(node.body) if isinstance(item, ast.Raise)}
    return {name for name in errors if name[:1].isupper()}


def _stores(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the name and line of everything that is assigned to, and of every parameter."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name, node.lineno


# --- Reading prose ---


def _docstring(node: ast.AST) -> str | None:
    """Return the string that documents a module, class or function."""
    body = getattr(node, "body", None)
    if not body or not isinstance(body, list) or not isinstance(body[0], ast.Expr):
        return None
    value = body[0].value
    if not isinstance(value, ast.Constant):
        return None
    return value.value if isinstance(value.value, str) else None


def _dedented(text: str) -> list[str]:
    """Return the lines of a docstring without the indentation that the code gives them."""
    first, *rest = text.expandtabs().split("\n")
    margins = [len(line) - len(line.lstrip()) for line in rest if line.strip()]
    margin = min(margins, default=0)
    return [first.strip(), *(line[margin:].rstrip() for line in rest)]


def _sections(text: str) -> dict[str, list[str]]:
    """Return the lines of every section of a docstring, by heading."""
    parts: dict[str, list[str]] = {}
    lines: list[str] | None = None
    for line in _dedented(text):
        heading = SECTION.match(line)
        if heading:
            lines = parts.setdefault(heading[1].replace("Arguments", "Args"), [])
        elif line and not line.startswith(" "):
            lines = None
        elif lines is not None:
            lines.append(line)
    return parts


def _entries(lines: list[str]) -> list[str]:
    """Return the names that a section describes, in order and without stars."""
    margin = min((len(line) - len(line.lstrip()) for line in lines if line), default=0)
    heads = [line[margin:] for line in lines if line and not line[margin:].startswith(" ")]
    matches = map(ENTRY.match, heads)
    return [match[1].split(".")[-1] for match in matches if match]


def _plain(text: str) -> str:
    """Return a text with code spans and addresses replaced by one word each."""
    text = re.sub(r"``.+?``|`[^`]+`", "code", text)
    return re.sub(r"\bhttps?://\S+", "link", " ".join(text.split()))


def _paragraphs(lines: list[str], start: int) -> Iterator[Prose]:
    """Yield what is prose in dedented lines; examples and displayed formulas are left out.

    A blank line, a list item, a section heading and a section entry begin a new paragraph.
    """
    part: list[str] = []
    first, state, heading, margin = start, "text", "", 0

    def flush() -> Iterator[Prose]:
        if part:
            yield Prose(first, _plain(" ".join(part)))
            part.clear()

    for number, line in enumerate(lines, start):
        indent = len(line) - len(line.lstrip())
        body = line.strip()
        if not body:
            yield from flush()
            state = "text"
        elif state == "example":
            continue
        elif body.startswith((">>>", "```")):
            yield from flush()
            state = "example"
        elif section := SECTION.match(line):
            yield from flush()
            heading, margin, state = section[1], 0, "text"
        else:
            heading = heading if indent else ""
            margin = margin or (indent if heading else 0)
            item = re.match(r"([-*•]|\(?\d+[.)])\s+", body)
            entry = ENTRY.match(body) if heading in NAMED and indent == margin else None
            if item or entry:
                yield from flush()
                state = "item"
            elif indent and not heading and state != "item":
                yield from flush()  # a displayed formula
                continue
            start_of_text = entry or item
            text = body[start_of_text.end() :] if start_of_text else body
            if text:
                first = first if part else number
                part.append(text)
    yield from flush()


def _comments(source: str) -> Iterator[Prose]:
    """Yield the prose of comments. Lines that follow each other are one comment."""
    block: list[str] = []
    start = column = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, place = token.start
        alone = not token.line[:place].strip()
        if not (block and alone and line == start + len(block) and place == column):
            yield from _paragraphs(block, start)
            block, start, column = [], line, place if alone else -1
        text = "" if DIRECTIVE.match(token.string) else token.string.lstrip("#").removeprefix(":")
        block.append(re.sub(r"  (noqa|type:).*", "", text.removeprefix(" ").rstrip()))
    yield from _paragraphs(block, start)


def prose(source: str) -> list[Prose]:
    """Return the prose of a module, in order.

    Docstrings, strings below constants, the meanings of settings and comments are prose.

    Args:
        source: The text of the module.

    Returns:
        Its paragraphs, by line.
    """
    parts = list(_comments(source))
    for node in ast.walk(ast.parse(source)):
        texts: list[ast.expr] = []
        if isinstance(node, ast.Expr):
            texts = [node.value]
        elif isinstance(node, ast.Call) and _last_name(node) == "setting":
            texts = [*node.args[1:], *(word.value for word in node.keywords)]
        for text in texts:
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                parts += _paragraphs(_dedented(text.value), text.lineno)
    return sorted(parts)


def sentences(text: str) -> list[str]:
    """Split a paragraph.

    Args:
        text: The paragraph.

    Returns:
        Its sentences.
    """
    text = ABBREVIATION.sub(lambda match: match[0].replace(".", ""), text)
    return re.split(r"(?<=[.!?])[)\"'”’]*\s+", text)


def _word_count(sentence: str) -> int:
    """Return the number of words. Symbols, numbers and single letters are none, but "a" and "I"."""
    return len([word for word in sentence.split() if re.search(r"[^\W\d_]{2}|^[aAI]$", word)])


# --- The rules ---


def _package_of(path: pathlib.Path) -> pathlib.Path:
    """Return the folder of the outermost package that a file is in, or the file if in none."""
    folder = path.resolve().parent
    if not (folder / "__init__.py").exists():
        return path.resolve()
    while (folder.parent / "__init__.py").exists():
        folder = folder.parent
    return folder


def _members(node: ast.ClassDef) -> frozenset[str]:
    """Return the names that a class or one of its methods defines on it."""
    names: set[str] = set()
    for item in _statements(node.body):
        if isinstance(item, Function | ast.ClassDef):
            names.add(item.name)
        elif isinstance(item, ast.Assign | ast.AnnAssign):
            targets = item.targets if isinstance(item, ast.Assign) else [item.target]
            names |= {_last_name(target) for target in targets}
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
            names.add(inner.attr)
    return frozenset(names)


def index(sources: dict[pathlib.Path, str]) -> Package:
    """Collect the classes of a package.

    Args:
        sources: The text of every module, by its path.

    Returns:
        All classes, by name.
    """
    package: Package = collections.defaultdict(list)
    for path, source in sources.items():
        for node in _classes(ast.parse(source).body):
            bases = tuple(_last_name(base) for base in node.bases)
            package[node.name].append(Class(bases, _members(node), path, node.lineno))
    return package


@functools.cache
def _package_at(root: pathlib.Path) -> Package:
    """Return all classes of a package, or of a file outside packages."""
    paths = sorted(root.rglob("*.py")) if root.is_dir() else [root]
    return index({path: path.read_text() for path in paths})


class Checker:
    """The rules for one module.

    Args:
        path: The file, as messages name it.
        source: Its text.
        package: All classes of the package, from ``index``.
    """

    def __init__(self, path: pathlib.Path, source: str, package: Package) -> None:
        self.path, self.source, self.package = path, source, package
        self.tree = ast.parse(source)
        self.breaches: list[Breach] = []

    def run(self) -> list[Breach]:
        """Check every rule.

        Returns:
            The breaches, by line.
        """
        self._module_names()
        self._body(self.tree.body, None)
        self._constants()
        self._variables()
        self._sentences()
        self._same_names()
        return sorted(set(self.breaches))

    def _report(self, line: int, message: str) -> None:
        self.breaches.append(Breach(self.path, line, message))

    def _name(self, line: int, kind: str, name: str, also: frozenset[str] = frozenset()) -> None:
        if name in FORBIDDEN | also:
            self._report(line, f"{kind} {name!r} has a forbidden name")

    def _module_names(self) -> None:
        parts = [part for part in self.path.with_suffix("").parts if part != "__init__"]
        name, folder = parts[-1], parts[-2] if len(parts) > 1 else ""
        self._name(1, "module", name, FORBIDDEN_MODULES.get(folder, frozenset()))
        if _docstring(self.tree) is None and self.source.strip():
            self._report(1, "module has no docstring")

    def _body(self, body: list[ast.stmt], owner: ast.ClassDef | None) -> None:
        for node in _statements(body):
            if not isinstance(node, Function | ast.ClassDef):
                continue
            if isinstance(node, ast.ClassDef):
                self._name(node.lineno, "class", node.name)
            if node.name.startswith("_"):
                continue
            if isinstance(node, ast.ClassDef):
                self._class(node)
                self._body(node.body, node)
            else:
                self._function(node, owner)

    def _ancestors(self, bases: tuple[str, ...]) -> list[Class]:
        waiting, classes, names = list(bases), [], set[str]()
        while waiting:
            name = waiting.pop()
            if name in names:
                continue
            names.add(name)
            for item in self.package.get(name, []):
                classes.append(item)
                waiting.extend(item.bases)
        return classes

    def _function(self, node: Function, owner: ast.ClassDef | None) -> None:
        decorators = {_last_name(item) for item in node.decorator_list}
        if decorators & {"overload", "setter", "deleter"}:
            return
        name = f"{owner.name}.{node.name}" if owner else node.name
        self._name(node.lineno, "function", node.name, FORBIDDEN_FUNCTIONS)
        wanted = _parameters(node, method=owner is not None)
        for item in wanted:
            self._name(item.lineno, f"parameter of {name}:", item.arg)
        text = _docstring(node)
        above = self._ancestors(tuple(map(_last_name, owner.bases))) if owner else []
        overrides = any(node.name in item.members for item in above)
        if overrides and (text is None or "\n" not in text.strip()):
            return
        if text is None:
            if not (owner and self._is_attribute(owner, node.name, decorators)):
                self._report(node.lineno, f"{name} has no docstring")
            return
        if decorators & {"command", "callback"}:
            return  # Typer prints the docstring as help, where sections would puzzle
        parts = _sections(text)
        self._arguments(node.lineno, name, wanted, parts)
        self._results(node, name, parts, decorators)
        documented = set(_entries(parts.get("Raises", [])))
        for error in sorted(_raised(node) - documented):
            self._report(node.lineno, f"{name}: Raises: does not name {error}")

    def _is_attribute(self, owner: ast.ClassDef, name: str, decorators: set[str]) -> bool:
        """Return whether a property is described as an attribute of its class."""
        text = _docstring(owner)
        described = _entries(_sections(text).get("Attributes", [])) if text else []
        return name in described and any(item.endswith("property") for item in decorators)

    def _arguments(
        self, line: int, name: str, wanted: list[ast.arg], parts: dict[str, list[str]]
    ) -> None:
        needed = [item.arg for item in wanted if not item.arg.startswith("_")]
        if needed and "Args" not in parts:
            self._report(line, f"{name} has no Args:")
            return
        described = _entries(parts.get("Args", []))
        if missing := [item for item in needed if item not in described]:
            self._report(line, f"{name}: Args: does not name {', '.join(missing)}")
        known = {item.arg for item in wanted}
        if strange := [item for item in described if item not in known]:
            self._report(line, f"{name}: Args: names {', '.join(strange)}, no parameter")
        if twice := sorted({item for item in described if described.count(item) > 1}):
            self._report(line, f"{name}: Args: names {', '.join(twice)} twice")

    def _results(
        self, node: Function, name: str, parts: dict[str, list[str]], decorators: set[str]
    ) -> None:
        if any(item.endswith("property") for item in decorators):
            return
        nothing = isinstance(node.returns, ast.Constant) and node.returns.value is None
        nothing = nothing or _last_name(node.returns) in ("NoReturn", "Never")
        generator = any(
            isinstance(item, ast.Yield | ast.YieldFrom) for item in _own_nodes(node.body)
        )
        heading = "Yields" if generator else "Returns"
        if nothing and {"Returns", "Yields"} & parts.keys():
            self._report(node.lineno, f"{name} returns None, but has Returns: or Yields:")
        elif not nothing and not any(line.strip() for line in parts.get(heading, [])):
            self._report(node.lineno, f"{name} has no {heading}:")

    def _class(self, node: ast.ClassDef) -> None:
        fields = _field_names(node)
        for name, field in fields.items():
            self._name(field.lineno, f"field of {node.name}:", name)
        text = _docstring(node)
        if text is None:
            self._report(node.lineno, f"{node.name} has no docstring")
            return
        parts = _sections(text)
        described = _entries(parts.get("Attributes", []))
        needed = [name for name, field in fields.items() if not _has_meaning(field)]
        if needed and "Attributes" not in parts:
            self._report(node.lineno, f"{node.name} has no Attributes:")
        elif missing := [name for name in needed if name not in described]:
            self._report(
                node.lineno, f"{node.name}: Attributes: does not name {', '.join(missing)}"
            )
        bases = tuple(map(_last_name, node.bases))
        above = self._ancestors(bases)
        known = _members(node).union(*(item.members for item in above))
        outside = {base for item in above for base in item.bases}.union(bases)
        if all(base in self.package or base in PLAIN_BASES for base in outside):
            if strange := [item for item in described if item not in known]:
                message = f"{node.name}: Attributes: names {', '.join(strange)}, no attribute"
                self._report(node.lineno, message)
        for item in node.body:
            if isinstance(item, Function) and item.name == "__init__":
                wanted = _parameters(item, method=True)
                for parameter in wanted:
                    self._name(parameter.lineno, f"parameter of {node.name}:", parameter.arg)
                self._arguments(node.lineno, node.name, wanted, parts)

    def _constants(self) -> None:
        lines = self.source.splitlines()
        body = self.tree.body
        for node, after in zip(body, [*body[1:], None], strict=True):
            if not isinstance(node, ast.Assign | ast.AnnAssign):
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [
                item.id
                for target in targets
                for item in ast.walk(target)
                if isinstance(item, ast.Name)
            ]
            for name in names:
                self._name(node.lineno, "module variable", name)
            constants = [name for name in names if re.fullmatch(r"_?[A-Z][A-Z0-9_]*", name)]
            if not constants or _last_name(node.value) in TYPE_CALLS:
                continue
            above = lines[node.lineno - 2].lstrip() if node.lineno > 1 else ""
            below = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if not (below or (above.startswith("#") and not DIRECTIVE.match(above))):
                self._report(node.lineno, f"{', '.join(constants)}: constant without a comment")

    def _variables(self) -> None:
        for name, line in _stores(self.tree):
            if name in FORBIDDEN_VARIABLES:
                self._report(line, f"variable {name!r} has a forbidden name")

    def _sentences(self) -> None:
        for line, text in prose(self.source):
            for sentence in sentences(text):
                if (count := _word_count(sentence)) > LONGEST_SENTENCE:
                    start = " ".join(sentence.split()[:6])
                    self._report(line, f"a sentence of {count} words: {start} ...")

    def _same_names(self) -> None:
        path = self.path.resolve()
        for node in _classes(self.tree.body):
            for item in self.package.get(node.name, []):
                if item.module.resolve() != path:
                    where = f"{item.module.parent.name}/{item.module.name}"
                    self._report(node.lineno, f"class {node.name} is also in {where}")


def check(path: pathlib.Path) -> list[Breach]:
    """Check one file of a package. Its base classes are looked up in the whole package.

    Args:
        path: The file.

    Returns:
        The breaches, by line.
    """
    return Checker(path, path.read_text(), _package_at(_package_of(path))).run()


def files_in(paths: list[str]) -> list[pathlib.Path]:
    """Find Python files.

    Args:
        paths: Files and folders.

    Returns:
        The files, with those inside the folders.
    """
    files: list[pathlib.Path] = []
    for path in map(pathlib.Path, paths):
        files += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return files


def main(arguments: list[str]) -> int:
    """Print the breaches in files and folders.

    Args:
        arguments: Their paths.

    Returns:
        The exit code: 1 where a rule is broken, 2 where no path is given.
    """
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    breaches = [breach for path in files_in(arguments) for breach in check(path)]
    for breach in breaches:
        print(breach)
    print(f"{len(breaches)} breaches")
    return int(bool(breaches))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
