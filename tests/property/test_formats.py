"""What a format's schema accepts its reader accepts, and the other way round, whatever is written.

A reader may refuse more, but only for what it says that no schema can say (`BeyondSchema`).
"""

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError, validators

from boa.formats.kinds import KINDS, format_of
from boa.formats.shapes import BeyondSchema, Shape, Wrong
from documents import DOCUMENTS

FORMATS = {kind: format_of(kind) for kind in KINDS}


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
    """As in ECMA 262, whose `$` is the end; Python's is also before a last newline."""
    exact = re.sub(r"\$$", r"\\Z", pattern)
    if isinstance(value, str) and not re.search(exact, value):
        yield ValidationError(f"{value!r} does not match {pattern}")


STRICT = validators.extend(Draft202012Validator, {"pattern": _pattern})
VALIDATORS = {kind: STRICT(found.schema()) for kind, found in FORMATS.items()}

TEXTS = st.text(max_size=6) | st.sampled_from(
    [" ", "a\n", "x" * 201, "x" * 9000, "auto", "h:1", "http://h", "a://b", "1", "local", "ami-1"]
)
SINGLE = (
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.sampled_from([1.0, 1.5, 1e-13, 1e16, 10**16, 70_000, 0.0, -1e-13, 1e300])
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
VALUES: st.SearchStrategy[Any] = (
    SINGLE | st.lists(SINGLE, max_size=3) | st.dictionaries(TEXTS, SINGLE, max_size=3)
)


def told(shape: Shape[Any]) -> set[str]:
    """Fields that are written and not read back."""
    names = {field.name for field in shape.fields if field.told}
    return names.union(*(told(field.shape) for field in shape.fields))


def places(document: Any, unread: set[str]) -> list[tuple[Any, Any]]:
    """Every collection in the document with each of its keys."""
    entries = document.items() if isinstance(document, dict) else enumerate(document)
    found: list[tuple[Any, Any]] = []
    for key, value in list(entries):
        if key in unread:
            continue
        found.append((document, key))
        if isinstance(value, dict | list):
            found.extend(places(value, unread))
    return found


def refusal(kind: str, document: Any) -> Wrong | None:
    try:
        FORMATS[kind].shape.take(document)
    except Wrong as wrong:
        return wrong
    return None


def agree(kind: str, document: Any) -> None:
    fits, wrong = VALIDATORS[kind].is_valid(document), refusal(kind, document)
    said = None if wrong is None else wrong.error("")
    if fits:
        assert wrong is None or isinstance(wrong, BeyondSchema), said
    else:
        assert wrong is not None
    assert said is None or (said.field and said.expected and len(str(said)) < 700)


@pytest.mark.parametrize("kind", KINDS)
def test_a_document_with_all_fields_is_accepted_by_schema_and_reader(kind: str) -> None:
    Draft202012Validator.check_schema(FORMATS[kind].schema())
    assert VALIDATORS[kind].is_valid(DOCUMENTS[kind])
    assert refusal(kind, DOCUMENTS[kind]) is None


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_schema_and_reader_agree_on_a_document_with_one_value_changed(
    kind: str, data: st.DataObject
) -> None:
    document = copy.deepcopy(DOCUMENTS[kind])
    where, key = data.draw(st.sampled_from(places(document, told(FORMATS[kind].shape))))
    where[key] = data.draw(VALUES)
    agree(kind, document)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_schema_and_reader_agree_on_a_document_with_a_field_more_or_less(
    kind: str, data: st.DataObject
) -> None:
    document = copy.deepcopy(DOCUMENTS[kind])
    where, key = data.draw(st.sampled_from(places(document, told(FORMATS[kind].shape))))
    if data.draw(st.booleans()) and isinstance(where, dict):
        where[data.draw(TEXTS)] = data.draw(VALUES)
    else:
        del where[key]
    agree(kind, document)


@pytest.mark.parametrize("kind", KINDS)
@given(document=VALUES)
def test_schema_and_reader_agree_on_what_is_no_such_document_at_all(
    kind: str, document: Any
) -> None:
    agree(kind, document)
