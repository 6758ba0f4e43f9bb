"""A class's `max_jct_s`: a cap on its mean JCT, kept at the least loss to everybody else."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boa
from boa.model import Amdahl, Epoch, GpuType, JobClass, Workload
from strategies import workloads


@st.composite
def capped_workloads(draw: st.DrawFn) -> Workload:
    """Caps anywhere between a class's fastest and its cheapest JCT."""
    workload = draw(workloads())
    classes = []
    for job_class in workload.classes:
        alone = dataclasses.replace(workload, classes=(job_class,))
        ends = boa.frontier(alone).average_jcts
        cap = float(ends[-1] + draw(st.floats(0.0, 1.1)) * (ends[0] - ends[-1]))
        capped = draw(st.booleans())
        classes.append(dataclasses.replace(job_class, max_jct_s=cap if capped else None))
    return dataclasses.replace(workload, classes=tuple(classes))


@given(workload=capped_workloads(), factor=st.sampled_from([1.0, 1.05, 1.3, 2.0]))
def test_every_cap_is_kept_within_the_budget(workload: Workload, factor: float) -> None:
    budget = boa.frontier(workload).cheapest * factor
    found = boa.plan(workload, budget)
    assert found.spend <= budget * (1 + 1e-9)
    for job_class, got in zip(workload.classes, found.outcome.classes, strict=True):
        if job_class.max_jct_s is not None:
            assert got.jct <= job_class.max_jct_s * (1 + 1e-9)


@given(workload=capped_workloads(), factor=st.sampled_from([1.0001, 1.05, 1.3, 2.0]))
def test_capped_plans_equal_the_monolithic_program(workload: Workload, factor: float) -> None:
    budget = boa.frontier(workload).cheapest * factor
    exact = boa.plan(workload, budget)
    check = boa.plan(workload, budget, solver="milp")
    assert exact.objective == pytest.approx(check.objective, rel=1e-5)


@settings(max_examples=40)
@given(workload=capped_workloads(), factor=st.sampled_from([1.05, 1.3, 2.0]))
def test_capped_deterministic_plans_equal_the_integer_program(
    workload: Workload, factor: float
) -> None:
    budget = boa.frontier(workload).cheapest * factor
    found: list[float | None] = []
    for solver in ("exact", "milp"):
        try:
            answer = boa.plan(workload, budget, solver=solver, deterministic=True, gap=0.0)
        except boa.errors.NoSinglePlan:
            found.append(None)
        else:
            found.append(answer.objective)
            for job_class, got in zip(workload.classes, answer.outcome.classes, strict=True):
                cap = job_class.max_jct_s
                assert cap is None or got.jct <= cap * (1 + 1e-6)
    assert found[0] == (found[1] and pytest.approx(found[1], rel=1e-5))


@given(workload=capped_workloads())
def test_a_cap_never_makes_the_cheapest_spend_smaller(workload: Workload) -> None:
    free = dataclasses.replace(
        workload,
        classes=tuple(dataclasses.replace(c, max_jct_s=None) for c in workload.classes),
    )
    assert boa.frontier(workload).cheapest >= boa.frontier(free).cheapest * (1 - 1e-9)


def test_a_cap_one_rounding_error_above_the_fastest_jct_is_kept() -> None:
    """Found by Hypothesis: the mixture that meets such a cap costs as much as the vertex."""
    curve = {"T4": Amdahl(0.533, 0.5525)}
    job = JobClass(
        name="job",
        arrivals_per_hour=0.5,
        epochs=(Epoch(work=11.99, speedups=curve),),
        max_gpus=2,
        max_jct_s=15.91794570135747,
    )
    workload = Workload(gpu_types={"T4": GpuType(name="T4", price=0.5)}, classes=(job,))
    assert boa.frontier(workload).cheapest == pytest.approx(boa.plan(workload, 1.0).spend)


@given(workload=workloads(), factor=st.floats(0.1, 0.99))
def test_a_cap_that_no_width_reaches_is_refused(workload: Workload, factor: float) -> None:
    first = workload.classes[0]
    alone = dataclasses.replace(workload, classes=(first,))
    cap = boa.frontier(alone).fastest_jct * factor
    impossible = dataclasses.replace(
        workload, classes=(dataclasses.replace(first, max_jct_s=cap), *workload.classes[1:])
    )
    with pytest.raises(boa.InputError, match=r"classes\[0\]\.max_jct_s"):
        boa.frontier(impossible)
