"""Theorem "BOA in heterogeneous systems": per-epoch routing p_ij^(h), without rescaling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import boa
from boa.model.speedup import Amdahl
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.solver.convex import fractional_optimum
from paper.formulas import best_mixture, combined, epoch_options
from strategies import workloads

small = workloads(max_classes=2, max_epochs=2, max_width=3)
factors = st.sampled_from([1.0, 1.05, 1.3, 2.0, 5.0])


@given(workload=small, factor=factors)
def test_per_epoch_routing_equals_the_best_mixture_of_all_whole_widths(
    workload: Workload, factor: float
) -> None:
    """The theorem's program over whole widths is an LP: the hull of every combination."""
    options = [
        (c, [(time, cost) for _, _, time, cost in epoch_options(workload, c, e)])
        for c in workload.classes
        for e in c.epochs
    ]
    spend, objective = combined(workload, options)
    budget = float(spend.min()) * factor
    found = boa.plan(workload, budget, rescaling=False, routing="epoch")
    assert found.objective == pytest.approx(best_mixture(spend, objective, budget), rel=1e-9)


@given(workload=workloads(), factor=factors)
def test_routes_are_shares_of_every_epoch_and_at_most_one_class_is_split(
    workload: Workload, factor: float
) -> None:
    cheapest = boa.frontier(workload, rescaling=False, routing="epoch").cheapest
    found = boa.plan(workload, cheapest * factor, rescaling=False, routing="epoch")
    split = set()
    for planned, job_class in zip(found.plan.classes, workload.classes, strict=True):
        assert len(planned.routes) == len(job_class.epochs)
        for routes in planned.routes:
            assert sum(route.share for route in routes) == pytest.approx(1.0)
            if len(routes) > 1:
                split.add(planned.name)
    assert len(split) <= 1


@given(workload=workloads(), factor=factors)
def test_fractional_widths_are_never_worse_than_whole_ones(
    workload: Workload, factor: float
) -> None:
    whole = boa.frontier(workload, rescaling=False, routing="epoch")
    budget = whole.cheapest * factor
    found = fractional_optimum(workload, budget)
    assert found.objective <= whole.at(budget).objective * (1 + 1e-9)


@given(workload=workloads(max_types=1), factor=factors)
def test_one_gpu_type_is_the_homogeneous_theorem(workload: Workload, factor: float) -> None:
    """With a single type there is nothing to route: both routings give the same optimum."""
    budget = boa.frontier(workload, rescaling=False).cheapest * factor
    by_class = boa.plan(workload, budget, rescaling=False)
    by_epoch = boa.plan(workload, budget, rescaling=False, routing="epoch")
    assert by_class.objective == pytest.approx(by_epoch.objective, rel=1e-9)


def test_every_epoch_goes_to_the_type_that_suits_it() -> None:
    """Worked by hand: the first epoch is four times faster on the dear type, the second is not."""
    types = {
        "T4": GpuType(name="T4", price=1.0),
        "A100": GpuType(name="A100", price=3.0),
    }
    flat = Amdahl(0.0)
    job_class = JobClass(
        name="only",
        arrivals_per_hour=1.0,
        epochs=(
            Epoch(work=3600.0, speedups={"T4": flat, "A100": Amdahl(0.0, 4.0)}),
            Epoch(work=3600.0, speedups={"T4": flat, "A100": flat}),
        ),
        max_gpus=1,
    )
    workload = Workload(gpu_types=types, classes=(job_class,))
    # 3/4 dollars on the A100 and 1 on the T4; keeping to one type costs 2 or 3 3/4.
    found = boa.plan(workload, 1.75, rescaling=False, routing="epoch")
    routes = [[(r.gpu_type, r.share) for r in routes] for routes in found.plan["only"].routes]
    assert routes == [[("A100", 1.0)], [("T4", 1.0)]]
    assert found.objective == pytest.approx(900 + 3600)
    with pytest.raises(boa.BudgetTooSmall) as caught:
        boa.plan(workload, 1.75, rescaling=False)
    assert caught.value.needed == pytest.approx(2.0)
