"""Shapes that several formats share: names, classes, the version."""

from typing import Any

from boa.formats.shapes import Field, Shape, exactly, text

VERSION = 1
MAX_NAME = 200


def is_unicode(value: str) -> bool:
    """JSON can spell half a surrogate pair, which no file or terminal can write."""
    return not any("\ud800" <= c <= "\udfff" for c in value)


NAME = text("a non-empty string of Unicode text", fits=is_unicode)
CLASS = text(
    f"1 to {MAX_NAME} letters, digits and . _ + - (a letter or digit first)",
    pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$",
    most=MAX_NAME,
    words=f"1 to {MAX_NAME} letters, digits and `. _ + -`, none of those first",
)
"""Classes are part of addresses, file names and charts."""
VERSION_1 = Field(
    "version", exactly(VERSION), "The version of this format.", default=VERSION, to=None
)


def printable(most: int = MAX_NAME) -> Shape[str]:
    """A short text on one line."""
    return text(
        f"1 to {most} printable characters",
        pattern=r"^(?=.*\S)[^\x00-\x1f\x7f]+$",
        most=most,
        fits=str.isprintable,
        words=f"text of up to {most:,} characters",
    )


LINE = printable()
LABEL = printable(100)
"""A name that people give and that tables have a column for: of a part, of a period."""
YEARS = range(1970, 2201)
"""Years of days that a file may name: clocks of every zone can tell them."""
PATH = r"^(?=[\s\S]*\S)[^\x00]*$"
"""Any path, as a pattern."""
FILE = text("a file", pattern=PATH, words="path, relative to this file")


def class_name(value: Any, path: str) -> str:
    return CLASS.read(value, path)
