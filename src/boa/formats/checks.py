"""Small checks for what is read by hand: each takes the path that its error is to name."""

from collections.abc import Collection, Mapping
from typing import Any

from boa.errors import InputError
from boa.formats import parts, shapes
from boa.formats.containers import as_given, object_of
from boa.formats.shapes import HUGE, TINY, Field, Shape

__all__ = ["HUGE", "TINY", "choice", "mapping", "number", "sequence", "text", "whole"]

_ANYTHING: Shape[Any] = Shape(lambda value: value, {}, "anything")


def mapping(
    value: Any, path: str, *, required: Collection[str] = (), optional: Collection[str] = ()
) -> Mapping[str, Any]:
    """A mapping with exactly these fields."""
    needed = [Field(name, _ANYTHING, "", required=True) for name in required]
    others = [Field(name, _ANYTHING, "") for name in optional]
    object_of(*needed, *others, make=as_given).read(value, path)
    return dict(value)


def sequence(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise InputError(path, value, "a list with at least one entry")
    return value


def text(value: Any, path: str) -> str:
    return parts.NAME.read(value, path)


def number(
    value: Any,
    path: str,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
) -> float:
    """A finite number within bounds; `above` is exclusive."""
    return shapes.number(above=above, least=least, most=most).read(value, path)


def whole(value: Any, path: str, *, least: int = 1, most: int | None = None) -> int:
    return shapes.whole(least=least, most=most).read(value, path)


def choice(value: Any, path: str, options: Collection[str]) -> str:
    return shapes.choice(sorted(options)).read(value, path)
