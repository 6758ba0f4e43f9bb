"""Money and time read alike in Python and on the page: both are tested with the same cases."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import boa
from boa import amounts

CASES: dict[str, list[list[Any]]] = json.loads(
    (Path(__file__).parents[1] / "data" / "amounts.json").read_text("utf-8")
)
SOURCE = Path(boa.__file__).parent


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [(name, case[:-1], case[-1]) for name, cases in CASES.items() for case in cases],
)
def test_cases_shared_with_the_page(name: str, given: list[float], text: str) -> None:
    worded: Callable[..., str] = getattr(amounts, name)
    assert worded(*given) == text


@pytest.mark.parametrize("worded", [amounts.dollars, amounts.duration])
def test_what_is_no_number_is_a_dash(worded: Callable[[float], str]) -> None:
    assert worded(math.nan) == worded(math.inf) == "–"


@given(st.floats())
def test_every_float_has_words(value: float) -> None:
    assert amounts.rate(value).endswith("/h")
    assert amounts.duration(value)


@given(st.floats(1e-6, 1e9))
def test_money_keeps_two_digits_or_cents(amount: float) -> None:
    said = float(amounts.dollars(amount).replace(",", "").removeprefix("$"))
    assert abs(said - amount) <= (0.0501 * amount if amount < 0.1 else 0.0050001)


@given(st.floats(0.001, 1e7))
@example(0.0015)
@example(0.00995)
def test_a_duration_is_within_five_percent(seconds: float) -> None:
    lengths = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86400}
    found = re.findall(r"([\d.]+) (ms|s|min|h|d)\b", amounts.duration(seconds))
    assert math.isclose(sum(float(n) * lengths[of] for n, of in found), seconds, rel_tol=0.051)
