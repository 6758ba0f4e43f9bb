"""When a running job changes over to a newer plan: single cases.

`tests/property/test_hysteresis.py` holds the rule against the formulas.
"""

import math
import time
from dataclasses import replace
from pathlib import Path

import pytest

from boa.formats.workload import load_workload
from boa.model.cluster import Allocation, ClusterView, Decision, JobView, Share
from boa.model.plan import ClassPlan, Plan, Variant
from boa.model.speedup import Floats, Table
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.policy.boa import Boa, Planned, planned_of
from boa.policy.registry import Choice
from boa.sim.run import simulate
from boa.sim.settings import Settings
from boa.solver.planner import plan as solve
from simulations import job as trace_job
from simulations import world

LEFT = (1.0, 0.5, 0.15, 0.12, 0.05, 0.0)
TYPES = {"T4": GpuType(name="T4", gpus_per_node=4), "V100": GpuType(name="V100", gpus_per_node=4)}


class Unknown:
    def rates(self, gpu: str, epoch: int) -> Floats | None:
        return None


def job(
    width: int = 0,
    note: Variant | None = None,
    gpu: str = "T4",
    service: float = 1.0,
    epoch: int = 0,
    left: float = 1.0,
) -> JobView:
    """One that holds so many GPUs; 0: none."""
    return JobView(
        id="1",
        job_class="net",
        arrival=0.0,
        serial=0,
        epoch=epoch,
        left=left,
        prediction=Unknown(),
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
    return Boa().decide(view).shares["1"]


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


def test_near_the_end_of_its_last_epoch_a_job_stays() -> None:
    """It has 3600 s on 1 GPU, 1200 s on 4, or that part of it; and r is 300 s."""
    planned = plan_of((4,), rescale_s=300.0)
    widths = {left: decided(planned, job(1, constant(1), left=left)).width for left in LEFT}
    assert widths == {1.0: 4, 0.5: 4, 0.15: 4, 0.12: 1, 0.05: 1, 0.0: 1}


def test_epochs_to_come_are_left_however_little_is_of_this_one() -> None:
    for left in LEFT:
        seen = job(1, constant(1, epochs=2), left=left)
        assert decided(plan_of((4, 4), rescale_s=300.0), seen).width == 4
        assert decided(plan_of((4, 4), rescale_s=1e4), seen).width == 1


def test_a_job_beyond_the_epochs_of_its_plan_has_a_part_of_the_last_one_left() -> None:
    planned = plan_of((4,), rescale_s=300.0)
    assert decided(planned, job(1, constant(1), epoch=7, left=0.15)).width == 4
    assert decided(planned, job(1, constant(1), epoch=7, left=0.12)).width == 1


def test_parts_that_cannot_be_are_taken_for_the_nearest_that_can() -> None:
    """3600 s on 1 GPU or 1200 s and r on 4: worth it below 2220 s. NaN says nothing."""
    for nonsense in (1.5, math.inf, math.nan):
        seen = job(1, constant(1), left=nonsense)
        assert decided(plan_of((4,), rescale_s=2200.0), seen).width == 4
        assert decided(plan_of((4,), rescale_s=2240.0), seen).width == 1
    for nonsense in (-0.5, -math.inf):
        assert decided(plan_of((4,), rescale_s=0.0), job(1, constant(1), left=nonsense)).width == 1


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


def test_however_little_it_has_left_unless_that_is_nothing() -> None:
    def gpu(epochs: int, left: float) -> str:
        seen = job(2, constant(2, epochs, gpu="V100"), gpu="V100", left=left)
        return decided(plan_of((1,) * epochs, rescale_s=1e5), seen).gpu

    assert (gpu(1, 1e-6), gpu(1, 0.0)) == ("T4", "V100")
    assert (gpu(2, 1e-6), gpu(2, 0.0)) == ("T4", "T4")


def test_a_variant_of_fewer_epochs_than_the_class_has_now_goes_on_as_it_ended() -> None:
    share = decided(plan_of((8, 8, 8), rescale_s=0.0), job(4, constant(4)))
    assert (share.width, share.note) == (4, constant(4))


class Watching:
    """One GPU for everyone, and a look at what is left."""

    name = "watching"
    by_job = False

    def __init__(self) -> None:
        self.left: list[float] = []

    def decide(self, view: ClusterView) -> Decision:
        self.left += [seen.left for seen in view.jobs]
        return Decision(shares={seen.id: Share("T4", 1) for seen in view.jobs})


def test_the_simulator_tells_how_much_of_the_epoch_is_left() -> None:
    """100 iterations of 2 s: 15 in the first minute, after a rescaling of 30 s, then 30 in each."""
    watching = Watching()
    one = world([trace_job("a", 60.0, "steady", steps=100)], {"T4": 4})
    simulate(one, Choice(policy=watching), Settings(cluster={"T4": 1}, learning="perfect"))
    assert watching.left == pytest.approx([1.0, 0.85, 0.55, 0.25])


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
    policy = Boa()
    had = policy.decide(view).shares
    running = [
        replace(j, note=s.note, service=1.0, allocation=Allocation(s.gpu, ((0, s.width),)))
        for j in jobs
        for s in [had[j.id]]
    ]
    took = []
    for _ in range(10):
        began = time.process_time()
        policy.decide(replace(view, jobs=running, memory=after))
        took.append(time.process_time() - began)
    assert min(took) < 0.02, "5 ms, on a machine that has other things to do"
