"""How much a job has to do: unknown until it is known, and its script's word counts most."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from boa.model.job import GpuLimits
from boa.model.job_spec import JobSpec
from boa.model.records import Report
from live import Live, config, kinds, profile, spec

WORK = 600.0
NET = profile("net", work=(WORK,), alpha=0.0, rescale_s=5.0)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    found = Live(config(tmp_path, budget=20.0), {"net": NET})
    found.engine.report_s = 10.0
    yield found
    found.close()


def net(**fields: object) -> JobSpec:
    return spec("net", gpus=GpuLimits(max=1), **fields)


def knowing_its_total(live: Live, total: float = WORK) -> None:
    told = live.loop.report

    def report(said: Report) -> object:
        return told(replace(said, total=total))

    live.engine.report = report  # type: ignore[assignment]


def believed(live: Live, job: str) -> tuple[float | None, float | None, float | None]:
    found = live.loop._estimator.believed.of(live.job(job), live.loop.snapshot.plan)
    return found.done, found.left_s, found.left_usd


def troubles(live: Live) -> list[str]:
    assert live.store is not None
    found = (stored.event for stored in live.store.events(limit=1000))
    return [event.text for event in found if event.kind == "trouble"]


def test_progress_is_unknown_where_no_total_is_known(live: Live) -> None:
    job = live.submit(net())
    live.advance(300.0, tick=10.0)
    assert live.job(job).progress > 0
    assert believed(live, job) == (None, None, None)


def test_a_class_that_has_done_a_job_knows_the_next_one_s_total(live: Live) -> None:
    live.submit(net())
    live.finish()
    job = live.submit(net())
    live.advance(305.0, tick=5.0)
    done, left_s, left_usd = believed(live, job)
    assert done == pytest.approx(0.5, abs=0.05)
    assert left_s == pytest.approx(300.0, rel=0.1)
    assert left_usd == pytest.approx(300.0 / 3600.0, rel=0.1)


def test_a_script_s_own_total_is_believed_and_learned(live: Live) -> None:
    knowing_its_total(live)
    job = live.submit(net())
    live.advance(305.0, tick=5.0)
    done, left_s, _ = believed(live, job)
    assert done == pytest.approx(0.5, abs=0.05)
    assert left_s == pytest.approx(300.0, rel=0.1)
    live.crash()
    assert live.loop.profiler.units("net") == pytest.approx((WORK,))


def test_a_total_work_in_another_unit_is_reported_once_and_not_believed(live: Live) -> None:
    knowing_its_total(live)
    job = live.submit(net(total_work=32 * WORK))
    live.advance(305.0, tick=5.0)
    assert believed(live, job)[0] == pytest.approx(0.5, abs=0.05)
    assert live.loop.profiler.units("net") == pytest.approx((WORK,))
    (said,) = troubles(live)
    assert "19,200" in said
    assert "600" in said
    assert "32×" in said
    assert "trouble" in kinds(live, job)


@pytest.mark.parametrize("total", [WORK / 1.9, WORK, 1.9 * WORK])
def test_a_total_work_that_is_only_inexact_is_no_trouble(live: Live, total: float) -> None:
    knowing_its_total(live)
    live.submit(net(total_work=total))
    live.finish()
    live.settle()
    assert troubles(live) == []


def test_a_job_that_did_far_less_than_its_total_work_is_reported_at_its_end(live: Live) -> None:
    live.submit(net(total_work=32 * WORK))
    live.finish()
    live.settle()
    (said,) = troubles(live)
    assert "19,200" in said
    assert live.loop.profiler.units("net") == pytest.approx((WORK,), rel=0.1)
