"""Events say in plain words why a job gets other GPUs, what that saves and what it costs."""

import json
from dataclasses import replace
from typing import Any

import pytest

import boa
from boa.amounts import dollars, duration
from boa.model.cluster import Allocation, Share
from boa.model.job import GpuLimits, JobRecord, Run
from boa.model.records import Event
from boa.model.runs import RunKey
from boa.model.speedup import Table
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.policy.boa import Planned, planned_of
from boa.scheduler.decide import reasons
from boa.scheduler.decide.reasons import reason
from boa.scheduler.words.sentences import sentence
from boa.store.codec import job_of, job_row
from live import Live, profile, spec
from stored import job as record
from stored import running
from stored import spec as stored_spec

FLAT_THEN_STEEP = profile("both", work=(3600.0, 36_000.0), alpha=0.05)
FLAT_THEN_STEEP.rates["T4"][1] = profile("steep", alpha=1.0).rates["T4"][0]
RATES = {1: 1.0, 2: 1.8, 4: 3.0, 8: 4.0}
RESCALE_S = 30.0


def told(live: Live, kind: str) -> list[Event]:
    assert live.store is not None
    return [s.event for s in live.store.events(limit=1000) if s.event.kind == kind]


# In the loop


def test_a_first_start_says_so(lives: Any) -> None:
    live = lives()
    job_id = live.submit(replace(spec("halves"), name="mine"))
    (event,) = told(live, "started")
    width = event.data["width"]
    assert event.text == f"job {job_id} (mine) → {width}×T4: first start"
    assert event.data["why"] == "first"
    assert "saves_s" not in event.data
    (submitted,) = told(live, "submitted")
    assert submitted.text == f"job {job_id} (mine) was submitted, of class halves"


def test_an_epoch_that_begins_on_other_gpus_says_what_they_save_and_cost(lives: Any) -> None:
    live = lives(FLAT_THEN_STEEP, per_hour=1.0, budget=20.0, billing="gpu")
    job_id = live.submit(spec("both", epochs=2))
    before = told(live, "started")[0].data["width"]
    live.finish()
    (event,) = told(live, "rescaled")
    wide = event.data["width"]
    assert wide > before
    saves = 36_000.0 / before - 36_000.0 / wide - 30.0
    assert event.data["saves_s"] == pytest.approx(saves)
    assert event.data["extra_usd"] == pytest.approx(wide * 30.0 / 3600.0), "the rescaling alone"
    assert event.text == (
        f"job {job_id} (both) → {wide}×T4: epoch 2 begins; "
        f"saves {duration(saves)} for {dollars(event.data['extra_usd'])}"
    )


def test_a_new_plan_that_shrinks_a_job_says_what_it_saves_and_how_much_later_it_ends(
    lives: Any,
) -> None:
    live = lives(
        profile("two", work=(600.0, 36_000.0), alpha=0.7), per_hour=1.0, budget=20.0, billing="gpu"
    )
    live.submit(spec("two", epochs=2))
    while live.job("1").epoch == 0:
        live.advance(300.0)
    live.loop.set_budget(11.0)
    live.advance(10.0)
    event = told(live, "rescaled")[-1]
    assert event.data["why"] == "plan"
    assert event.data["saves_s"] < 0 > event.data["extra_usd"]
    assert f"→ {event.data['width']}×T4: a new plan; cheaper: " in event.text
    later, saves = duration(-event.data["saves_s"]), dollars(-event.data["extra_usd"])
    assert event.text.endswith(f"cheaper: {later} later, saves {saves}")
    assert told(live, "budget")[-1].text == "the budget is $11.00/h from now on; it was $20.00/h"


def test_a_job_that_never_said_how_far_it_is_gets_no_figures(lives: Any) -> None:
    long = profile("long", work=(36_000.0,), alpha=0.9)
    live = lives(long, per_hour=1.0, budget=40.0, billing="gpu")
    live.submit(spec("long"))
    live.advance(600.0)
    live.loop.set_budget(10.5)
    live.advance(10.0)
    event = told(live, "rescaled")[-1]
    assert event.text.endswith("×T4: a new plan")
    assert event.data["why"] == "plan"
    assert "saves_s" not in event.data


def test_short_gpus_are_told_with_what_was_planned_and_again_when_they_are_free(
    lives: Any,
) -> None:
    long = profile("long", work=(36_000.0,), alpha=0.9)
    live = lives(long, per_hour=1.0, budget=20.0, max_nodes={"T4": 2}, billing="gpu")
    for _ in range(2):
        live.submit(spec("long", gpus=GpuLimits(max=8)))
        live.advance(100.0)
    (first, second), (shrunk,) = told(live, "started"), told(live, "rescaled")
    assert first.text.endswith("8×T4: first start")
    assert shrunk.text.endswith("4×T4: GPUs are short (8 planned)")
    assert second.text.endswith("4×T4: first start; GPUs are short (8 planned)")
    said = [event.text for event in told(live, "shortage")]
    assert len(said) == len(set(said)) == 2, "once of each"
    live.loop.stop("1")
    live.advance(100.0)
    assert told(live, "rescaled")[-1].text.endswith("8×T4: GPUs are free again")


def test_a_job_that_failed_goes_on_where_it_was(lives: Any) -> None:
    live = lives(backoff_s=1.0)
    job_id = live.submit(spec("halves", epochs=2))
    live.engine.kill(RunKey(job_id, 1), exit_code=1)
    live.settle()
    live.advance(10.0)
    (retry,), (again,) = told(live, "retry"), told(live, "restarted")
    assert "(halves) failed (exit code 1): tried again in 1 s" in retry.text
    assert again.text.endswith("starts again, having reached epoch 1 of 2")
    assert again.data["why"] == "again"


def test_reasons_outlive_a_crash_between_decision_and_start(lives: Any) -> None:
    live = lives(FLAT_THEN_STEEP, per_hour=1.0, budget=20.0, provision_s=120.0, billing="gpu")
    live.submit(spec("both", epochs=2))
    while live.job("1").epoch == 0:
        live.advance(60.0, tick=60.0)
    decided = live.job("1").why
    assert decided["why"] == "epoch"
    live.crash()
    live.advance(300.0)
    (event,) = told(live, "rescaled")
    assert event.data["saves_s"] == decided["saves_s"]
    assert live.job("1").why == {}, "told, and done with"


# The figures


def text_of(job: JobRecord, given: Allocation) -> str:
    """Of the start of a job on these GPUs."""
    run = Run(attempt=2, allocation=given, slots={}, requested_at=0.0, decided_at=0.0)
    return sentence("rescaled", job.id, None, reasons.told(job, run))


def planned(epochs: int = 3) -> Planned:
    table = {"T4": Table.of(RATES)}
    job_class = JobClass(
        name="resnet18",
        arrivals_per_hour=1.0,
        epochs=tuple(Epoch(work=1000.0, speedups=table) for _ in range(epochs)),
        rescale_s=RESCALE_S,
        max_gpus=8,
    )
    types = {"T4": GpuType(name="T4", price=3.6, gpus_per_node=4)}
    workload = Workload(gpu_types=types, classes=(job_class,))
    return planned_of(boa.plan(workload, boa.frontier(workload).fastest_budget), 1, 0.0)


def on(width: int, **fields: Any) -> JobRecord:
    """It runs on so many T4 and has shown how far it is."""
    allocation = Allocation("T4", ((1, width),))
    run = Run(attempt=1, allocation=allocation, slots={}, requested_at=0.0, decided_at=0.0)
    share = fields.pop("share", Share("T4", width))
    held: Any = {"run": run, "allocation": allocation, "attempts": 1}
    return record(1, **held, epoch=1, progress=0.5, share=share, **fields)


@pytest.mark.parametrize(("until", "epochs"), [(2, 0.5), (3, 1.5), (None, 1.5), (1, 1.5)])
def test_what_is_left_until_the_next_planned_change_counts(until: int, epochs: float) -> None:
    job = on(2, share=Share("T4", 4, until))
    found = reason(job, Allocation("T4", ((1, 4),)), "epoch", planned(), left=0.5)
    stay_s, go_s = (epochs * 1000.0 / RATES[k] for k in (2, 4))
    assert found["saves_s"] == pytest.approx(stay_s - go_s - RESCALE_S)
    cost = 4 * 1e-3 * (go_s + RESCALE_S) - 2 * 1e-3 * stay_s
    assert found["extra_usd"] == pytest.approx(cost)


def test_work_that_a_change_loses_counts_as_part_of_its_pause() -> None:
    job, wide = on(2, share=Share("T4", 4)), Allocation("T4", ((1, 4),))
    usual, losing = (
        reason(job, wide, None, planned(), 0.5, reasons.Change(), lost_s=lost_s)
        for lost_s in (0.0, 100.0)
    )
    assert losing["saves_s"] == pytest.approx(usual["saves_s"] - 100.0)
    assert losing["extra_usd"] == pytest.approx(usual["extra_usd"] + 100.0 * 4 * 1e-3)
    assert (usual["pause_s"], losing["pause_s"]) == (RESCALE_S, RESCALE_S + 100.0)


def test_beyond_the_epochs_of_the_plan_the_last_one_counts() -> None:
    job = replace(on(2), epoch=7)
    found = reason(job, Allocation("T4", ((1, 4),)), "plan", planned(), left=1.0)
    assert found["saves_s"] == pytest.approx(1000.0 / 1.8 - 1000.0 / 3.0 - RESCALE_S)


@pytest.mark.parametrize("memory", [None, object()])
def test_without_a_plan_there_are_no_figures(memory: object) -> None:
    found = reason(on(2), Allocation("T4", ((1, 4),)), "round", memory, left=1.0)
    assert (found["why"], "saves_s" in found) == ("round", False)


def test_what_cannot_be_compared_has_no_figures() -> None:
    known = planned()
    elsewhere = reason(on(2), Allocation("A100", ((1, 4),)), "plan", known, left=0.0)
    assert "saves_s" not in elsewhere, "the plan has no such type"
    unknown = replace(on(2), spec=stored_spec("nobody"))
    assert "saves_s" not in reason(unknown, Allocation("T4", ((1, 4),)), "plan", known, left=1.0)


def test_what_a_job_had_is_remembered_while_it_waits_for_gpus() -> None:
    known = planned()
    waiting = reason(on(4), None, None, known, left=1.0)
    assert waiting == {"from": ["T4", 4, [1]]}
    job = replace(on(4), run=None, allocation=None, why=waiting)
    found = reason(job, Allocation("T4", ((1, 2),)), "plan", known, left=1.0)
    assert found["from"] == ["T4", 4, [1]]
    assert found["why"] == "short"
    assert "saves_s" not in found, "it could not have stayed where it was"


def test_gpus_are_not_short_once_a_new_plan_has_as_few_for_the_job() -> None:
    given = Allocation("T4", ((1, 1),))
    job = on(2)
    found = reason(job, given, "plan", planned(), left=1.0)
    assert found["why"] == "short"
    job = replace(job, why=found, share=Share("T4", 1))
    assert "short" not in text_of(job, given)


def test_a_job_that_gets_its_gpus_back_does_not_move() -> None:
    waiting = reason(on(2), None, None, planned(), left=1.0)
    job = replace(on(2), run=None, allocation=None, why=waiting)
    found = reason(job, Allocation("T4", ((1, 2),)), "round", planned(), left=1.0)
    assert found["why"] == "returned"
    text = text_of(replace(job, why=found), Allocation("T4", ((1, 2),)))
    assert text.endswith("2×T4: has GPUs again")


def test_what_was_stored_without_nodes_says_nothing_of_them() -> None:
    job = replace(on(2), run=None, allocation=None, why={"from": ["T4", 2]})
    assert reason(job, Allocation("T4", ((9, 2),)), None, None, 1.0)["why"] == "returned"


@pytest.mark.parametrize("scale", [0.1, 1.0, 4.0])
def test_a_change_never_saves_more_than_the_job_still_takes_and_costs(scale: float) -> None:
    for before, after in [(8, 1), (1, 8), (4, 2), (2, 4)]:
        given = Allocation("T4", ((1, after),))
        found = reason(on(before), given, "round", planned(), left=0.1, scale=scale)
        stay_s = scale * 1.1 * 1000.0 / RATES[before]
        assert found["saves_s"] < found["left_s"] == pytest.approx(stay_s)
        assert -found["extra_usd"] < found["left_usd"] == pytest.approx(stay_s * before * 1e-3)


def test_a_job_of_unknown_work_gets_no_figures() -> None:
    found = reason(on(2), Allocation("T4", ((1, 4),)), "round", planned(), 1.0, scale=None)
    assert "saves_s" not in found


def test_a_job_is_squeezed_for_one_that_gets_its_gpus_and_waits_only_where_nodes_come() -> None:
    held = {"1": Allocation("T4", ((1, 4),)), "2": Allocation("T4", ((2, 4),))}
    after = {"1": Allocation("T4", ((1, 2),)), "2": Allocation("T4", ((2, 2),))}
    after["3"] = Allocation("T4", ((2, 2),))
    found = reasons.changes(held, after, dict)
    assert found == {"1": reasons.Change(None, None), "2": reasons.Change("3", None)}
    assert reasons.changes(held, after, lambda: {"T4": 90.0})["2"] == reasons.Change("3", 90.0)
    assert "wait_s" not in reason(on(4), after["2"], None, None, 1.0, found["2"])


def test_the_same_gpus_elsewhere_are_only_other_nodes() -> None:
    found = reason(on(2), Allocation("T4", ((9, 2),)), "plan", planned(), left=1.0)
    assert found["why"] == "nodes"
    assert "saves_s" not in found
    job = replace(on(2), why=found)
    assert text_of(job, Allocation("T4", ((9, 2),))).endswith("2×T4: moves to other nodes")


@pytest.mark.parametrize(
    ("saves", "extra", "said"),
    [
        (212.4, 0.312, "saves 3.5 min for $0.31"),
        (212.4, -0.05, "saves 3.5 min and $0.050"),
        (3.84, 0.0042, "saves 3.8 s for $0.0042"),
        (-38.0, -0.22, "cheaper: 38 s later, saves $0.22"),
        (0.0, -0.22, "cheaper: as fast, saves $0.22"),
        (-38.0, 0.22, "38 s later, for $0.22 more"),
    ],
)
def test_figures_are_worded_by_what_they_mean(saves: float, extra: float, said: str) -> None:
    left = {"left_s": 300.0, "left_usd": 2.0}
    why = {"why": "epoch", "epoch": 2, "saves_s": saves, "extra_usd": extra, **left}
    text = text_of(replace(on(2), why=why), Allocation("T4", ((1, 4),)))
    assert text == f"job 1 (resnet18) → 4×T4: epoch 3 begins; {said}"


def test_another_type_than_planned_is_named() -> None:
    job = replace(on(2, share=Share("A100", 8)), why={"why": "short", "epoch": 1})
    text = text_of(job, Allocation("T4", ((1, 1),)))
    assert text.endswith("1×T4: GPUs are short (8×A100 planned)")


# The store


def test_a_job_that_was_stored_before_there_were_reasons_loads() -> None:
    row = job_row(running(1, why={"why": "plan", "from": ["T4", 2]}))
    assert job_of(row).why == {"why": "plan", "from": ["T4", 2]}
    old = json.loads(row["record"])
    del old["why"]
    assert job_of({**row, "record": json.dumps(old)}).why == {}
