"""Shapes with the key `class`: a word of Python's, which can only be spelled this way."""

from typing import NotRequired

from typing_extensions import TypedDict

OfClass = TypedDict("OfClass", {"class": str})
PerhapsOfClass = TypedDict("PerhapsOfClass", {"class": NotRequired[str | None]})
