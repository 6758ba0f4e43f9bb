"""`boa plan --budgets`: what bounds a part bounds its plan, and the table says what each gains."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boa.cli import main

WORKLOAD = """\
version: 1
gpu_types: {T4: {price: 2.0}}
classes:
  - {name: a, arrivals_per_hour: 4, epochs: [{work_s: 600, speedup: {T4: {amdahl: 0.9}}}]}
  - {name: b, arrivals_per_hour: 4, epochs: [{work_s: 600, speedup: {T4: {amdahl: 0.9}}}]}
"""
Plan = Callable[..., tuple[int, str, str]]


@pytest.fixture
def plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Plan:
    """Runs `boa plan` with a budgets file of this text; its exit code, and what it said."""

    def run(budgets: str, *flags: str) -> tuple[int, str, str]:
        workload, file = tmp_path / "jobs.yaml", tmp_path / "teams.yaml"
        workload.write_text(WORKLOAD)
        file.write_text(budgets)
        code = main(["plan", str(workload), "--budgets", str(file), *flags])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def found(plan: Plan, part: str) -> dict[str, Any]:
    code, out, err = plan(f"{{budget_per_hour: 8, parts: {{one: {part}}}}}", "--json")
    assert code == 0, err
    _, one = json.loads(out)["budgets"]
    return dict(one)


def test_a_part_that_borrows_has_what_others_leave(plan: Plan) -> None:
    assert found(plan, "{budget_per_month: 1461, classes: [a]}")["spend_per_hour"] > 2.1


@pytest.mark.parametrize(
    "part",
    [
        "{budget_per_month: 1461, borrows: false, classes: [a]}",
        "{budget_per_quarter: 4383, borrows: false, classes: [a]}",
        "{max_spend_per_hour: 2, classes: [a]}",
        "{max_spend_per_hour: 2, max_per_hour: 3, classes: [a]}",
        "{max_spend_per_hour: 3, max_per_hour: 2, classes: [a]}",
    ],
)
def test_a_part_spends_no_more_on_average_than_its_own_money_or_its_hard_cap(
    plan: Plan, part: str
) -> None:
    one = found(plan, part)
    assert one["max_per_hour"] == pytest.approx(2.0)
    assert one["spend_per_hour"] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ("{max_spend_per_hour: 1, classes: [a]}", "max_spend_per_hour"),
        ("{max_per_hour: 1, classes: [a]}", "max_per_hour"),
        ("{budget_per_month: 730.5, borrows: false, classes: [a]}", "borrows: false"),
    ],
)
def test_a_limit_below_what_jobs_need_is_an_error_that_names_its_field(
    plan: Plan, part: str, field: str
) -> None:
    code, _, err = plan(f"{{budget_per_hour: 8, parts: {{one: {part}}}}}")
    assert (code, err.count("\n")) == (3, 1)
    assert err.startswith(
        f"error: one: a limit ({field}) of 1 per hour cannot keep up with its jobs: the cheapest "
        "plan spends 1.33"
    )


def test_rights_that_leave_others_too_little_are_an_error_in_usd_per_hour(plan: Plan) -> None:
    code, _, err = plan("{budget_per_hour: 3, parts: {one: {budget_per_hour: 2, classes: [a]}}}")
    assert code == 2
    assert "all: budget_per_hour: got '3 USD per hour'; expected at least 3.33" in err
    assert "USD per hour: what its parts have by right, and its other jobs need" in err


def test_a_project_that_may_not_borrow_has_no_average_to_plan_with(plan: Plan) -> None:
    code, _, err = plan(
        "{budget_per_hour: 8, parts: {thesis: {budget_total: 500, until: 2027-03-31, "
        "borrows: false, classes: [a]}}}"
    )
    assert (code, err.count("\n")) == (2, 1)
    assert "thesis: borrows: got 'false'; expected true, or money by the hour" in err


def test_who_wants_no_more_gains_nothing_by_one_more_dollar(plan: Plan) -> None:
    budgets = (
        "{budget_per_hour: 40, parts: {rich: {classes: [a]}, "
        "poor: {max_per_hour: 2, classes: [b]}}}"
    )
    _, out, _ = plan(budgets)
    rich, poor = (row(out, name) for name in ("rich", "poor"))
    assert rich.endswith("nothing")
    assert not poor.endswith("nothing")
    _, out, _ = plan(budgets, "--json")
    prices = {one["name"]: one["shadow_price_s"] for one in json.loads(out)["budgets"]}
    assert prices["rich"] == 0 < prices["poor"]


def test_who_has_all_it_wants_gains_nothing_where_others_would(plan: Plan) -> None:
    """The price above is not its own."""
    _, out, _ = plan(
        "{budget_per_hour: 15, parts: {rich: {budget_per_hour: 11, classes: [a]}}}", "--json"
    )
    whole, rich = json.loads(out)["budgets"]
    assert rich["spend_per_hour"] == pytest.approx(rich["wanted_per_hour"])
    assert whole["shadow_price_s"] > 0 == rich["shadow_price_s"]


def test_the_table_has_a_row_for_classes_of_no_part(plan: Plan) -> None:
    _, out, _ = plan("{budget_per_hour: 8, parts: {one: {max_per_hour: 2, classes: [a]}}}")
    assert row(out, "in no part").split()[3] == "$6.00/h"


def test_there_is_no_such_row_where_every_class_has_its_part(plan: Plan) -> None:
    _, out, _ = plan("{budget_per_hour: 8, parts: {one: {classes: [a]}, two: {classes: [b]}}}")
    assert "in no part" not in out


def row(out: str, name: str) -> str:
    """The line of a table that begins with a name."""
    return next(line.strip() for line in out.splitlines() if line.strip().startswith(name))
