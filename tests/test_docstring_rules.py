"""The checker of docstrings, comments and names, tried on short examples."""

import pathlib
import textwrap

import pytest

from tools import docstring_rules, prose

GOOD = '''
"""A module."""

import abc
from typing import ClassVar, NamedTuple, overload

#: The tolerance, large enough for rounding.
TOLERANCE = 1e-9
LIMIT = 3
"""The largest count."""
T = TypeVar("T")


class Base(abc.ABC):
    """A base class.

    Args:
        size: How many there are.
    """

    part: ClassVar[str] = "base"

    def __init__(self, size: int) -> None:
        self.size = size

    @property
    def double(self) -> int:
        """Twice the size."""
        return 2 * self.size

    def scaled(self, factor: float, *args: int, _unused: int = 0, **options: int) -> float:
        """Scale the size.

        Args:
            factor: The factor, which may be
                explained on two lines.
            *args: Numbers.
            **options: More numbers.

        Returns:
            The size
            times the factor.

        Raises:
            ValueError: If the factor is 0.

        >>> Base(3).scaled(2.0)
        6.0
        """
        if factor == 0:
            raise ValueError("factor")
        return self.size * factor

    @overload
    def either(self, number): ...

    def _private(self, number):
        return number


class Child(Base):
    """It differs."""

    def scaled(self, factor, *args, _unused=0, **options):
        def nested(number):
            return number

        return nested(0.0)


class Point(NamedTuple):
    """A point.

    Attributes:
        x: The abscissa.
        y: The ordinate.
    """

    x: float
    y: float


class Numbers(Settings):
    """Settings, whose fields say what they mean."""

    count: int = setting(3, "How many.")
    share: float = dataclasses.field(default=0.5, metadata={"meaning": "The share."})


class Readable(Protocol):
    """Something to read.

    Attributes:
        length: How long it is.
    """

    @property
    def length(self) -> int: ...


class _Hidden:
    def method(self, number):
        return number


def items(count: int) -> Iterator[int]:
    """Count.

    Args:
        count: How far.

    Yields:
        The next number.
    """
    yield from range(count)


def stop() -> None:
    """Stop; an error goes on to the caller."""
    try:
        items(3)
    except OSError:
        raise


@app.command("run")
def run_command(path: str) -> None:
    """Run, as the help of the command line says."""
    raise typer.Exit(1)
'''

LONG = " ".join(["word"] * 36)

#: A snippet for each rule, and the message that it must give, alone.
BAD = {
    "def f(x: int) -> None:\n    '''Do it.'''": "f has no Args:",
    "def f(x, y) -> None:\n    '''Do it.\n\n    Args:\n        x: One.\n    '''": (
        "f: Args: does not name y"
    ),
    "def f(x) -> None:\n    '''Do it.\n\n    Args:\n        x: One.\n        z: Two.\n    '''": (
        "f: Args: names z, no parameter"
    ),
    "def f() -> None:\n    '''Do it.\n\n    Args:\n        z: Two.\n    '''": (
        "f: Args: names z, no parameter"
    ),
    "def f(x) -> None:\n    '''Do it.\n\n    Args:\n        x: One.\n        x: Two.\n    '''": (
        "f: Args: names x twice"
    ),
    "def f(*rest) -> None:\n    '''Do it.'''": "f has no Args:",
    "def f() -> int:\n    '''Do it.'''\n    return 3": "f has no Returns:",
    "def f() -> int:\n    '''Do it.\n\n    Returns:\n    '''\n    return 3": "f has no Returns:",
    "def f() -> int:\n    '''Do it.\n\n    Returns:\n        It.\n    '''\n    yield 3": (
        "f has no Yields:"
    ),
    "def f() -> None:\n    '''Do it.\n\n    Returns:\n        None.\n    '''": (
        "f returns None, but has Returns: or Yields:"
    ),
    "def f() -> None:\n    '''Do it.'''\n    raise a.ShapeError('x')": (
        "f: Raises: does not name ShapeError"
    ),
    "def f() -> None:\n    pass": "f has no docstring",
    "class A:\n    '''A.'''\n    def f(self) -> None:\n        pass": "A.f has no docstring",
    "class A(Outside):\n    '''A.'''\n    def f(self) -> None:\n        pass": (
        "A.f has no docstring"
    ),
    "class A:\n    '''A.'''\n    @staticmethod\n    def f(x) -> None:\n        '''F.'''": (
        "A.f has no Args:"
    ),
    "class A:\n    pass": "A has no docstring",
    "class A:\n    '''A.'''\n    def __init__(self, x) -> None:\n        pass": "A has no Args:",
    "class A(Module):\n    '''A.'''\n    x: int": "A has no Attributes:",
    "class A:\n    '''A.\n\n    Attributes:\n        x: X.\n    '''\n    x: int\n    y: int = 3": (
        "A: Attributes: does not name y"
    ),
    "class A:\n    '''A.\n\n    Attributes:\n        x: X.\n        y: Y.\n    '''\n    x: int": (
        "A: Attributes: names y, no attribute"
    ),
    "class A:\n    '''A.'''\n    x: int = dataclasses.field(default=3)": "A has no Attributes:",
    "LIMIT = 3": "LIMIT: constant without a comment",
    "# Two numbers.\n\nFIRST, SECOND = 1, 2": "FIRST, SECOND: constant without a comment",
    "class Outlook:\n    '''A.'''": "class 'Outlook' has a forbidden name",
    "def think() -> None:\n    '''Do it.'''": "function 'think' has a forbidden name",
    "def unknown() -> None:\n    '''Do it.'''": "function 'unknown' has a forbidden name",
    "def f(luck) -> None:\n    '''Do it.\n\n    Args:\n        luck: It.\n    '''": (
        "parameter of f: 'luck' has a forbidden name"
    ),
    "# No noise.\nSILENT = 0": "module variable 'SILENT' has a forbidden name",
    "class A:\n    '''A.\n\n    Attributes:\n        tail: T.\n    '''\n    tail: int": (
        "field of A: 'tail' has a forbidden name"
    ),
    "def _f():\n    found = 3": "variable 'found' has a forbidden name",
    "def _f(own):\n    pass": "variable 'own' has a forbidden name",
    "def _f():\n    for here in ():\n        pass": "variable 'here' has a forbidden name",
    "def _f():\n    return [0 for kept in ()]": "variable 'kept' has a forbidden name",
    "def _f():\n    with open('') as more:\n        pass": "variable 'more' has a forbidden name",
    "def _f():\n    if told := 3:\n        pass": "variable 'told' has a forbidden name",
    f"# {LONG}.": "a sentence of 36 words",
    f"# {LONG[:90]}\n# {LONG[90:]}.": "a sentence of 36 words",
    f"def _f():\n    '''First.\n\n    {LONG[:90]}\n    {LONG[90:]}.\n    '''": (
        "a sentence of 36 words"
    ),
    f"def _f():\n    '''F.\n\n    Args:\n        x: {LONG[:89]}\n          {LONG[90:]}.\n    '''": (
        "a sentence of 36 words"
    ),
    f"def _f():\n    '''F.\n\n    Returns:\n        {LONG[:89]}\n        {LONG[90:]}.\n    '''": (
        "a sentence of 36 words"
    ),
    f"x = setting(3, '{LONG}.')": "a sentence of 36 words",
    "class Twin:\n    '''A.'''": "class Twin is also in",
}

#: Texts of docstrings that are no long sentence.
SHORT = [
    f"It is short.\n\n        {LONG}\n\nAfter the formula.",
    f"It is short.\n\n>>> {LONG}\n{LONG}\n\nAfter the example.",
    f"It is short: ``{LONG}``.",
    f"- {LONG[:90]}\n- {LONG[90:]}\n- a third item",
    f"It is short.\n\nArgs:\n    x: {LONG[:89]}\n    y: {LONG[90:]}",
    f"{LONG[:89]}. {LONG[90:]}",
    "x " * 50,
]


def messages(source, path="package/module.py", **others):
    sources = {pathlib.Path(path): source}
    sources |= {pathlib.Path(f"package/{name}.py"): text for name, text in others.items()}
    package = docstring_rules.index(sources)
    checker = docstring_rules.Checker(pathlib.Path(path), source, package)
    return [breach.message for breach in checker.run()]


def test_good_code_passes():
    assert messages(GOOD) == []


@pytest.mark.parametrize("snippet", BAD)
def test_each_breach_is_seen(snippet):
    source = f'"""A module."""\n\n{snippet}\n'
    (message,) = messages(source, other='"""O."""\nclass Twin:\n    """T."""\n')
    assert message.startswith(BAD[snippet])


@pytest.mark.parametrize("text", SHORT)
def test_only_prose_makes_sentences(text):
    docstring = textwrap.indent(f'"""{text}\n"""', "    ")
    assert messages(f'"""A module."""\n\n\ndef _f():\n{docstring}\n') == []


def test_base_classes_are_found_in_other_modules():
    base = '"""O."""\nclass Base:\n    """T."""\n    def f(self) -> None:\n        """Do it."""\n'
    middle = '"""O."""\nclass Middle(base.Base[int]):\n    """T."""\n'
    source = '"""A."""\nclass A(Middle):\n    """A."""\n    def f(self) -> None:\n        pass\n'
    assert messages(source, base=base, middle=middle) == []
    assert messages(source) == ["A.f has no docstring"]


def test_names_of_modules():
    module = '"""A module."""\n'
    assert messages(module, "package/theory/walk.py") == ["module 'walk' has a forbidden name"]
    assert messages(module, "package/planners/walk.py") == []
    assert messages(module, "package/cones.py") == ["module 'cones' has a forbidden name"]
    assert messages(module, "package/tail/__init__.py") == ["module 'tail' has a forbidden name"]
    assert messages("x = 3\n") == ["module has no docstring"]


def test_lines_are_those_of_the_file(tmp_path, capsys):
    path = tmp_path / "module.py"
    path.write_text(f'"""A module.\n\nIt is short.\n\n{LONG}.\n"""\n\n\ndef f() -> None: ...\n')
    assert docstring_rules.main([str(tmp_path)]) == 1
    first, second, count = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{path}:5: a sentence of 36 words")
    assert second == f"{path}:9: f has no docstring"
    assert count == "2 breaches"


def test_prose_is_linted():
    docstring = '"""For every count, A = C Cᵀ.\n\nThe the model.\n\n>>> "the the"\n"""\n\n'
    breaches = prose.lint(pathlib.Path("module.py"), docstring + "x = 3  # Thusly.\n")
    assert [(breach.line, breach.message.split()[0]) for breach in breaches] == [
        (3, "There's"),
        (8, "Nonword"),
    ]
