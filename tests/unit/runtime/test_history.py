"""What was, over time: averages of stretches, runs of a job, and the routes that tell them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.model.records import NodeRecord, Point, Sample
from boa.model.sampled import Sampled
from boa.runtime.history import Stretches, average_budget, noted, rates, rented, runs
from boa.scheduler.money.ledger import bill
from fakes import NOW, FakeService
from reading import held
from stored import hold, node

HOUR = 3600.0
TEN = Stretches(0.0, 100.0, 10)


def sample(at: float, **fields: object) -> Sample:
    given = {"budget": 10.0, "effective": 9.0, "wanted": {"T4": 4}, "active": 3, "waiting": 1}
    return Sample(at=at, **{"every_s": 10.0, **given, **fields})  # type: ignore[arg-type]


def point(at: float, attempt: int, units: float, uptime_s: float) -> Point:
    return Point(
        job="1", at=at, attempt=attempt, epoch=0, progress=units, units=units, uptime_s=uptime_s
    )


# Stretches


def test_what_lasts_for_part_of_a_stretch_counts_for_that_part() -> None:
    found = TEN.mean([15.0, 92.0], [32.0, 93.0], [4.0, 10.0])
    assert found.tolist() == pytest.approx([0, 2.0, 4.0, 0.8, 0, 0, 0, 0, 0, 1.0])


def test_what_was_before_and_goes_on_after_counts_inside_only() -> None:
    assert TEN.mean([-1e9], [np.inf], [0.1]).tolist() == pytest.approx([0.1] * 10)
    assert TEN.mean([100.0, -5.0, 50.0], [200.0, 0.0, 50.0], 1.0).tolist() == [0.0] * 10


@given(
    spans=st.lists(
        st.tuples(st.floats(-50, 150), st.floats(-50, 150), st.floats(0.01, 9)), max_size=8
    ),
    number=st.integers(2, 40),
)
def test_stretches_add_up_to_the_whole_and_are_never_negative(
    spans: list[tuple[float, float, float]], number: int
) -> None:
    stretches = Stretches(0.0, 100.0, number)
    begins, ends, weights = (
        (list(part) for part in zip(*spans, strict=True)) if spans else ([],) * 3
    )
    found = stretches.mean(begins, ends, weights)
    whole = sum(max(min(e, 100) - max(b, 0), 0) * w for b, e, w in spans)
    assert found.sum() * stretches.step_s == pytest.approx(whole, abs=1e-9)
    assert (found >= 0).all()


# The ledger


def ready(number: int, **fields: object) -> NodeRecord:
    given = {"billed_from": 0.0, "ready_at": 10.0, "state": "ready", **fields}
    return node(number, **given)


def test_spend_and_gpus_of_a_node_are_those_of_the_ledger() -> None:
    nodes = [
        ready(1, price=2.0, released_at=70.0, gone_at=85.0, state="gone"),
        ready(5, gpu="A100", gpus=8, price=1.0, billed_from=40.0, ready_at=55.0),
        node(7),
    ]
    holds = [hold(1, 1, 5.0, 80.0), hold(2, 5, 60.0), hold(3, 99, 0.0)]
    found = rented(TEN, nodes, held(holds))
    assert found.rented["T4"].tolist() == pytest.approx([4.0] * 8 + [2.0, 0])
    assert found.rented["A100"].tolist() == pytest.approx([0.0] * 4 + [8.0] * 6)
    assert found.used["T4"].tolist() == pytest.approx([0.0] + [2.0] * 6 + [0.0] * 3)
    assert found.used["A100"].tolist() == pytest.approx([0.0] * 6 + [2.0] * 4)
    assert found.spend.tolist() == pytest.approx([8.0] * 4 + [16.0] * 4 + [12.0, 8.0])
    whole = bill(nodes, holds, 0.0, 100.0)
    assert found.spend.mean() * 100 / HOUR == pytest.approx(whole.total)
    assert found.average[-1] == pytest.approx(whole.total / (100 / HOUR))


def test_an_average_begins_with_the_first_charge() -> None:
    found = rented(TEN, [ready(1, price=2.0, billed_from=25.0)], held([]))
    assert found.average[:2] == [None, None]
    assert found.average[2:] == pytest.approx([8.0] * 8)


def test_of_nothing_there_is_nothing() -> None:
    found = rented(TEN, [], held([]))
    assert (found.rented, found.used, found.average) == ({}, {}, [None] * 10)
    assert found.spend.tolist() == [0.0] * 10


# Samples


def test_a_sample_holds_until_the_next_one_and_not_for_ever() -> None:
    found = noted(
        TEN,
        Sampled.of([sample(15.0), sample(25.0, active=5, wanted={"A100": 2}, budget=20.0)]),
    )
    assert found.active == [None, 3.0, 4.0, 5.0, 5.0, *[None] * 5]
    assert found.wanted["T4"] == [None, 4.0, 2.0, 0.0, 0.0, *[None] * 5]
    assert found.wanted["A100"] == [None, 0.0, 1.0, 2.0, 2.0, *[None] * 5]
    assert found.none == [None, 0.0, 0.0, 0.0, 0.0, *[None] * 5]
    assert found.budget == [None, 10.0, 15.0, *[20.0] * 7], "in force until it is changed"


def test_a_sample_from_before_says_what_the_beginning_was() -> None:
    found = noted(TEN, Sampled.of([sample(-30.0, every_s=12.0)]))
    assert found.budget == [10.0] * 10
    assert found.waiting == [None] * 10


# A job


def test_holds_of_one_start_are_one_run() -> None:
    lost = replace(hold(1, 1, 10.0, 50.0), gpus=4)
    kept = hold(1, 2, 10.0, 3610.0)
    again = hold(1, 3, 4000.0)
    first, second = runs([lost, kept, again], {1: "T4", 2: "T4", 3: "A100"}, 4500.0)
    assert (first.since, first.until, first.gpu) == (10.0, 3610.0, "T4")
    assert (first.width, first.nodes) == (6, [1, 2])
    assert first.cost == pytest.approx(1.088 * (4 * 40 + 2 * 3600) / HOUR)
    assert (second.until, second.gpu, second.width) == (None, "A100", 2)
    assert second.cost == pytest.approx(1.088 * 2 * 500 / HOUR)


def test_a_rate_is_between_points_of_the_same_run_only() -> None:
    points = [
        point(10.0, 1, 0.0, 1.0),
        point(20.0, 1, 50.0, 11.0),
        point(40.0, 2, 5.0, 2.0),
        point(50.0, 2, 25.0, 12.0),
        point(51.0, 2, 25.0, 12.0),
    ]
    assert rates(points) == [None, 5.0, None, 2.0, None]


# Routes


@pytest.fixture
def service(tmp_path: Path) -> FakeService:
    service = FakeService(tmp_path)
    service.submit()
    service.control.run("1", gpus=3)
    service.control.store.kept_samples = [sample(NOW - 1800.0, every_s=60.0)]
    return service


def test_the_last_day_is_told_in_120_stretches(service: FakeService) -> None:
    found = service.get("history")
    assert (found["since"], found["until"], found["step_s"]) == (NOW - 86_400, NOW, 720)
    assert found["now"] == NOW
    assert found["spend_per_hour"][-5:] == pytest.approx([4.0] * 5)
    assert found["spend_per_hour"][:115] == [0.0] * 115
    assert found["average_spend_per_hour"][:115] == [None] * 115
    assert found["average_spend_per_hour"][115:] == pytest.approx([4.0] * 5)
    assert found["gpus"]["T4"]["rented"][-1] == 4
    assert found["gpus"]["T4"]["used"][-1] == 3
    assert found["gpus"]["T4"]["wanted"][-3:] == [4, None, None]
    assert found["budget_per_hour"][-4:] == [None, 10, 10, 10]
    assert (found["active_jobs"][-3], found["waiting_jobs"][-3]) == (3, 1)


def test_a_type_that_is_wanted_and_never_rented_is_told(service: FakeService) -> None:
    service.control.store.kept_samples = [sample(NOW - 60.0, wanted={"H100": 8}, every_s=60.0)]
    found = service.get("history", params={"since": NOW - 60, "until": NOW + 9, "points": 2})
    assert found["until"] == NOW
    assert found["gpus"]["H100"] == {"rented": [0, 0], "used": [0, 0], "wanted": [8, 8]}
    assert found["gpus"]["T4"]["wanted"] == [0, 0]


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"since": NOW + 5}, "since"),
        ({"since": NOW}, "since"),
        ({"since": 0}, "since"),
        ({"since": "nan"}, "since"),
        ({"until": "soon"}, "until"),
        ({"points": 1}, "points"),
        ({"points": 501}, "points"),
        ({"step": 5}, "step"),
    ],
)
def test_a_bad_question_is_refused_by_name(
    service: FakeService, asked: dict[str, object], field: str
) -> None:
    answer = service.ask("GET", "/api/v1/history", params=asked)
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == field
    assert answer.json()["error"]["expected"]


def test_a_job_s_runs_and_points_are_told(service: FakeService) -> None:
    began = NOW - 3600.0
    service.control.store.kept_points = [point(began, 1, 0.0, 1.0), point(began + 9, 1, 9.0, 10.0)]
    found = service.get("jobs/1/history")
    assert found["runs"] == [
        {
            "since": began,
            "until": None,
            "gpu_type": "T4",
            "width": 3,
            "nodes": [1],
            "cost_usd": pytest.approx(3.0),
        }
    ]
    assert [(p["at"], p["rate"]) for p in found["points"]] == [(began, None), (began + 9, 1.0)]
    assert found["now"] == NOW


def test_of_a_job_that_never_held_anything_the_history_is_empty(service: FakeService) -> None:
    service.submit()
    assert service.get("jobs/2/history") == {"runs": [], "points": [], "now": NOW}


@pytest.mark.parametrize("job", ["9", "x", "-1"])
def test_an_unknown_job_has_no_history(service: FakeService, job: str) -> None:
    answer = service.ask("GET", f"/api/v1/jobs/{job}/history")
    assert answer.status_code == 404
    assert "expected the id of a job" in answer.json()["error"]["message"]


def sampled(at: float, budget: float) -> Sample:
    return Sample(
        at=at, every_s=60.0, budget=budget, effective=budget, wanted={}, active=0, waiting=0
    )


def test_what_was_allowed_is_the_budget_then_by_how_long_it_was_in_force() -> None:
    samples = [sampled(0.0, 10.0), sampled(100.0, 20.0), sampled(300.0, 50.0)]
    noted_down = Sampled.of(samples)
    assert average_budget(noted_down, 0.0, 400.0) == (100 * 10 + 200 * 20 + 100 * 50) / 400
    assert average_budget(noted_down, 150.0, 250.0) == 20.0
    assert average_budget(noted_down, 500.0, 600.0) == 50.0, "it holds until another is set"


def test_before_anybody_noted_it_down_nobody_knows_what_was_allowed() -> None:
    assert average_budget(Sampled.of([]), 0.0, 100.0) is None
    assert average_budget(Sampled.of([sampled(100.0, 20.0)]), 0.0, 50.0) is None
