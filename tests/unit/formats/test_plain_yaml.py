"""YAML with tables of numbers, which JSON reads: the same values, and the same errors."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from boa.formats.plain_yaml import _load_events, _NotPlainError, _without_tables, load_yaml

TEXTS = [
    "{table: {1: 1, 2: 1.9, 4: 3.4e0}}",
    "a: {1: -1, 2: 1e-6}\nb: [{1: 2}, {3: 4}]",
    "{1: 010, 2: 1_000, 3: 1.}",
    "{1: 2, 1: 3}",
    "{1: 2,3: 4}",
    "{1:2}",
    "{1, 2: 3}",
    "{1: 2: 3, 4}",
    "{2001-01-01: 1}",
    "{1: 1:30}",
    "'{1: 2}'",
    '"x {1: 2} y"',
    "x {1: 2} y",
    "a: |\n  {1: 2}\n",
    "a: >\n  text {1: 2}\n",
    "a: b\n  {1: 2}",
    "# {1: 2}\na: {1: 2} # {3: 4}",
    "{1: 2}: x",
    "? {1: 2}\n: x",
    "a: &t {1: 2}\nb: *t",
    "a: !!map {1: 2}",
    "{1: 2}abc",
    "a{1: 2}",
    "a:{1: 2}",
    "{1: 2} {3: 4}",
    "- {1: 2}:3",
    "{a: {1: 2}, a: 3}",
    "\ue0000\ue000: {1: 2}",
    "{1: 1e400, 2: 123456789012345678901234567890}",
    "{1: 2}\n---\n{3: 4}",
    "[{1: 2}, ",
]


def read(text: str, load: Any) -> object:
    """The value with its types, or the words of the error."""
    try:
        return repr(load(text))
    except (yaml.YAMLError, ValueError) as wrong:
        return type(wrong), str(wrong)


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_means_what_it_means_to_yaml(text: str) -> None:
    try:
        expected = read(text, lambda words: _load_events(words, {}))
    except _NotPlainError:
        expected = read(text, lambda words: load_yaml(f"{words}\n# \ue000"))
    assert read(text, load_yaml) == expected


def test_tables_are_kept_from_the_parser() -> None:
    short, tables = _without_tables("a: {table: {1: 1, 2: 1.5}, scale: 2}")
    assert list(tables.values()) == [{1: 1, 2: 1.5}]
    assert "1.5" not in short


NUMBERS = st.one_of(st.integers(-99, 10**6), st.floats(allow_nan=False, allow_infinity=False))


@given(st.dictionaries(st.integers(0, 99), NUMBERS, min_size=1))
def test_a_table_is_read_as_it_was_written(table: dict[int, float]) -> None:
    text = ", ".join(f"{width}: {rate!r}" for width, rate in table.items())
    assert repr(load_yaml(f"t: {{{text}}}")) == repr({"t": table})
