"""Values that a file may hold, declared once: each shape reads, describes itself in JSON Schema and
in words. Here are the single values; `boa.formats.containers` has those made of others.

`take` raises `Wrong` without knowing where in the document it is: whatever holds the value adds the
step on the way out, so that a value which fits costs no path.
"""

import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from math import inf
from typing import Any, Generic, TypeAlias, TypeVar

from boa.errors import InputError

Schema: TypeAlias = dict[str, Any]
T = TypeVar("T")
S = TypeVar("S")
T_co = TypeVar("T_co", covariant=True)

TINY, HUGE = 1e-12, 1e15
"""Bounds of numbers other than zero: far beyond any use, far within what floats can add up."""
LEFT_OUT: Any = object()
"""In place of a default or an example that there is none of."""
_SHOWN = 40
"""Characters shown of a key: a stranger's may be as long as the whole request."""


class Wrong(Exception):
    """A value that its schema refuses, what would be accepted, and the steps that led to it."""

    def __init__(self, value: object, expected: str, problem: str = "", at: str = "") -> None:
        super().__init__(expected)
        self.value, self.expected, self.problem = value, expected, problem
        self.steps = [at]

    def within(self, step: str) -> "Wrong":
        self.steps.append(step)
        return self

    def error(self, path: str) -> InputError:
        field = path + "".join(reversed(self.steps))
        field = field if path else field.removeprefix(".")
        return InputError(field or "the file", self.value, self.expected, self.problem)


class BeyondSchema(Wrong):
    """A value that is refused for something that no schema can say."""


@dataclass(frozen=True, slots=True)
class Shape(Generic[T_co]):
    """A kind of value: how it is read, as JSON Schema, and in a few words."""

    take: Callable[[Any], T_co]
    schema: Schema
    words: str
    fields: "tuple[Field, ...]" = ()
    """Those of an object, or of the objects that a list or a mapping holds."""
    step: str = ""
    """From the value to those objects: `[]` through a list, `.NAME` through a mapping."""

    def read(self, value: Any, path: str = "") -> T_co:
        """The value, checked; the error names its path."""
        try:
            return self.take(value)
        except Wrong as wrong:
            raise wrong.error(path) from None


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an object."""

    name: str
    shape: Shape[Any]
    meaning: str
    _: KW_ONLY
    required: bool = False
    default: Any = LEFT_OUT
    otherwise: str = ""
    """Words for its absence, where no default says what goes then."""
    example: Any = LEFT_OUT
    to: str | None = ""
    """Name in the value that is made, if not its own; None: not kept."""
    told: bool = False
    """Written for people and not read back."""


def needed(
    name: str, shape: Shape[Any], meaning: str, *, example: Any = LEFT_OUT, to: str | None = ""
) -> Field:
    """A field that may not be left out."""
    return Field(name, shape, meaning, required=True, example=example, to=to)


@dataclass(frozen=True, slots=True)
class Format(Generic[T_co]):
    """Declaration of a whole file, or of the body of a request."""

    title: str
    about: str
    shape: Shape[T_co]

    def schema(self) -> Schema:
        """JSON Schema, draft 2020-12; the caller's own, to change."""
        draft = "https://json-schema.org/draft/2020-12/schema"
        about = {"$schema": draft, "title": self.title, "description": self.about}
        return about | deepcopy(self.shape.schema)


def step(key: object) -> str:
    return f".{cut(key)}"


def cut(key: object) -> str:
    """A key, short enough for an error to name, and such that any terminal and answer can."""
    text = str(key)
    text = text if text.isprintable() else text[:_SHOWN].encode("unicode_escape").decode()
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def number(
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    of: str = "",
) -> Shape[float]:
    """A finite number within bounds; `above` is exclusive. `of`: its unit, as an error names it."""
    low = next((bound for bound in (above, least) if bound is not None), -inf)
    high = inf if most is None else most
    bounds = {">": above, ">=": least, "<=": most}
    said = [f"{sign} {bound:g}" for sign, bound in bounds.items() if bound is not None]
    what = f"a finite number of {of}" if of else "a finite number"
    expected = " and ".join([" ".join([what, *said[:1]]), *said[1:]])

    def take(value: Any) -> float:
        kind = type(value)
        if (kind is float or kind is int) and low <= value <= high and value != above:
            if value == 0 or TINY <= abs(value) <= HUGE:
                return float(value)
            size = f"{expected}, of a size between {TINY:g} and {HUGE:g}"
            raise BeyondSchema(value, size)
        raise Wrong(value, expected)

    limits = {"exclusiveMinimum": above, "minimum": least, "maximum": most}
    return Shape(take, _with({"type": "number"}, **limits), _range("number", above, least, most))


def whole(*, least: int = 1, most: int | None = None) -> Shape[int]:
    """A whole number within bounds; 3.0 is one, as in JSON Schema."""
    limit = "" if most is None else f" and <= {most}"
    high = inf if most is None else most

    def take(value: Any) -> int:
        number = int(value) if type(value) is float and value.is_integer() else value
        if type(number) is int and least <= number <= high:
            return number
        raise Wrong(value, f"a whole number >= {least}{limit}")

    schema = _with({"type": "integer", "minimum": least}, maximum=most)
    return Shape(take, schema, _range("whole number", None, least, most))


def text(
    expected: str | Callable[[Any], str],
    *,
    pattern: str = r"\S",
    most: int | None = None,
    fits: Callable[[str], bool] | None = None,
    words: str = "text",
) -> Shape[str]:
    """A string. `pattern` may be found anywhere in it, as in JSON Schema, unless `^` and `$` bound
    it; `fits` is for what a pattern cannot say."""
    # Python's `$` would let a last newline pass; JSON Schema's does not.
    found = re.compile(re.sub(r"\$$", r"\\Z", pattern)).search
    longest = inf if most is None else most

    def refused(value: Any, kind: type[Wrong]) -> Wrong:
        return kind(value, expected if isinstance(expected, str) else expected(value))

    def take(value: Any) -> str:
        if not isinstance(value, str) or len(value) > longest or not found(value):
            raise refused(value, Wrong)
        if fits is not None and not fits(value):
            raise refused(value, BeyondSchema)
        return value

    return Shape(take, _with({"type": "string"}, maxLength=most, pattern=pattern or None), words)


def choice(options: Sequence[str], *, expected: str = "") -> Shape[str]:
    expected = expected or f"one of {', '.join(options)}"

    def take(value: Any) -> str:
        if value not in options:
            raise Wrong(value, expected)
        return str(value)

    quoted = [f"`{option}`" for option in options]
    words = " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
    return Shape(take, {"enum": list(options)}, words)


def exactly(constant: int) -> Shape[int]:
    def take(value: Any) -> int:
        if value != constant or isinstance(value, bool):
            raise Wrong(value, f"{constant}")
        return constant

    return Shape(take, {"const": constant}, f"{constant}")


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Wrong(value, "true or false")
    return value


FLAG = Shape(_flag, {"type": "boolean"}, "`true` or `false`")


def then(shape: Shape[S], make: Callable[[S], T]) -> Shape[T]:
    """The value of a shape, made into another; `make` may refuse it."""
    take = shape.take
    return Shape(
        lambda value: make(take(value)), shape.schema, shape.words, shape.fields, shape.step
    )


def nullable(shape: Shape[T]) -> Shape[T | None]:
    """The value, or nothing said."""
    take = shape.take
    return _or_null(shape, lambda value: None if value is None else take(value))


def or_empty(shape: Shape[T]) -> Shape[T]:
    """A mapping; nothing said is an empty one."""
    take = shape.take
    return _or_null(shape, lambda value: take({} if value is None else value))


def _or_null(shape: Shape[Any], take: Callable[[Any], T]) -> Shape[T]:
    schema = {**shape.schema, "type": [shape.schema["type"], "null"]}
    return Shape(take, schema, shape.words, shape.fields, shape.step)


def _with(schema: Schema, **limits: Any) -> Schema:
    return schema | {name: limit for name, limit in limits.items() if limit is not None}


def _range(what: str, above: float | None, least: float | None, most: float | None) -> str:
    """Such as `whole number 1 to 10,000`."""
    top = "" if most is None else _figure(most)
    if least is not None:
        return f"{what} {_figure(least)} to {top}" if top else f"{what} ≥ {_figure(least)}"
    if above is not None:
        return f"{what} > {_figure(above)}" + (f", up to {top}" if top else "")
    return f"{what} up to {top}" if top else what


def _figure(value: float) -> str:
    return (
        f"{value:,.0f}"
        if value == int(value) and abs(value) < 1e12
        else f"{value:g}".replace("e+", "e")
    )
