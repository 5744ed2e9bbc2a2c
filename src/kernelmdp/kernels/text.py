"""The text form of kernels: a small grammar and its recursive-descent parser.

    sum      :=  product ( "+" product )*
    product  :=  term ( ("*" | "@") term )*
    term     :=  number | atom restriction*
    atom     :=  name [ "(" arguments ")" ] | "(" sum ")"
    restriction :=  "[" ( name | integer ( "," integer )* | integer ":" integer ) "]"
    arguments   :=  argument ( "," argument )*        argument := [ name "=" ] ( value | sum )
    value       :=  number | "[" value ( "," value )* "]"

A number is a factor in a product. Names of kernels are those of ``NAMES`` and of the functions that
the caller passes. Parsing ``k.text()`` gives the kernel k back.
"""

import functools
import operator as operators
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

from kernelmdp.errors import ArgumentError, KernelMDPError, KernelTextError
from kernelmdp.kernels.base import Kernel, KernelBase
from kernelmdp.kernels.discrete import Coregional, Index, OneHot
from kernelmdp.kernels.output_kernels import Independent, OutputKernel
from kernelmdp.kernels.polynomial import Constant, Linear, Polynomial, Quadratic
from kernelmdp.kernels.stationary import Matern, Periodic, SquaredExponential
from kernelmdp.kernels.user_function import Function
from kernelmdp.numerics.checks import with_suggestion

#: Kernels by name in the text form.
NAMES: dict[str, Callable[..., Any]] = {
    "se": SquaredExponential,
    "matern": Matern,
    "periodic": Periodic,
    "constant": Constant,
    "linear": Linear,
    "quadratic": Quadratic,
    "polynomial": Polynomial,
    "index": Index,
    "coregional": Coregional,
    "onehot": OneHot,
    "independent": lambda *kernels: Independent(kernels),
}

#: Operators of the text form.
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operators.add,
    "*": operators.mul,
    "@": operators.matmul,
}


class Token(NamedTuple):
    """A word of the text.

    Attributes:
        kind: "number", "name", a punctuation mark, or "end".
        text: The word.
        position: The position of its first character.
    """

    kind: str
    text: str
    position: int


#: The pattern of one word: a number, a name or a punctuation mark.
TOKEN = re.compile(
    r"\s*(?:(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<mark>[-+*@()\[\],:=]))"
)


def _tokens(text: str) -> list[Token]:
    tokens, position = [], 0
    while text[position:].strip():
        match = TOKEN.match(text, position)
        if match is None:
            start = position + len(text[position:]) - len(text[position:].lstrip())
            raise KernelTextError(text, start, "a name, a number or an operator", repr(text[start]))
        kind = match.lastgroup or ""
        word = match.group(kind)
        tokens.append(Token(word if kind == "mark" else kind, word, match.start(kind)))
        position = match.end()
    return [*tokens, Token("end", "the end", len(text))]


class _Parser:
    def __init__(self, text: str, names: Mapping[str, Callable[..., Any]]) -> None:
        self.text, self.names = text, names
        self.tokens, self.at = _tokens(text), 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def fail(
        self, expected: str, token: Token | None = None, names: Iterable[str] = ()
    ) -> NoReturn:
        token = token or self.token
        actual = token.text if token.kind == "end" else with_suggestion(token.text, names)
        raise KernelTextError(self.text, token.position, expected, actual)

    def take(self, kind: str, expected: str | None = None) -> Token:
        token = self.token
        if token.kind != kind:
            self.fail(expected or repr(kind))
        self.at += 1
        return token

    def parse(self) -> Any:
        try:
            kernel = self.sum()
        except RecursionError:
            self.fail("fewer nested brackets")
        if self.token.kind != "end":
            self.fail("'+', '*', '@' or the end")
        return kernel

    def sum(self) -> Any:
        left = self.product()
        while self.token.kind == "+":
            operator = self.take("+")
            left = self.combine(operator, left, self.product())
        return left

    def product(self) -> Any:
        start, only_numbers = self.token, self.token.kind == "number"
        left = self.term()
        while self.token.kind in ("*", "@"):
            operator = self.take(self.token.kind)
            only_numbers = only_numbers and self.token.kind == "number"
            left = self.combine(operator, left, self.term())
        if only_numbers:
            self.fail("a kernel (a number is a factor, as in 2.0 * se(1.0))", start)
        return left

    def combine(self, operator: Token, left: Any, right: Any) -> Any:
        try:
            return OPERATORS[operator.kind](left, right)
        except (TypeError, KernelMDPError) as error:
            self.fail(f"operands that {operator.text!r} can combine ({error})", operator)

    def term(self) -> Any:
        if self.token.kind == "number":
            return float(self.take("number").text)
        kernel = self.atom()
        while self.token.kind == "[":
            bracket = self.take("[")
            coordinates = self.coordinates()
            self.take("]")
            if not kernel.scalar:
                self.fail("a kernel on points before a restriction", bracket)
            kernel = self.build(bracket, kernel.on, [coordinates], {})
        return kernel

    def atom(self) -> Any:
        token = self.token
        if token.kind == "(":
            self.take("(")
            inner = self.sum()
            self.take(")")
            return inner
        self.take("name", "a kernel")
        if token.text not in self.names:
            self.at -= 1
            self.fail("one of " + ", ".join(sorted(self.names)), names=self.names)
        positional: list[Any] = []
        named: dict[str, Any] = {}
        if self.token.kind == "(":
            self.take("(")
            while self.token.kind != ")":
                if self.token.kind == "name" and self.tokens[self.at + 1].kind == "=":
                    name = self.take("name")
                    if name.text in named:
                        self.fail("each argument once", name)
                    self.take("=")
                    named[name.text] = self.argument()
                else:
                    positional.append(self.argument())
                if self.token.kind != ")":
                    self.take(",", "',' or ')'")
            self.take(")")
        return self.build(token, self.names[token.text], positional, named)

    def build(
        self, token: Token, make: Callable[..., Any], positional: list[Any], named: dict[str, Any]
    ) -> Any:
        try:
            return make(*positional, **named)
        except (TypeError, ValueError, OverflowError) as error:  # ArgumentError among them
            self.fail(f"valid arguments ({error})", token)

    def argument(self) -> Any:
        if self.token.kind == "[":
            return self.values()
        if self.token.kind == "number" and self.tokens[self.at + 1].kind != "*":
            return _number(self.take("number").text)
        return self.sum()

    def values(self) -> Any:
        if self.token.kind != "[":
            return _number(self.take("number", "a number").text)
        self.take("[")
        items = [self.values()]
        while self.token.kind == ",":
            self.take(",")
            items.append(self.values())
        self.take("]", "',' or ']'")
        return items

    def coordinates(self) -> Any:
        if self.token.kind == "name":
            return self.take("name").text
        first = self.position()
        if self.token.kind == ":":
            self.take(":")
            return list(range(first, self.position()))
        positions = [first]
        while self.token.kind == ",":
            self.take(",")
            positions.append(self.position())
        return positions

    def position(self) -> int:
        token = self.take("number", "a name or a position counted from 0")
        if not token.text.isdigit():
            self.fail("a position counted from 0", token)
        return int(token.text)


def _number(text: str) -> float | int:
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _constant_maker(kernel: Kernel) -> Kernel:
    return kernel


def kernel(
    text: str, *, functions: Mapping[str, Kernel | Callable[..., Any]] | None = None
) -> Kernel | OutputKernel:
    """Parse the text form of a kernel.

    Args:
        text: The text.
        functions: Names for your own kernels or functions of two points, to use in the text.

    Returns:
        The kernel.

    Raises:
        ArgumentError: If it is not a text.
        KernelTextError: If the text does not parse.

    >>> kernel("(se(0.5)[state] + matern(2.5, 1.0)[state]) * linear[action]")
    (se(0.5)[state] + matern(2.5, 1.0)[state]) * linear[action]
    """
    if not isinstance(text, str):
        raise ArgumentError("text", "a text such as 'se(0.5)'", repr(text))
    names = dict(NAMES)
    for name, function in (functions or {}).items():
        named = function if isinstance(function, Kernel) else Function(function, name=name)
        names[name] = functools.partial(_constant_maker, named)
    return _Parser(text, names).parse()


def as_kernel(argument: str, value: Any) -> Kernel:
    """Convert a kernel or its text to a kernel on points.

    Args:
        argument: The name of the argument, for the error.
        value: A kernel, or a text such as "se(0.5)".

    Returns:
        The kernel.

    Raises:
        ArgumentError: If it is neither, or a kernel of several outputs.

    >>> as_kernel("reward_kernel", "se(0.5)")
    se(0.5)
    """
    parsed = _as_any_kernel(argument, value)
    if not parsed.scalar:
        raise ArgumentError(argument, "a kernel or its text", repr(value))
    return parsed


def as_output_kernel(argument: str, value: Any, outputs: int) -> OutputKernel:
    """Convert a kernel or its text to a transition kernel.

    Args:
        argument: The name of the argument, for the error.
        value: A kernel of one or several outputs, or its text. A kernel on points is used for
            every output independently.
        outputs: The number of outputs in that case.

    Returns:
        The kernel of several outputs.

    Raises:
        ArgumentError: If it is neither a kernel nor a text.

    >>> as_output_kernel("transition_kernel", "se(0.5)", 2)
    se(0.5) @ index(2)
    """
    parsed = _as_any_kernel(argument, value)
    return parsed @ Index(outputs) if parsed.scalar else parsed


def _as_any_kernel(argument: str, value: Any) -> Any:
    parsed = kernel(value) if isinstance(value, str) else value
    if not isinstance(parsed, KernelBase):
        raise ArgumentError(argument, "a kernel or its text", repr(value))
    return parsed
