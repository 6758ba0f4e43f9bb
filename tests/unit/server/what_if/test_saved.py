"""What was saved in a month: jobs of that month, as wide as before, and figures from the runs."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boa.model.workload import GpuType
from boa.server.what_if.runner import OVER
from boa.server.what_if.saved import BUDGETS, IN_FORCE, between, result_of
from fakes import NOW, FakeService
from live import profile
from unit.server.what_if.test_what_if import record

T4 = GpuType(name="T4", price=1.0, gpus_per_node=4)
AUGUST = 1_785_542_400.0


@pytest.fixture
def service(tmp_path: Path) -> Iterator[FakeService]:
    service = FakeService(tmp_path, gpu_types={"T4": T4})
    service.control.profiled = {"known": profile("known")}
    yield service
    service.simulations.close()


def ended(service: FakeService, number: int, at: float, job_class: str = "known") -> None:
    one = record(number, job_class)
    service.control.put(replace(one, submitted_at=at - 7200.0 + 60 * number, ended_at=at))


def point(policy: str, value: Any, per_hour: float, jct_s: float) -> dict[str, Any]:
    figures = {"bill_per_hour": per_hour, "average_jct_s": jct_s, "span_s": 36_000.0}
    return {"policy": policy, "value": value, "makespan_s": 40_000.0, **figures}


def test_dollars_are_at_the_same_time_and_time_at_the_same_dollars() -> None:
    points = [
        point("boa", 5.0, 5.0, 4000.0),
        point("boa", 10.0, 10.0, 2000.0),
        point("boa", 20.0, 20.0, 1000.0),
        point("reservation", None, 20.0, 2000.0),
    ]
    found = result_of(points, 10.0)
    assert found is not None
    assert found["before"] == {"average_jct_s": 2000.0, "cost_usd": 200.0}
    assert found["boa"] == {"average_jct_s": 2000.0, "cost_usd": 100.0}
    assert found["cost_at_same_jct_usd"] == pytest.approx(100.0)
    assert found["saved_usd"] == pytest.approx(100.0)
    assert found["jct_at_same_cost_s"] == pytest.approx(1000.0)
    assert found["sooner_s"] == pytest.approx(1000.0)
    assert "$100.00 less" in " ".join(found["words"])
    assert all("simulated" in said for said in found["words"][:2])


def test_what_was_not_simulated_is_not_said() -> None:
    points = [point("boa", 10.0, 10.0, 2000.0), point("reservation", None, 9.0, 99.0)]
    found = result_of(points, 10.0)
    assert found is not None
    assert (found["saved_usd"], found["sooner_s"]) == (None, None)
    assert "BOA costs more at every budget that was simulated." in found["words"]
    assert result_of(points[:1], 10.0) is None
    assert result_of(points, 11.0) is None


def test_where_boa_is_faster_for_less_at_every_budget_the_least_of_them_is_said() -> None:
    points = [
        point("boa", 10.0, 10.0, 2000.0),
        point("boa", 5.0, 5.0, 3000.0),
        point("reservation", None, 20.0, 4000.0),
    ]
    found = result_of(points, 10.0)
    assert found is not None
    assert found["cost_at_same_jct_usd"] == 50.0
    assert found["jct_at_same_cost_s"] == 2000.0


def test_between_two_runs_logarithms_are_joined_straight() -> None:
    assert between([(1.0, 8.0), (4.0, 2.0)], 2.0) == pytest.approx(4.0)
    assert between([(1.0, 8.0), (4.0, 2.0)], 4.1) is None


def test_too_few_jobs_say_nothing_and_that_is_said(service: FakeService) -> None:
    for number in range(1, 10):
        ended(service, number, NOW - 600)
    ended(service, 10, AUGUST + 600)  # another month's
    ended(service, 11, NOW - 600, "unknown")
    found = service.ask("POST", "/api/v1/saved", json={}).json()
    assert (found["state"], found["jobs"], found["left_out"]) == ("none", 9, 1)
    assert "9 jobs of classes with measured speeds" in found["too_thin"]
    assert service.simulations.all() == []


def test_a_month_is_simulated_once_it_is_asked_for_with_the_widths_of_before(
    service: FakeService,
) -> None:
    for number in range(1, 13):
        ended(service, number, AUGUST + 3600.0 * number)
    asked = {"month": "2026-08", "width": 3}
    assert service.get("saved", params=asked)["state"] == "none"
    begun = service.ask("POST", "/api/v1/saved", json=asked).json()
    assert begun["state"] in ("waiting", "running")
    assert begun["widths"] == {"known": "3 × T4"}
    (simulation,) = service.simulations.all()
    assert len(simulation["budgets"]) == len(BUDGETS)
    assert simulation["budgets"][IN_FORCE] == service.control.money.budget
    while (found := service.get("saved", params=asked))["state"] not in OVER:
        pass
    assert found["state"] == "done", found["error"]
    result = found["result"]
    assert result["before"]["cost_usd"] > 0
    assert result["boa"]["average_jct_s"] > 0
    again = service.ask("POST", "/api/v1/saved", json=asked).json()
    assert again["result"] == result, "of a month that is over, once"
    assert len(service.simulations.all()) == 1


def test_why_a_month_cannot_be_simulated_is_said_and_what_would_help(
    service: FakeService,
) -> None:
    """A dozen jobs within seconds: no budget keeps up with as many all the time."""
    for number in range(1, 13):
        ended(service, number, AUGUST + 3600.0 + number)
    asked = {"month": "2026-08"}
    service.ask("POST", "/api/v1/saved", json=asked)
    while (found := service.get("saved", params=asked))["state"] not in OVER:
        pass
    assert found["state"] == "failed"
    assert "BOA at the budget in force could not be simulated: a budget of" in found["error"]
    assert "and the simulation has as many come all the time" in found["error"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"month": "2026-13"}, "month"),
        ({"width": 0}, "width"),
        ({"gpu_type": "T9"}, "gpu_type"),
        ({"budget": 3}, "budget"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_simulated(
    service: FakeService, body: dict[str, Any], field: str
) -> None:
    answer = service.ask("POST", "/api/v1/saved", json=body)
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == field
