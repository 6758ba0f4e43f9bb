"""Estimates of jobs before they are submitted: by the real loop on a virtual clock."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boa.errors import InputError
from boa.model.job import GpuLimits
from boa.model.job_spec import JobSpec
from boa.sim.engine import NO_SAVING
from live import A100, T4, Live, config, prior, profile, spec

NET = profile("net", work=(1500.0,) * 3, alpha=0.9, rescale_s=30.0)


@pytest.fixture
def lived(tmp_path: Path) -> Iterator[Any]:
    made: list[Live] = []

    def begin(**settings: object) -> Live:
        folder = tmp_path / f"{len(made)}"
        folder.mkdir()
        live = Live(config(folder, **settings), {"net": NET})
        live.engine.report_s = 60.0
        made.append(live)
        return live

    yield begin
    for live in made:
        live.close()


def net(**fields: object) -> JobSpec:
    fields.setdefault("gpus", GpuLimits(max=4))
    return spec("net", epochs=3, **fields)


def estimate(live: Live, job: JobSpec) -> Any:
    """An estimate, each of whose parts is looked at where it must be there."""
    return live.loop.estimate(job)


def known(lived: Any, per_hour: float = 2.0, **settings: object) -> Live:
    live: Live = lived(priors={"net": prior(NET, per_hour)}, billing="gpu", **settings)
    live.settle()
    return live


def test_a_class_that_nobody_knows_is_offered_a_short_probe(lived: Any) -> None:
    live = lived(billing="gpu")
    found = estimate(live, net())
    assert (found.basis, found.time_s, found.ways) == (None, None, ())
    assert found.probe is not None
    assert (found.probe.gpu, found.probe.width) == ("T4", 1)
    assert found.probe.cost_usd == pytest.approx(found.probe.seconds / 3600)
    assert live.loop.classes() == [], "it was asked about, and is not known for that"


def test_an_estimate_of_a_known_class_is_what_its_job_then_takes(lived: Any) -> None:
    live = known(lived)
    found = estimate(live, net())
    assert found.basis == "profile"
    assert found.plan is not None
    job = live.submit(net())
    live.finish()
    record = live.job(job)
    assert record.ended_at is not None
    assert record.started_at is not None
    assert found.time_s == pytest.approx(record.ended_at - record.started_at, rel=0.05)
    assert found.cost_usd == pytest.approx(record.cost_usd, rel=0.05)


def test_nothing_of_an_estimate_is_kept(lived: Any) -> None:
    live = known(lived)
    live.submit(net())
    before = live.loop.class_document("net")
    state = live.loop.state
    estimate(live, net(weight=9.0, total_work=1.0))
    assert live.loop.class_document("net") == before
    assert live.loop.state == state


def test_widths_by_epoch_add_up_to_the_whole_job(lived: Any) -> None:
    (way, *_) = estimate(known(lived), net()).ways
    epochs = [e for s in way.stages for e in range(s.first_epoch, s.last_epoch + 1)]
    assert epochs == [0, 1, 2]
    assert way.time_s == pytest.approx(sum(stage.time_s for stage in way.stages))


def test_the_jobs_own_limits_count(lived: Any) -> None:
    live = known(lived, budget=40.0)
    wide, narrow = (estimate(live, net(gpus=GpuLimits(max=k))) for k in (4, 1))
    assert {stage.width for way in narrow.ways for stage in way.stages} == {1}
    assert narrow.time_s == pytest.approx(3 * 1500 + 30)
    assert wide.time_s < narrow.time_s


def test_a_longer_job_takes_longer(lived: Any) -> None:
    live = known(lived)
    one, two = (estimate(live, net(total_work=4500.0 * k)) for k in (1, 2))
    rescaling = sum(30.0 for _ in one.ways[0].stages)
    assert two.time_s - rescaling == pytest.approx(2 * (one.time_s - rescaling), rel=0.01)


def test_what_jobs_have_reported_is_enough_where_their_work_is_said(lived: Any) -> None:
    live = lived(billing="gpu")
    live.submit(net(total_work=4500.0))
    live.advance(600.0)
    found = estimate(live, net(total_work=4500.0))
    assert found.basis == "measured"
    assert found.time_s == pytest.approx(4500.0, rel=0.2)


def test_an_interval_is_told_from_the_first_job_on_and_narrows(lived: Any) -> None:
    live = known(lived, per_hour=1.0)
    widths = []
    for count in range(6):
        found = estimate(live, net())
        assert found.spread_jobs == count
        assert found.times.low <= found.time_s <= found.times.high
        assert found.costs.low <= found.cost_usd <= found.costs.high
        assert found.jcts.low >= found.times.low
        assert found.jcts.high >= found.times.high
        widths.append(found.times.high / found.times.low)
        live.submit(net())
        live.finish()
    assert widths[-1] < widths[1]


@pytest.mark.parametrize("report_s", [None, 1.0])
def test_short_jobs_are_estimated_as_they_were(tmp_path: Path, report_s: float | None) -> None:
    """Eight jobs of 4 to 5 s, as a new user runs them."""
    short = profile("short", work=(4.0,), alpha=0.0, rescale_s=0.5)
    live = Live(config(tmp_path, budget=8.0), {"short": short})
    live.engine.report_s = report_s
    one = spec("short", gpus=GpuLimits(max=1))
    for _ in range(8):
        live.submit(one)
        live.finish()
    found = estimate(live, one)
    assert found.time_s == pytest.approx(4.5, rel=0.1)
    assert 3.0 < found.times.low < found.time_s < found.times.high < 6.5
    live.close()


def test_the_end_is_the_wait_by_the_present_queue_and_the_time(tmp_path: Path) -> None:
    """Earlier jobs waited; one that finds free GPUs does not."""
    four = profile("four", work=(600.0,), alpha=0.0, rescale_s=5.0)
    live = Live(config(tmp_path, budget=8.0, max_nodes={"T4": 1}, keep_warm_s=1e6), {"four": four})
    live.engine.report_s = 30.0
    wide = spec("four", gpus=GpuLimits(min=4, max=4))
    for _ in range(6):
        live.submit(wide)
    live.finish()
    free = estimate(live, wide)
    assert free.time_s == pytest.approx(605.0, rel=0.05)
    assert free.queue.wait_s == 0.0
    assert (free.jct_s, free.jcts) == (free.time_s, free.times)
    live.submit(wide)
    live.advance(100.0)
    full = estimate(live, wide)
    assert full.queue.wait_s == pytest.approx(505.0, rel=0.05)
    assert full.jct_s == full.queue.wait_s + full.time_s
    live.close()


def test_a_silent_job_of_a_known_class_is_waited_for_until_it_has_taken_longer(
    tmp_path: Path,
) -> None:
    plain = profile("plain", work=(100.0,), alpha=0.0, rescale_s=0.0)
    late = profile("late", work=(500.0,), alpha=0.0, rescale_s=0.0)
    settings = config(tmp_path, max_nodes={"T4": 1}, keep_warm_s=1e6)
    live = Live(settings, {"plain": plain, "late": late})
    live.engine.report_s = None
    wide = spec("plain", gpus=GpuLimits(min=4, max=4))
    new = estimate(live, wide)
    assert (new.jct_s, new.jcts) == (None, None)
    live.submit(wide)
    live.advance(20.0)
    unknown = estimate(live, wide)
    assert unknown.queue.wait_s is None, "no job of the class has ended"
    live.finish()
    live.submit(wide)
    live.advance(25.0)
    found = estimate(live, wide)
    assert found.queue.wait_s == pytest.approx(75.0, rel=0.1)
    assert found.jct_s == pytest.approx(175.0, rel=0.1)
    live.finish()
    live.submit(spec("late", gpus=GpuLimits(min=4, max=4)))
    live.advance(25.0)
    unknown = estimate(live, wide)
    assert (unknown.queue.wait_s, unknown.jct_s, unknown.jcts) == (None, None, None)
    assert unknown.time_s == pytest.approx(100.0, rel=0.1)
    live.close()


def test_jobs_that_wait_for_the_same_gpus_are_counted_and_waited_for(lived: Any) -> None:
    live = known(lived, gpu_types={"T4": T4}, max_nodes={"T4": 1}, budget=4.0)
    four = net(gpus=GpuLimits(min=4, max=4))
    assert estimate(live, four).queue.waiting == 0
    live.submit(four)
    live.advance(120.0)
    waiting = live.submit(four)
    found = estimate(live, four)
    assert found.queue.jobs == (waiting,)
    assert found.queue.gpus == 4
    alone = found.time_s
    assert alone < found.queue.wait_s < 2.2 * alone
    live.loop.pause(waiting)
    live.settle()
    assert estimate(live, four).queue.waiting == 0, "it gives way until it is resumed"


def test_a_spec_that_would_be_refused_is_refused(lived: Any) -> None:
    live = known(lived)
    with pytest.raises(InputError, match=r"gpus\.types"):
        estimate(live, net(gpus=GpuLimits(types=("H100",))))


def test_a_probe_is_on_the_cheapest_gpus_that_the_job_allows(lived: Any) -> None:
    live = lived(gpu_types={"T4": T4, "A100": A100}, billing="node")
    found = estimate(live, net(gpus=GpuLimits(min=2, max=8, types=("A100",))))
    assert (found.probe.gpu, found.probe.width) == ("A100", 2)
    assert found.probe.cost_usd == pytest.approx(6.0 * found.probe.seconds / 3600)


def test_an_estimate_takes_a_stated_total_for_units_of_work_and_not_for_seconds(
    tmp_path: Path,
) -> None:
    """Ten units a second: taken for seconds, a total would make jobs look ten times as slow."""
    fast = profile("fast", work=(6000.0,), gpus={"T4": 10.0}, rescale_s=5.0)
    live = Live(config(tmp_path, billing="gpu"), {"fast": fast})
    live.engine.report_s = 20.0
    job = spec("fast", total_work=6000.0, gpus=GpuLimits(max=1))
    for _ in range(2):
        live.submit(job)
        live.finish()
    found = estimate(live, job)
    live.close()
    assert found.basis == "jobs"
    assert found.time_s == pytest.approx(605.0, rel=0.1)


def test_an_estimate_names_the_running_job_that_would_make_room(tmp_path: Path) -> None:
    live = Live(config(tmp_path, max_nodes={"T4": 1}, billing="node"), {"net": NET})
    live.engine.report_s = 60.0
    running = live.submit(net(gpus=GpuLimits(min=4, max=4)))
    live.advance(120.0)
    urgent = estimate(live, net(gpus=GpuLimits(min=4, max=4), priority="urgent"))
    normal = estimate(live, net(gpus=GpuLimits(min=4, max=4)))
    live.close()
    assert [(one.job, one.gpus, one.preempted) for one in urgent.displaces] == [(running, 4, True)]
    assert (urgent.queue.wait_s, urgent.jct_s) == (0.0, urgent.time_s), "it waits for no job's end"
    assert normal.queue.wait_s != 0.0
    assert normal.displaces == ()
    assert normal.blocked == "jobs of its priority or a higher one have the GPUs"


def test_an_estimate_says_that_jobs_which_cannot_checkpoint_have_the_gpus(tmp_path: Path) -> None:
    saving = {"net": NO_SAVING}
    live = Live(config(tmp_path, max_nodes={"T4": 1}), {"net": NET}, saving=saving)
    live.engine.report_s = None
    live.submit(net(gpus=GpuLimits(min=4, max=4)))
    live.advance(120.0)
    urgent = estimate(live, net(gpus=GpuLimits(min=4, max=4), priority="urgent"))
    live.close()
    assert urgent.displaces == ()
    assert urgent.blocked == "the jobs that have the GPUs cannot checkpoint"


def test_a_plan_for_unknown_classes_tells_no_times(lived: Any) -> None:
    live = lived(billing="gpu")
    live.submit(net())
    live.advance(10.0)
    first, *_ = [one.event for one in live.store.events(limit=100) if one.event.kind == "planned"]
    assert first.text == "plan 1: no class is measured yet, so each job gets its fewest GPUs"
