"""Budgets files: a tree as it is written, and every mistake named at its place."""

import copy
import re
from datetime import date
from typing import Any

import pytest

from boa.errors import InputError
from boa.formats.budgets import BUDGETS as FORMAT
from boa.formats.budgets import parse_budgets
from boa.formats.plain_yaml import load_yaml
from boa.model.budgets import Budget
from boa.model.terms import Terms
from documents import BUDGETS


def changed(**parts: Any) -> dict[str, Any]:
    document = copy.deepcopy(BUDGETS)
    document["parts"] |= parts
    return document


def test_a_tree_is_read_as_it_is_written() -> None:
    thesis = Budget(name="thesis", classes=("bert",))
    eve = Budget(name="eve", per_hour=5.0, parts=(thesis,))
    vision = Budget(
        name="vision",
        per_hour=15.0,
        max_per_hour=30.0,
        lends=False,
        parts=(eve,),
        classes=("resnet18",),
    )
    monthly = Terms(usd=730.5, each="month", rolls_over=True)
    quarterly = Terms(usd=2191.5, each="quarter")
    total = Terms(usd=500.0, each="once", until=date(2027, 3, 31))
    others = (
        Budget(name="language"),
        Budget(name="speech", per_hour=1.0, terms=monthly, max_spend=8.0),
        Budget(
            name="cats",
            per_hour=1.0,
            terms=quarterly,
            borrows=False,
            teams=("cats",),
        ),
        Budget(name="study", terms=total, users=("ana",)),
        Budget(name="guests"),
    )
    assert parse_budgets(BUDGETS) == Budget(name="lab", per_hour=40.0, parts=(vision, *others))


def test_every_field_of_a_part_is_in_the_document_that_is_tried() -> None:
    schema = FORMAT.schema()
    parts = schema["properties"]["parts"]["additionalProperties"]
    fields = next(one for one in (parts, *parts.get("anyOf", ())) if "properties" in one)
    said = {name for part in BUDGETS["parts"].values() for name in part or {}}
    assert said == set(fields["properties"])


def test_money_is_for_months_quarters_and_projects_too() -> None:
    document = {
        "budget_per_month": 7305,
        "parts": {
            "vision": {"budget_per_quarter": 2191.5, "rolls_over": True},
            "thesis": {"budget_total": 500, "until": "2027-03-31", "borrows": False},
            "speech": {"budget_per_hour": 2, "borrows": False, "max_spend_per_hour": 8},
        },
    }
    found = parse_budgets(document)
    assert found.per_hour == pytest.approx(10.0)
    assert found.terms == Terms(usd=7305.0, each="month")
    vision, thesis, speech = found.parts
    assert vision.per_hour == pytest.approx(1.0)
    assert vision.terms == Terms(usd=2191.5, each="quarter", rolls_over=True)
    assert thesis.terms == Terms(usd=500.0, each="once", until=date(2027, 3, 31))
    assert (thesis.per_hour, thesis.max_per_hour) == (0.0, None)
    assert (speech.max_per_hour, speech.max_spend) == (2.0, 8.0)


def test_every_class_has_one_payer_and_the_whole_pays_for_the_rest() -> None:
    tree = parse_budgets(BUDGETS).paying_for(("bert", "resnet18", "gpt2"))
    assert tree.payers == {"bert": "thesis", "resnet18": "vision", "gpt2": "lab"}


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            {"language": {"budget_per_hour": 26}},
            "parts: they have 43 USD per hour by right, all together; expected at most the 40 "
            "that they share",
        ),
        (
            {"vision": {"budget_per_hour": 15, "max_per_hour": 14}},
            "parts.vision.max_per_hour: got 14.0; expected at least what it has by right, 15 USD "
            "per hour",
        ),
        (
            {"language": {"classes": ["resnet18"]}},
            "parts.language.classes[0]: got 'resnet18'; expected a class that nobody else pays "
            "for: vision does",
        ),
        (
            {"language": {"classes": ["b" * 201]}},
            "parts.language.classes[0]: got 'bbb",
        ),
        (
            {"language": {"classes": ["bert\nresnet18"]}},
            "parts.language.classes[0]: got 'bert\\nresnet18'; expected 1 to 200 "
            "printable characters",
        ),
        (
            {"language": {"classes": [f"net{i}" for i in range(1001)]}},
            "net5', ...]; expected a list with 0 to 1,000 entries",
        ),
        (
            {"language": {"parts": {"eve": {}}}},
            "parts.language.parts.eve: got 'eve'; expected a name that no other part has",
        ),
        ({"lab": {}}, "parts.lab: got 'lab'; expected a name that no other part has"),
        (
            {"vision": {"max_per_hour": 10, "parts": {"eve": {"budget_per_hour": 11}}}},
            "parts.vision.parts: they have 11 USD per hour by right, all together; expected at "
            "most the 10",
        ),
        (
            {"vision": {"parts": {"a": {"parts": {"b": {"parts": {"c": {}}}}}}}},
            "parts.vision.parts.a.parts.b.parts: unknown field",
        ),
        (
            {"vision": {"budget_per_hour": 5, "budget_per_month": 300}},
            "parts.vision.budget_per_month: got 'budget_per_hour and budget_per_month'; expected "
            "one of them: budget_per_hour, budget_per_month, budget_per_quarter, budget_total",
        ),
        (
            {"vision": {"budget_total": 300}},
            "parts.vision.budget_total: got '300.0'; expected budget_total and until together",
        ),
        (
            {"vision": {"budget_total": 300, "until": "2027-02-30"}},
            "parts.vision.until: got 2027-02-30, which is on no calendar; expected a day of the "
            "years",
        ),
        (
            {"vision": {"budget_per_hour": 5, "rolls_over": True}},
            "parts.vision.rolls_over: got true; expected budget_per_month or budget_per_quarter",
        ),
        (
            {"vision": {"budget_per_month": 40 * 731}},
            "parts: they have 42.0274 USD per hour by right, all together",
        ),
        (
            {"vision": {"budget_per_hour": 5, "max_spend_per_hour": 4}},
            "parts.vision.max_spend_per_hour: got 4.0; expected at least what it has by right",
        ),
        (
            {"vision": {"budget_per_hour": 5, "max_per_hour": 6, "borrows": False}},
            "parts.vision.borrows: got 'max_per_hour and borrows: false'; expected one of them",
        ),
        ({"vision": {"borrows": False}}, "parts.vision.borrows: got false; expected money of its"),
        (
            {"vision": {"budget_per_hour": -1}},
            "parts.vision.budget_per_hour: got -1; expected a finite number of USD per hour >= 0",
        ),
        (
            {"vision": {"budget_total": 300, "until": date(9999, 12, 31)}},
            "parts.vision.until: got '9999-12-31'; expected a day of the years 1970 to 2200",
        ),
        (
            {"vision": {"budget_total": 300, "until": "0001-01-01"}},
            "parts.vision.until: got '0001-01-01'; expected a day of the years 1970 to 2200",
        ),
        (
            {"vision": 135},
            "parts.vision: got 135; expected a mapping such as {budget_per_hour: 15, classes: [",
        ),
        (
            {"vi\x1bsion": {}},
            "parts.vi\\x1bsion: got 'vi\\x1bsion'; expected 1 to 100 printable characters",
        ),
        ({"v" * 101: {}}, "expected 1 to 100 printable characters"),
        ({"vision": {"budget_per_hour": float("nan")}}, "parts.vision.budget_per_hour: got nan"),
    ],
)
def test_a_mistake_is_named_at_its_place(parts: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        parse_budgets(changed(**parts))


@pytest.mark.parametrize("parts", [135, ["vision"], "vision"])
def test_parts_that_are_no_mapping_are_told_what_one_is(parts: Any) -> None:
    with pytest.raises(InputError, match=r"a mapping from names to parts, such as \{vision"):
        parse_budgets({**BUDGETS, "parts": parts})


def test_a_day_on_no_calendar_is_named_as_yaml_has_it_too() -> None:
    file = "{budget_per_hour: 4, parts: {thesis: {budget_total: 3, until: 2027-02-31}}}"
    with pytest.raises(InputError, match="until: got 2027-02-31, which is on no calendar"):
        parse_budgets(load_yaml(file))


def test_a_total_alone_is_no_money_for_a_while() -> None:
    document = {"budget_total": 12, "until": "2027-02-01", "parts": {"a": {}}}
    with pytest.raises(InputError, match="budget_per_hour: missing beside budget_total; expected"):
        parse_budgets(document)


def test_a_whole_without_money_is_refused() -> None:
    with pytest.raises(InputError, match="budget_per_hour"):
        parse_budgets({**BUDGETS, "budget_per_hour": 0})
