"""When a running job changes over to a newer plan: single cases.

`tests/property/test_hysteresis.py` holds the rule against the formulas.
"""

import math
import time
from dataclasses import replace
from pathlib import Path

from boa.model.cluster import Allocation, ClusterView, JobView, Share
from boa.model.plan import ClassPlan, Plan, Variant
from boa.model.speedup import Floats, Table
from boa.model.trace import TraceJob
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.model.workload_file import load_workload
from boa.policy.boa import Boa, Planned, planned_of
from boa.solver.planner import plan as solve

TYPES = {"T4": GpuType(name="T4", gpus_per_node=4), "V100": GpuType(name="V100", gpus_per_node=4)}


class Unknown:
    def rates(self, gpu: str, epoch: int) -> Floats | None:
        return None


def job(
    width: int = 0, note: Variant | None = None, gpu: str = "T4", service: float = 1.0
) -> JobView:
    """One that holds so many GPUs; 0: none."""
    return JobView(
        id="1",
        job_class="net",
        arrival=0.0,
        serial=0,
        epoch=0,
        prediction=Unknown(),
        asked=TraceJob(name="1", arrival_s=0.0, application="net"),
        allocation=Allocation(gpu, ((0, width),)) if width else None,
        service=service,
        note=note,
    )


def plan_of(widths: tuple[int, ...], rescale_s: float = 60.0) -> Planned:
    """A plan that gives everyone these widths, where only time counts: money is left over."""
    curve = Table.of({1: 1.0, 2: 1.8, 4: 3.0, 8: 3.1})
    epochs = (Epoch(work=3600.0, speedups={"T4": curve}),) * len(widths)
    net = JobClass(name="net", arrivals_per_hour=1.0, epochs=epochs, rescale_s=rescale_s)
    solution = solve(Workload(gpu_types=TYPES, classes=(net,)), 1e6)
    assert solution.shadow_price == 0
    variant = Variant(1.0, ("T4",) * len(widths), widths)
    plan = Plan((ClassPlan(name="net", variants=(variant,)),))
    return planned_of(replace(solution, plan=plan), version=1, at=0.0)


def decided(planned: Planned, seen: JobView) -> Share:
    view = ClusterView(now=9.0, jobs=[seen], nodes=(), gpu_types=TYPES, memory=planned)
    return Boa(1.0, replan_s=math.inf).decide(view).shares["1"]


def constant(width: int, epochs: int = 1, gpu: str = "T4") -> Variant:
    return Variant(1.0, (gpu,) * epochs, (width,) * epochs)


def test_a_large_gain_is_worth_a_rescaling() -> None:
    assert decided(plan_of((4,)), job(1, constant(1))).width == 4


def test_a_gain_smaller_than_the_margin_is_not() -> None:
    """From 1200 s to 1161 s, and for free."""
    assert decided(plan_of((8,), rescale_s=0.0), job(4, constant(4))).width == 4


def test_a_gain_that_the_rescaling_eats_is_not() -> None:
    """From 2000 s to 1200 s and r."""
    assert decided(plan_of((4,), rescale_s=600.0), job(2, constant(2))).width == 4
    assert decided(plan_of((4,), rescale_s=750.0), job(2, constant(2))).width == 2


def test_rescalings_to_come_count_too() -> None:
    """To stay means 2 GPUs, then 4, at r; to move means 4 for good, at r as well."""
    old = Variant(1.0, ("T4", "T4"), (2, 4))
    for rescale_s in (60.0, 600.0, 6000.0):
        assert decided(plan_of((4, 4), rescale_s), job(2, old)).width == 4
    assert decided(plan_of((4, 4), 60_000.0), job(2, old)).width == 2, "not worth 5 % any more"


def test_where_a_job_is_moved_anyway_only_the_rest_counts() -> None:
    """It holds 1 GPU and its old plan wants 2 from here on: r is paid either way."""
    assert decided(plan_of((4,), rescale_s=700.0), job(1, constant(2))).width == 4


def test_a_job_that_waits_is_dealt_anew() -> None:
    share = decided(plan_of((4,), rescale_s=1e6), job(0, constant(1), service=0.0))
    assert share.width == 4


def test_a_job_that_lost_its_gpus_pays_for_a_start_either_way() -> None:
    assert decided(plan_of((8,), rescale_s=60.0), job(0, constant(4))).width == 4
    assert decided(plan_of((4,), rescale_s=60.0), job(0, constant(2))).width == 4


def test_a_job_that_was_started_without_a_plan_goes_on_with_what_it_holds_or_changes_over() -> None:
    assert decided(plan_of((4,)), job(1)).width == 4
    kept = decided(plan_of((4,), rescale_s=1e5), job(1))
    assert (kept.width, kept.until, kept.note) == (1, None, constant(1))


def test_a_job_on_gpus_that_are_no_longer_known_to_run_it_changes_over() -> None:
    for gpu in ("V100", "H100"):
        share = decided(plan_of((1,), rescale_s=1e5), job(2, constant(2, gpu=gpu), gpu=gpu))
        assert (share.gpu, share.width) == ("T4", 1)


def test_a_variant_of_fewer_epochs_than_the_class_has_now_goes_on_as_it_ended() -> None:
    share = decided(plan_of((8, 8, 8), rescale_s=0.0), job(4, constant(4)))
    assert (share.width, share.note) == (4, constant(4))


def test_a_thousand_jobs_are_decided_in_milliseconds(examples: Path) -> None:
    workload = load_workload(examples / "newtrace-hetero.yaml")
    before = planned_of(solve(workload, 100.0), version=1, at=0.0)
    after = planned_of(solve(workload, 140.0), version=2, at=1.0, plans=2)
    classes = workload.classes
    jobs = [
        replace(
            job(service=0.0),
            id=str(n),
            job_class=classes[n % 5].name,
            serial=n,
            epoch=n % len(classes[n % 5].epochs),
        )
        for n in range(1000)
    ]
    view = ClusterView(now=0.0, jobs=jobs, nodes=(), gpu_types=workload.gpu_types, memory=before)
    policy = Boa(1.0, replan_s=math.inf)
    had = policy.decide(view).shares
    running = [
        replace(j, note=s.note, service=1.0, allocation=Allocation(s.gpu, ((0, s.width),)))
        for j in jobs
        for s in [had[j.id]]
    ]
    took = []
    for _ in range(10):
        began = time.perf_counter()
        policy.decide(replace(view, jobs=running, memory=after))
        took.append(time.perf_counter() - began)
    assert min(took) < 0.02, "5 ms, on a machine that has other things to do"
