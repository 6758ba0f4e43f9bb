"""What the service believes of a class, stored and there again after a restart."""

import json
from dataclasses import replace

from boa.model.layouts import Trial
from boa.model.records import Cell, ClassRecord
from boa.model.service import ClassPrior
from boa.plots.profile import profile_text
from boa.scheduler.learn.profiler import Profiler
from profiling import (
    TYPES,
    job,
    on,
    packed,
    profiler,
    ran,
    report,
    took,
)


def restarted(before: Profiler, cells: list[Cell], classes: list[ClassRecord]) -> Profiler:
    after = Profiler(before.gpu_types, before._priors, began=0.0)
    stored = [
        ClassRecord(name=c.name, document=json.loads(json.dumps(c.document))) for c in classes
    ]
    after.load(cells, stored)
    return after


def test_a_restart_forgets_nothing() -> None:
    of = profiler(ClassPrior(name="net", arrivals_per_hour=3.0))
    told = job(epochs=2, min=1, max=16, weight=2.0)
    of.arrived(told, 10.0)
    for epoch in (0, 1):
        ran(of, packed(TYPES["T4"], 4), rate=7.0 + epoch, epoch=epoch)
    ran(of, on("T4", 2, 2), rate=5.0)
    of.epoch_done(told, 0, 4000.0)
    of.rescaled(told, took(12.0))
    of.ended(replace(told, state="succeeded", epoch=2, progress=10.0), 500.0)
    cells, classes = of.drain()
    after = restarted(of, cells, classes)
    assert after.workload(1000.0) == of.workload(1000.0)
    assert after.document("net", 1000.0) == of.document("net", 1000.0)
    assert after.tried("net") == of.tried("net")
    assert after.drain() == ([], []), "nothing has changed since"


def test_only_what_changed_is_stored_and_again_if_that_failed() -> None:
    of = profiler()
    of.arrived(job(), 0.0)
    ran(of, on("T4", 1), rate=1.0)
    cells, classes = of.drain()
    assert (len(cells), [c.name for c in classes]) == (1, ["net"])
    assert of.drain() == ([], [])
    of.keep(cells, classes)
    ran(of, on("T4", 1), rate=3.0)
    again, same = of.drain()
    assert [c.key for c in again] == [cells[0].key]
    assert again[0].reports == 2, "as it is by now"
    assert same == classes


def test_measurements_of_a_class_that_was_never_stored_are_passed_over() -> None:
    of = profiler()
    of.arrived(job(), 0.0)
    ran(of, on("T4", 1), rate=1.0)
    cells, _ = of.drain()
    assert restarted(of, cells, []).classes() == []


def test_layouts_that_jobs_have_tried_are_learned_shown_and_kept() -> None:
    of, told = profiler(), job(run=on("T4", 2), max=16)
    of.arrived(told, 0.0)
    slow = Trial(
        gpu="T4", width=2, nodes=1, layout="fsdp", local_batch=4, batch=8, step_s=2.0, why="fits"
    )
    fast = replace(slow, layout="ddp", step_s=1.0, peak_bytes=3)
    failed = replace(slow, layout="ddp", local_batch=8, step_s=None, out_of_memory=True)
    for n, trials in enumerate([(slow,), (failed, fast), (failed, fast)]):
        of.reported(told, None, replace(report(float(n), 0.0), layouts=trials))
    cells, classes = of.drain()
    assert of.layouts("net", "T4") == [slow, failed, fast]
    assert of.layouts("net", "A100") == of.layouts("other", "T4") == []
    of.reported(told, None, replace(report(3.0, 0.0), layouts=(replace(fast, step_s=1.01),)))
    assert of.drain() == ([], []), "hardly another time is no news"
    after = restarted(of, cells, classes)
    assert after.layouts("net", "T4") == [slow, failed, fast]
    document = after.document("net", 0.0)
    assert document is not None
    rows = document["gpu_types"][0]["layouts"]
    assert [(row["layout"], row["local_batch"], row["fastest"]) for row in rows] == [
        ("ddp", 4, True),
        ("ddp", 8, False),
        ("fsdp", 4, False),
    ]
    assert [row["samples_per_s"] for row in rows] == [8.0, None, 4.0]
    text = profile_text(document)
    assert "8.00 samples/s, 4 samples at a time" in text
    assert "out of memory with 8 samples at a time" in text


def test_layouts_that_a_run_cannot_have_tried_are_not_believed() -> None:
    of, told = profiler(), job(run=on("T4", 2), max=4)
    of.arrived(told, 0.0)
    known = Trial(gpu="T4", width=4, nodes=1, layout="ddp", local_batch=1, out_of_memory=True)
    others = (replace(known, width=5), replace(known, gpu="A100"), known)
    of.reported(told, None, replace(report(0.0, 0.0), layouts=others))
    assert of.layouts("net", "T4") == [known]
    assert of.layouts("net", "A100") == []
