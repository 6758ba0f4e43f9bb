"""A month's statement over the API, as a file and as a page; and money by whose it is."""

import csv
import io
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from boa.model.budgets import Budget
from boa.model.notices import NotifyTarget
from boa.scheduler.notices import Notices
from boa.server.render.statement_files import HEAD, harmless
from boa.server.render.statement_page import as_page
from boa.server.render.statements import month_from
from fakes import NOW, FakeService

SEPTEMBER, OCTOBER = 1_788_220_800.0, 1_790_812_800.0
TREE = Budget(
    name="lab",
    per_hour=14.0,
    parts=(
        Budget(
            name="vision",
            per_hour=6.0,
            parts=(Budget(name="cats", per_hour=2.0, classes=("resnet18",)),),
        ),
        Budget(name="language", per_hour=4.0, classes=("bert",)),
    ),
)


@pytest.fixture
def service(tmp_path: Path) -> FakeService:
    """Two jobs on a node of four GPUs at $1 each, for an hour of which it booted 100 seconds."""
    service = FakeService(tmp_path)
    first = service.submit(name="first", tags={"project": "zoo"})
    second = service.submit("bert")
    control = service.control
    for job, gpus, owner, team in ((first, 2, "alice", "v"), (second, 1, "=bob()", "l")):
        control.run(job, gpus=gpus)
        control.put(replace(control.active[job], owner=owner, team=team))
    control.money = replace(control.money, sharing=TREE)
    return service


def test_a_statement_says_who_spent_what_and_adds_up_to_the_bill(service: FakeService) -> None:
    found = service.get("statement")
    assert (found["month"], found["days_in_month"], found["complete"]) == ("2026-09", 30, False)
    assert (found["since"], found["until"]) == (SEPTEMBER, NOW)
    assert found["total_usd"] == 4.0
    assert found["booting_usd"] == 0.11, "four GPUs for 100 seconds"
    assert found["held_usd"] == pytest.approx(2.92)
    assert [
        (one["team"], one["user"], one["job_class"], one["payer"]) for one in found["lines"]
    ] == [
        ("v", "alice", "resnet18", "cats"),
        ("l", "=bob()", "bert", "language"),
    ]
    for key in ("lines", "by_payer", "by_team", "by_user", "by_class", "by_day"):
        for money in ("total_usd", "held_usd", "idle_usd", "booting_usd"):
            assert round(100 * sum(one[money] for one in found[key])) == round(100 * found[money])
    assert found["jobs"] == 2


def test_a_statement_names_the_kinds_of_tags_that_its_jobs_have(service: FakeService) -> None:
    assert service.get("statement")["tag_kinds"] == ["project"]


def test_a_statement_names_the_percents_at_which_anybody_is_told(service: FakeService) -> None:
    assert service.get("statement")["alerts"] == [50.0, 80.0, 100.0], "nobody is told"
    ops = NotifyTarget(name="ops", kind="slack", alerts=(90.0, 50.0))
    lab = NotifyTarget(name="lab", kind="slack", tell=("spent",), alerts=(99.5, 50.0))
    ends = NotifyTarget(name="ends", kind="slack", tell=("ended",), alerts=(10.0,))
    service.control.notices = Notices((ops, lab, ends), None)
    other = service.get("statement", params={"month": "2026-08"})
    assert other["alerts"] == [50.0, 90.0, 99.5]


def test_what_nobody_held_is_shared_out_by_what_was_held(service: FakeService) -> None:
    first, second = service.get("statement")["lines"]
    assert first["idle_usd"] == pytest.approx(2 * second["idle_usd"], abs=0.02)
    assert "in proportion to the dollars that jobs held" in service.get("statement")["rule"]


def test_a_part_of_the_budget_pays_for_the_parts_within_it(service: FakeService) -> None:
    parts = {one["name"]: one for one in service.get("statement")["by_payer"]}
    assert list(parts) == ["lab", "vision", "cats", "language"]
    assert parts["lab"]["with_parts_usd"] == 4.0
    assert parts["lab"]["total_usd"] == 0.0
    assert parts["vision"]["with_parts_usd"] == parts["cats"]["total_usd"] > 0
    assert parts["cats"]["above"] == "vision"
    assert parts["vision"]["budget_usd"] == pytest.approx(6.0 * 720)


@pytest.mark.parametrize(("month", "days"), [("2024-02", 29), ("2026-02", 28), ("2025-12", 31)])
def test_months_have_the_days_that_they_have(service: FakeService, month: str, days: int) -> None:
    found = service.get("statement", params={"month": month})
    assert (found["days_in_month"], found["complete"]) == (days, True)
    assert found["until"] - found["since"] == days * 86_400
    assert found["total_usd"] == 0.0
    assert found["lines"] == []


@pytest.mark.parametrize("month", ["2026-10", "2026-13", "2026", "26-09", "0000-01", "2026-9 "])
def test_a_month_that_is_none_or_has_not_begun_is_refused(service: FakeService, month: str) -> None:
    answer = service.ask("GET", "/api/v1/statement", params={"month": month})
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "month"
    assert "a month that has begun, such as 2026-11" in answer.json()["error"]["message"]


def test_the_last_second_of_a_month_is_its_own() -> None:
    assert month_from(None, OCTOBER - 1) == (SEPTEMBER, OCTOBER)
    assert month_from(None, OCTOBER)[0] == OCTOBER


def asked(service: FakeService, format: str) -> Any:
    answer = service.ask("GET", "/api/v1/statement", params={"format": format})
    assert answer.status_code == 200
    return answer


def test_a_spreadsheet_has_a_row_per_line_and_takes_no_name_for_a_formula(
    service: FakeService,
) -> None:
    answer = asked(service, "csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert 'filename="statement-2026-09.csv"' in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert tuple(rows[0]) == HEAD
    assert [row["user"] for row in rows] == ["alice", "'=bob()"]
    assert {row["state"] for row in rows} == {"in progress"}
    assert round(sum(100 * float(row["total_usd"]) for row in rows)) == 400


@pytest.mark.parametrize(
    "name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "|x", "%x"]
)
def test_a_name_that_begins_like_a_formula_is_text(name: str) -> None:
    assert harmless(name) == f"'{name}"


@pytest.mark.parametrize("name", ["", "alice", "a=b", "x-1", "4711"])
def test_other_names_stay_as_they_are(name: str) -> None:
    assert harmless(name) == name


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]


def test_the_page_has_no_scripts_fetches_nothing_and_escapes_every_name(
    service: FakeService,
) -> None:
    control = service.control
    control.put(replace(control.active["1"], owner="<script>x</script>", team="a&b"))
    answer = asked(service, "html")
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    tags = Tags()
    tags.feed(answer.text)
    assert not {"script", "img", "link", "iframe"} & set(tags.names)
    assert tags.links == []
    assert "&lt;script&gt;x&lt;/script&gt;" in answer.text
    assert "a&amp;b" in answer.text
    assert "url(" not in answer.text
    assert "in progress" in answer.text
    assert "@media print" in answer.text


def test_a_month_without_any_charge_is_a_page_all_the_same(service: FakeService) -> None:
    found = service.get("statement", params={"month": "2025-02"})
    page = as_page(found)
    assert "Statement for February 2025" in page
    assert "$0.00" in page
    assert "in progress</span>" not in page


def test_the_chart_has_a_bar_for_each_day_within_its_axis(service: FakeService) -> None:
    found = service.get("statement")
    page = as_page(found)
    assert page.count("<title>2026-09-") == len(found["by_day"]) == 1
    heights = [float(part.split('"')[0]) for part in page.split('height="')[1:]]
    assert max(heights) <= 190


@pytest.mark.parametrize(
    ("by", "key", "names"),
    [
        ("team", "team", ["v", "l", None]),
        ("user", "user", ["alice", "=bob()", None]),
        ("payer", "payer", ["cats", "language", None]),
        ("tag:project", "tag", ["zoo", "", None]),
    ],
)
def test_cost_by_whose_it_is_adds_up(
    service: FakeService, by: str, key: str, names: list[str | None]
) -> None:
    found = service.get("cost", params={"by": by, "since": 0})
    assert [row[key] for row in found["rows"]] == names
    for money in ("total_usd", "jobs_usd", "idle_usd", "provisioning_usd"):
        assert sum(row[money] for row in found["rows"]) == pytest.approx(found[money])


@pytest.mark.parametrize("by", ["week", "tag", "tag:", "tag:two words", "Team"])
def test_a_way_to_list_money_that_there_is_not_is_refused(service: FakeService, by: str) -> None:
    answer = service.ask("GET", "/api/v1/cost", params={"by": by})
    assert answer.status_code == 422
    assert "tag:KIND, such as tag:project" in answer.json()["error"]["message"]
