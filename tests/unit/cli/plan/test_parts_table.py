"""Those who share a budget, as `boa budget show` lists them."""

import pytest

from boa.api.money import BudgetPart
from boa.cli.console import console
from boa.cli.plan.budget import parts_table


def part(name: str, above: str | None, most: float | None, lent: float) -> BudgetPart:
    return {
        "name": name,
        "above": above,
        "budget_per_hour": 2.5,
        "right_now_per_hour": 3.25,
        "max_per_hour": most,
        "lent_usd": lent,
        "spend_now_per_hour": 1.0,
        "lends": True,
        "classes": [],
        "users": [],
        "teams": [],
        "max_spend_per_hour": None,
        "borrows": True,
    }


def test_parts_stand_below_what_they_are_parts_of(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = parts_table([part("vision", None, 4.0, 12.0), part("eve", "vision", None, -3.0)])
    console().print(table)
    _, vision, eve = (line.rstrip() for line in capsys.readouterr().out.splitlines())
    assert vision.split() == ["vision", "$2.50/h", "$3.25/h", "$4.00/h", "$1.00/h", "$12.00"]
    assert eve.startswith("  eve")
    assert eve.split()[1:] == ["$2.50/h", "$3.25/h", "$1.00/h", "owes", "$3.00"]
