"""Checks that the files of the live service share: misspelt fields, names, the version."""

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any

from boa.errors import InputError
from boa.formats import checks

VERSION = 1
MAX_NAME = 200
CLASS_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._+-]*"
_SHOWN = 40
"""Of a field that nobody knows: a stranger's key may be as long as the whole request."""


def fields(
    value: Any, path: str, *, required: Collection[str] = (), optional: Collection[str] = ()
) -> Mapping[str, Any]:
    """A mapping with exactly these fields; of a misspelt one, the error says which is meant."""
    known = (*required, *optional)
    for key in value if isinstance(value, dict) else ():
        if key not in known:
            name = cut(key)
            near = get_close_matches(name, known, 1) or [k for k in known if k.startswith(name)]
            problem = f"unknown field, perhaps {near[0]} is meant" if near else "unknown field"
            expected = f"one of {', '.join(sorted(known))}"
            raise InputError(checks.joined(path, name), value[key], expected, problem)
    return checks.mapping(value, path, required=required, optional=optional)


def cut(key: object) -> str:
    """A stranger's key, short enough for an error to name."""
    text = str(key)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def check_version(document: Mapping[str, Any], path: str) -> None:
    """The version may be left out; any other than this one is refused."""
    found = document.get("version", VERSION)
    if found != VERSION or isinstance(found, bool):
        raise InputError(checks.joined(path, "version"), found, f"{VERSION}")


def printable(value: Any, path: str, most: int = MAX_NAME) -> str:
    """A short text on one line."""
    if (
        not isinstance(value, str)
        or not value.strip()
        or len(value) > most
        or not value.isprintable()
    ):
        raise InputError(path, value, f"1 to {most} printable characters")
    return value


def class_name(value: Any, path: str) -> str:
    """Classes are part of addresses, file names and charts: letters, digits and a few signs."""
    if (
        not isinstance(value, str)
        or len(value) > MAX_NAME
        or not re.fullmatch(CLASS_PATTERN, value)
    ):
        expected = "letters, digits and . _ + - (a letter or digit first)"
        raise InputError(path, value, f"1 to {MAX_NAME} {expected}")
    return value
