"""Arithmetic with the number of GPUs: `{width}` and `{256/width}` in a command."""

import ast
import operator
import re
from collections.abc import Callable
from fractions import Fraction

MOST_CHARACTERS = 200
_BRACES = re.compile(r"(?<!\$)\{((?:width|[\d.\s()+*/-])+)\}")
"""Braces around numbers, signs and `width`: JSON and the shell's ${width} are none."""
_NAMED = re.compile(r"(?<!\$)\{([\w.\s()+*/-]+)\}")
_NAME = re.compile(r"[A-Za-z_]\w*")
_CODE = re.compile(r"[\"'\n;]")
"""Signs of a program's text, whose braces are its own."""
_EXPECTED = "numbers and width with + - * / // ( ), such as {256/width}"
_OPERATIONS: dict[type[ast.AST], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: lambda left, right: Fraction(left // right),
}


class Unfit(ValueError):
    """A placeholder that has no value, or none that can be used, at a width."""

    def __init__(self, text: str, problem: str, expected: str) -> None:
        super().__init__(f"{text} {problem}; expected {expected}")
        self.text, self.problem, self.expected = text, problem, expected


def has_placeholder(word: str) -> bool:
    """Return whether any braces of the word are filled in."""
    return any("width" in match[1] for match in _BRACES.finditer(word))


def has_arithmetic(word: str) -> bool:
    """Return whether any braces of the word are filled in with more than the width itself."""
    return has_placeholder(word.replace("{width}", ""))


def filled(word: str, width: int) -> str:
    """Return the word with its placeholders as whole numbers; raise `Unfit` where one is not, or
    has another name than `width` in it."""
    for match in _NAMED.finditer(word) if not _CODE.search(word) else ():
        unknown = [name for name in _NAME.findall(match[1]) if name != "width"]
        if unknown and _is_arithmetic(match[1]):
            raise Unfit(match[0], f"has the unknown name {unknown[0]!r} in it", _EXPECTED)

    def number(match: re.Match[str]) -> str:
        if "width" not in match[1]:
            return match[0]
        result = value(match[1], width, match[0])
        if result.denominator != 1:
            gpus = f"{width} GPU" + ("s" if width != 1 else "")
            raise Unfit(
                match[0],
                f"is {_rounded(result)} at {gpus}",
                "a whole number: limit the job to GPU counts that divide it, or round down "
                f"with // (such as {match[0].replace('/', '//', 1)})",
            )
        return str(result.numerator)

    return _BRACES.sub(number, word)


def samples_per_step(text: str, width: int) -> float:
    """Return the value of an expression such as `16*{width}`; raise `Unfit` unless it is > 0."""
    result = value(text.replace("{", "(").replace("}", ")"), width, text)
    if not 0 < result < 10**15:
        raise Unfit(text, f"is {_rounded(result)} at width {width}", "a positive number")
    return float(result)


def _rounded(number: Fraction) -> str:
    return f"{float(number):.4g}" if abs(number) < 10**300 else "too large"


def value(expression: str, width: int, text: str = "") -> Fraction:
    """Evaluate numbers and `width` with + - * / // and parentheses, exactly."""
    text = text or expression
    if len(expression) > MOST_CHARACTERS:
        raise Unfit(f"{text[:20]}…", f"has more than {MOST_CHARACTERS} characters", _EXPECTED)
    try:
        return _value(ast.parse(expression.strip(), mode="eval").body, width)
    except ZeroDivisionError:
        raise Unfit(text, f"divides by zero at width {width}", _EXPECTED) from None
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        raise Unfit(text, "cannot be evaluated", _EXPECTED) from None


def _is_arithmetic(expression: str) -> bool:
    """Return whether it looks like arithmetic with numbers or the width, and is no name such as
    {train/val} and {cifar-10}."""
    try:
        nodes = list(ast.walk(ast.parse(expression.strip(), mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    signs = ast.Add | ast.Mult | ast.Div | ast.FloorDiv
    numbers = any(isinstance(node, ast.Constant) for node in nodes)
    widths = any(isinstance(node, ast.Name) and node.id == "width" for node in nodes)
    return widths or (numbers and any(isinstance(node, signs) for node in nodes))


def _value(node: ast.expr, width: int) -> Fraction:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return Fraction(str(number))
        case ast.Name(id="width"):
            return Fraction(width)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, width)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, width)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            return _OPERATIONS[type(op)](_value(left, width), _value(right, width))
    raise ValueError(ast.dump(node))
