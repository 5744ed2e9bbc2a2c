"""The text form of kernels: a small grammar, read by recursive descent.

    sum      :=  product ( "+" product )*
    product  :=  term ( ("*" | "@") term )*
    term     :=  number | atom restriction*
    atom     :=  name [ "(" arguments ")" ] | "(" sum ")"
    restriction :=  "[" ( name | integer ( "," integer )* | integer ":" integer ) "]"
    arguments   :=  argument ( "," argument )*        argument := [ name "=" ] ( value | sum )
    value       :=  number | "[" value ( "," value )* "]"

A number is a factor in a product. Names of kernels are those of ``NAMES`` and of the functions the
caller passes. ``parse(kernel.text())`` gives the kernel back.
"""

import functools
import operator as operators
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from kernelmdp.errors import ArgumentError, KernelMDPError, KernelTextError
from kernelmdp.kernels.base import Kernel, KernelBase
from kernelmdp.kernels.discrete import Coregional, Index, OneHot
from kernelmdp.kernels.output_kernels import Independent, OutputKernel
from kernelmdp.kernels.polynomial import Constant, Linear, Polynomial, Quadratic
from kernelmdp.kernels.stationary import Matern, Periodic, SquaredExponential
from kernelmdp.kernels.user_function import Function

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


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operators.add,
    "*": operators.mul,
    "@": operators.matmul,
}


class Token(NamedTuple):
    """A word of the text and where it stands."""

    kind: str  # "number", "name", a punctuation mark, or "end"
    text: str
    position: int


TOKEN = re.compile(
    r"\s*(?:(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<mark>[-+*@()\[\],:=]))"
)


def _tokens(text: str) -> list[Token]:
    found, position = [], 0
    while text[position:].strip():
        match = TOKEN.match(text, position)
        if match is None:
            start = position + len(text[position:]) - len(text[position:].lstrip())
            raise KernelTextError(text, start, "a name, a number or an operator", repr(text[start]))
        kind = match.lastgroup or ""
        word = match.group(kind)
        found.append(Token(word if kind == "mark" else kind, word, match.start(kind)))
        position = match.end()
    return [*found, Token("end", "the end", len(text))]


class _Parser:
    def __init__(self, text: str, names: Mapping[str, Callable[..., Any]]) -> None:
        self.text, self.names = text, names
        self.tokens, self.at = _tokens(text), 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def fail(self, expected: str, token: Token | None = None) -> NoReturn:
        token = token or self.token
        got = token.text if token.kind == "end" else repr(token.text)
        raise KernelTextError(self.text, token.position, expected, got)

    def take(self, kind: str, expected: str | None = None) -> Token:
        token = self.token
        if token.kind != kind:
            self.fail(expected or repr(kind))
        self.at += 1
        return token

    def whole(self) -> Any:
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
            self.fail("one of " + ", ".join(sorted(self.names)))
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


def _itself(made: Kernel) -> Kernel:
    return made


def kernel(
    text: str, *, functions: Mapping[str, Kernel | Callable[..., Any]] | None = None
) -> Kernel | OutputKernel:
    """The kernel a text describes; ``functions`` gives names to kernels or functions of one's own.

    >>> kernel("(se(0.5)[state] + matern(2.5, 1.0)[state]) * linear[action]")
    (se(0.5)[state] + matern(2.5, 1.0)[state]) * linear[action]
    """
    if not isinstance(text, str):
        raise ArgumentError("text", "a text such as 'se(0.5)'", repr(text))
    names = dict(NAMES)
    for name, own in (functions or {}).items():
        made = own if isinstance(own, Kernel) else Function(own, name=name)
        names[name] = functools.partial(_itself, made)
    return _Parser(text, names).whole()


def as_kernel(argument: str, given: Any) -> Kernel:
    """A kernel on points, from itself or its text.

    Args:
        argument: The name of the argument, for the error.
        given: A kernel or a text such as "se(0.5)".

    Returns:
        The kernel.

    Raises:
        ArgumentError: When it is neither, or a kernel of several outputs.

    >>> as_kernel("reward_kernel", "se(0.5)")
    se(0.5)
    """
    found = _read(argument, given)
    if not found.scalar:
        raise ArgumentError(argument, "a kernel or its text", repr(given))
    return found


def as_output_kernel(argument: str, given: Any, outputs: int) -> OutputKernel:
    """A transition kernel, from itself or its text; a kernel on points serves every output.

    Args:
        argument: The name of the argument, for the error.
        given: A kernel of one or several outputs, or its text.
        outputs: How many outputs a kernel on points is taken for, independently.

    Returns:
        The kernel of several outputs.

    Raises:
        ArgumentError: When it is neither a kernel nor a text.

    >>> as_output_kernel("transition_kernel", "se(0.5)", 2)
    se(0.5) @ index(2)
    """
    found = _read(argument, given)
    return found @ Index(outputs) if found.scalar else found


def _read(argument: str, given: Any) -> Any:
    found = kernel(given) if isinstance(given, str) else given
    if not isinstance(found, KernelBase):
        raise ArgumentError(argument, "a kernel or its text", repr(given))
    return found
