"""Parsers of words: each makes a value, or one clear error that names the option."""

import math
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, TypeVar

from boa.errors import InputError
from boa.units import GpuName

FIGURES = (".png", ".svg", ".pdf")
"""Pictures that do not move."""
PLOT_SUFFIXES = (*FIGURES, ".html")

_T = TypeVar("_T")


def number(option: str, expected: str, *, zero: bool = False) -> Callable[[Any], float]:
    """A parser of finite numbers > 0 (or >= 0)."""
    return between(option, 0, math.inf, expected, above=not zero, below=True)


def between(
    option: str, low: float, high: float, expected: str, *, above: bool = False, below: bool = False
) -> Callable[[Any], float]:
    """A parser of numbers from `low` to `high`; `above`, `below`: these themselves excluded."""

    def parse(text: Any) -> float:
        try:
            value = float(text)
        except ValueError:
            raise InputError(option, text, expected) from None
        inside = low <= value <= high  # not so for nan
        if not inside or (above and value == low) or (below and value == high):
            raise InputError(option, text, expected)
        return value

    return parse


def whole(option: str, least: int | None = None) -> Callable[[Any], int]:
    expected = "a whole number" if least is None else f"a whole number >= {least}"

    def parse(text: Any) -> int:
        try:
            value = int(text)
        except ValueError:
            raise InputError(option, text, expected) from None
        if least is not None and value < least:
            raise InputError(option, text, expected)
        return value

    return parse


def one_of(option: str, choices: Collection[str]) -> Callable[[Any], str]:
    def parse(text: Any) -> str:
        if text not in choices:
            raise InputError(option, text, f"one of {', '.join(choices)}")
        return str(text)

    return parse


SPANS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
"""Seconds by unit."""


def span(option: str) -> Callable[[Any], float]:
    """A parser of spans of time: 30d."""
    expected = "a span of time, such as 90m, 12h, 30d or 8w"

    def parse(text: Any) -> float:
        number = str(text).rstrip("".join(SPANS))
        unit = str(text)[len(number) :]
        if unit not in SPANS:
            raise InputError(option, text, expected)
        return between(option, 0, math.inf, expected, above=True, below=True)(number) * SPANS[unit]

    return parse


def money(option: str) -> Callable[[Any], float]:
    return number(option, "a finite number of USD per hour > 0, such as 40")


def picture(option: str, suffixes: Collection[str] = PLOT_SUFFIXES) -> Callable[[Any], Path]:
    """A parser of files whose suffix says which kind of picture it is to be."""

    def parse(text: Any) -> Path:
        path = Path(text)
        if path.suffix.lower() not in suffixes:
            raise InputError(option, str(text), f"a file ending in {', '.join(suffixes)}")
        return path

    return parse


def folder(option: str) -> Callable[[Any], Path]:
    """A parser of folders: no text at all would be the one we are in, which nobody means."""

    def parse(text: Any) -> Path:
        if not str(text):
            raise InputError(option, text, "a folder's name")
        return Path(text)

    return parse


def listed(option: str, each: Callable[[Any], _T], expected: str) -> Callable[[Any], list[_T]]:
    """A parser of values between commas, each once."""

    def parse(text: Any) -> list[_T]:
        parts = [part.strip() for part in str(text).split(",")]
        if not all(parts):
            raise InputError(option, text, expected)
        values = [each(part) for part in parts]
        if len(set(map(str, values))) != len(values):
            raise InputError(option, text, f"{expected}, each once")
        return values

    return parse


def pairs(option: str, given: Iterable[str], example: str) -> dict[str, str]:
    """By the key of each K=V; the last of several counts."""
    found = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(option, text, f"K=V, such as {example}")
        found[key] = value
    return found


def by_type(option: str, each: Callable[[Any], _T], expected: str) -> Callable[[Any], Any]:
    """A parser of T4=…,A100=…, each GPU type once."""

    def parse(text: Any) -> dict[GpuName, _T]:
        found: dict[GpuName, _T] = {}
        for part in str(text).split(","):
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals or not name or not value or name in found:
                raise InputError(option, text, f"{expected}, each type once")
            try:
                found[name] = each(value)
            except InputError as wrong:
                raise InputError(f"{option} {name}", wrong.value, wrong.expected) from None
        return found

    return parse
