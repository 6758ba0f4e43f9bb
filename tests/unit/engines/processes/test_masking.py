"""Values of secrets in what a job prints."""

import base64
import re
import textwrap
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.engines.processes.masking import Mask, forms, masked

LETTERS = "ab*\n"
VALUES = st.lists(st.text(LETTERS, min_size=6, max_size=9), min_size=1, max_size=3)


def at_once(text: bytes, values: list[str]) -> bytes:
    stars = bytearray(text)
    for form in forms(values):
        for at in range(len(text)):
            if text.startswith(form, at):
                stars[at : at + len(form)] = re.sub(rb"[^\n]", b"*", form)
    return bytes(stars)


@given(values=VALUES, data=st.data())
def test_a_stream_is_masked_wherever_its_pieces_end(values: list[str], data: st.DataObject) -> None:
    parts = st.sampled_from([*LETTERS, *values, values[0][:4]])
    text = "".join(data.draw(st.lists(parts, max_size=12))).encode()
    mask, told, at = Mask(values), b"", 0
    while at < len(text):
        size = data.draw(st.integers(1, 8))
        told += mask.feed(text[at : at + size])
        at += size
    assert told + mask.rest() == at_once(text, values)


def test_a_value_becomes_as_many_stars_as_it_has_bytes() -> None:
    assert masked("token hunter2! said", ["hunter2!"]) == "token ******** said"
    assert masked("schlüssel", ["schlüssel"]) == "*" * len("schlüssel".encode())


def test_short_values_are_left_alone_or_every_other_word_would_be_stars() -> None:
    assert masked("a yes", ["a", "yes", ""]) == "a yes"


def test_lines_of_a_long_value_are_masked_one_by_one() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\n-----END KEY-----\n"
    assert "MIIEvQ" not in masked("line 2: MIIEvQIBADANBg", [key])


@pytest.mark.parametrize("before", ["", "x", "user:", "user:x"])
def test_a_value_inside_of_base64_is_masked_all_but_the_signs_it_shares(before: str) -> None:
    value = "hunter2-and-more"
    text = base64.b64encode(f"{before}{value}!".encode()).decode()
    told = masked(text, [value])
    assert told.count("*") >= len(value) * 4 / 3 - 3


def test_text_waits_only_where_a_value_may_have_begun() -> None:
    mask = Mask(["hunter2!"])
    assert mask.feed(b"loss 0.5\n") == b"loss 0.5\n"
    assert mask.feed(b"hunt") == b""
    assert mask.feed(b"ing\n") == b"hunting\n"


def _pem(data: bytes) -> bytes:
    return "\n".join(textwrap.wrap(base64.b64encode(data).decode(), 64)).encode()


@pytest.mark.parametrize("encode", [base64.encodebytes, _pem], ids=["base64", "pem"])
def test_a_long_value_is_found_in_base64_that_is_broken_into_lines(
    encode: Callable[[bytes], bytes],
) -> None:
    value = "-".join(f"part{n}of{n * 7919}" for n in range(12))
    for end in ("", "\n"):
        text = encode((value + end).encode())
        hidden = masked(text.decode(), [value])
        assert [len(line) for line in hidden.split("\n")] == [
            len(line) for line in text.decode().split("\n")
        ]
        assert len(hidden.replace("*", "").replace("\n", "")) <= 6, "what depends on what follows"
