"""What Prometheus is told."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from boa.model.cluster import Share
from boa.scheduler.observe.histogram import bucket, up_to
from boa.server.notify.month import MonthWatch
from fakes import NOW, FakeService
from live import spec
from unit.server.routes.test_money import plan_state


@pytest.fixture
def service(tmp_path: Path) -> FakeService:
    return FakeService(tmp_path)


def collected(service: FakeService) -> dict[str, float]:
    """Samples by name and labels: boa_jobs{state=running}."""
    answer = service.ask("GET", "/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = {}
    for family in text_string_to_metric_families(answer.text):
        assert family.name.startswith("boa_")
        assert family.documentation
        for sample in family.samples:
            labels = ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def test_jobs_nodes_and_gpus_are_counted(service: FakeService) -> None:
    service.submit()
    service.submit()
    service.control.run("1", gpus=3)
    service.control.rent(2, "A100", 8)
    found = collected(service)
    assert found["boa_jobs{state=running}"] == 1
    assert found["boa_jobs{state=waiting}"] == 1
    assert found["boa_jobs{state=rescaling}"] == 0
    assert found["boa_nodes{gpu_type=T4,state=ready}"] == 1
    assert found["boa_gpus_rented{gpu_type=A100}"] == 8
    assert found["boa_gpus_used{gpu_type=A100}"] == 0
    assert found["boa_gpus_used{gpu_type=T4}"] == 3


def test_a_month_is_neither_scraped_nor_told_with_less_than_an_hour_of_history(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[float] = []
    monkeypatch.setattr(service.control, "foretell_month", told.append)
    service.control.rent(1)
    node, store = service.control.nodes[1], service.control.store
    watch = MonthWatch(service.control, store)
    store.kept_nodes[1] = replace(node, billed_from=NOW - 3599)
    watch.look()
    assert "boa_forecast_month_usd" not in collected(service)
    assert told == []
    store.kept_nodes[1] = node
    watch.look()
    month = service.get("cost")["forecast_month_usd"]
    assert month is not None
    assert told == [collected(service)["boa_forecast_month_usd"]] == [pytest.approx(month)]


def test_a_node_that_is_only_asked_for_is_not_paid_for(service: FakeService) -> None:
    service.control.rent(1)
    asked = replace(service.control.nodes[1], state="requested", billed_from=None, ready_at=None)
    service.control.nodes[1] = asked
    found = collected(service)
    assert found["boa_nodes{gpu_type=T4,state=requested}"] == 1
    assert found["boa_gpus_rented{gpu_type=T4}"] == 0


def test_money_is_told(service: FakeService) -> None:
    found = collected(service)
    assert found["boa_budget_usd_per_hour"] == 14
    assert found["boa_effective_budget_usd_per_hour"] == 13.5
    assert found["boa_spend_usd_per_hour"] == 8
    assert found["boa_average_spend_usd_per_hour"] == pytest.approx(10)
    assert "boa_max_spend_usd_per_hour" not in found
    parts = [found[f"boa_spent_usd_total{{part={p}}}"] for p in ("jobs", "idle", "provisioning")]
    assert parts == [20, 4, 2]
    service.control.money = replace(service.control.money, max_spend=30.0)
    assert collected(service)["boa_max_spend_usd_per_hour"] == 30


def test_what_the_loop_counts_is_told(service: FakeService) -> None:
    service.control.counters = {
        "submitted": 9,
        "started": 8,
        "succeeded": 4,
        "failed": 2,
        "stopped": 1,
        "jct_s": 4000.0,
        "queueing_s": 80.0,
        "rescalings": 12,
        "restarts": 3,
        "steps": 100,
        "step_s": 0.004,
        "slowest_step_s": 0.2,
        "late_steps": 1,
        "store_trouble": 2,
        "cloud_trouble": 5,
    }
    found = collected(service)
    assert (found["boa_jct_seconds_sum"], found["boa_jct_seconds_count"]) == (4000, 4)
    assert (found["boa_queueing_seconds_sum"], found["boa_queueing_seconds_count"]) == (80, 8)
    assert found["boa_jobs_ended_total{state=failed}"] == 2
    assert found["boa_rescalings_total"] == 12
    assert found["boa_restarts_total"] == 3
    assert found["boa_late_steps_total"] == 1
    assert found["boa_step_seconds"] == 0.004
    assert found["boa_store_trouble_total"] == 2
    assert found["boa_cloud_trouble_total"] == 5


def test_the_plan_s_proof_is_told_once_there_is_one(service: FakeService) -> None:
    assert "boa_solver_gap" not in collected(service)
    service.control.plan = plan_state(too_small=11.5)
    found = collected(service)
    assert found["boa_solver_gap"] == pytest.approx(0, abs=1e-9)
    assert found["boa_solver_seconds"] == 0.012
    assert found["boa_plan_age_seconds"] == NOW - service.control.plan.at
    assert found["boa_budget_too_small"] == 1


def test_rescalings_are_told_by_part_and_noise_by_class(service: FakeService) -> None:
    service.control.counters = {
        "rescaling_total": 3,
        "rescaling_total_s": 7.5,
        "rescaling_first_step": 2,
        "rescaling_first_step_s": 0.5,
    }
    for job, noise in (("1", 100.0), ("2", 300.0)):
        service.submit()
        record = service.control.run(job)
        service.control.put(replace(record, metrics={"noise_scale": noise}))
    service.submit("bert")
    found = collected(service)
    assert found["boa_rescaling_seconds_sum{part=total}"] == 7.5
    assert found["boa_rescaling_seconds_count{part=total}"] == 3
    assert found["boa_rescaling_seconds_sum{part=first_step}"] == 0.5
    assert found["boa_rescaling_seconds_count{part=stop}"] == 0
    assert found["boa_noise_scale_samples{class=resnet18}"] == 200
    assert "boa_noise_scale_samples{class=bert}" not in found


def test_completion_times_are_a_histogram_from_a_minute_to_a_week(service: FakeService) -> None:
    counted: dict[str, float] = {"succeeded": 5, "jct_s": 700_150.0}
    for seconds in (30.0, 60.0, 61.0, 7200.0, 692_799.0):
        name = bucket("jct", seconds)
        counted[name] = counted.get(name, 0) + 1
    service.control.counters = counted
    found = collected(service)
    expected = {60.0: 2, 120.0: 3, 3600.0: 3, 7200.0: 4, 604_800.0: 4, "+Inf": 5}
    for bound, number in expected.items():
        assert found[f"boa_jct_seconds_bucket{{le={bound}}}"] == number
    assert (found["boa_jct_seconds_sum"], found["boa_jct_seconds_count"]) == (700_150, 5)
    assert found["boa_queueing_seconds_bucket{le=+Inf}"] == 0


def test_gpus_wanted_and_jobs_by_class_are_told(service: FakeService) -> None:
    for name in ("resnet18", "resnet18", "bert"):
        service.submit(name)
    service.control.run("1", gpus=3)
    service.control.put(replace(service.control.active["2"], share=Share("H100", 8, None)))
    found = collected(service)
    assert found["boa_gpus_wanted{gpu_type=H100}"] == 8
    assert found["boa_gpus_rented{gpu_type=H100}"] == 0
    assert found["boa_gpus_wanted{gpu_type=T4}"] == 0
    assert found["boa_jobs_by_class{class=resnet18}"] == 2
    assert found["boa_jobs_by_class{class=bert}"] == 1


def test_a_live_service_counts_its_jobs_by_how_long_they_took(lives: Any) -> None:
    live = lives()
    number = live.submit(spec("halves", epochs=2))
    live.finish()
    job, counters = live.job(number), live.loop.snapshot.counters
    assert counters[bucket("jct", job.ended_at - job.submitted_at)] == 1
    assert counters[bucket("queueing", job.started_at - job.submitted_at)] == 1
    assert dict(up_to("jct", counters))[604_800.0] == 1
