"""Small checks on untyped input. Each takes the path to the field, for its error to name."""

from collections.abc import Collection, Mapping
from typing import Any

from boa.errors import InputError

TINY, HUGE = 1e-12, 1e15
"""What a number may be, other than zero: far beyond any use, far within what floats can add up."""


def mapping(
    value: Any, path: str, *, required: Collection[str] = (), optional: Collection[str] = ()
) -> Mapping[str, Any]:
    """A mapping with exactly these fields."""
    what = path or "the file"
    if not isinstance(value, dict):
        raise InputError(what, value, "a mapping")
    known = [*required, *optional]
    for key in value:
        if key not in known:
            expected = f"one of {_list(known)}"
            raise InputError(joined(path, key), value[key], expected, "unknown field")
    for key in required:
        if key not in value:
            fields = f"the fields {_list(required)}"
            raise InputError(joined(path, key), None, fields, "missing")
    return value


def named(value: Any, path: str) -> Mapping[str, Any]:
    """A mapping from free names to anything, not empty."""
    if not isinstance(value, dict) or not value:
        raise InputError(path, value, "a mapping with at least one entry")
    for key in value:
        text(key, path)
    return value


def sequence(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise InputError(path, value, "a list with at least one entry")
    return value


def text(value: Any, path: str) -> str:
    if not isinstance(value, str) or not value.strip() or not _is_unicode(value):
        raise InputError(path, value, "a non-empty string of Unicode text")
    return value


def _is_unicode(value: str) -> bool:
    """JSON can spell half a surrogate pair, which no file or terminal can write."""
    return not any("\ud800" <= c <= "\udfff" for c in value)


def number(
    value: Any,
    path: str,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
) -> float:
    """A finite number within bounds; `above` is exclusive."""
    if (
        type(value) in (int, float)
        and (value == 0 or TINY <= abs(value) <= HUGE)
        and (above is None or value > above)
        and (least is None or value >= least)
        and (most is None or value <= most)
    ):
        return float(value)
    bounds = [
        *([f"> {above:g}"] if above is not None else []),
        *([f">= {least:g}"] if least is not None else []),
        *([f"<= {most:g}"] if most is not None else []),
    ]
    expected = " and ".join([" ".join(["a finite number", *bounds[:1]]), *bounds[1:]])
    if type(value) in (int, float) and value != 0:
        small_or_large = abs(value) < TINY or abs(value) > HUGE
        expected += f", of a size between {TINY:g} and {HUGE:g}" if small_or_large else ""
    raise InputError(path, value, expected)


def whole(value: Any, path: str, *, least: int = 1, most: int | None = None) -> int:
    limit = "" if most is None else f" and <= {most}"
    if type(value) is not int or value < least or (most is not None and value > most):
        raise InputError(path, value, f"a whole number >= {least}{limit}")
    return value


def choice(value: Any, path: str, options: Collection[str]) -> str:
    if value not in options:
        raise InputError(path, value, f"one of {_list(options)}")
    return str(value)


def joined(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _list(names: Collection[str]) -> str:
    return ", ".join(sorted(names))
