"""Definition "Heterogeneous BOA with rescaling": a type for life, p_i^(h) and k_ij^(h)."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import boa
from boa.model.plan import ClassPlan, Plan, Variant
from boa.model.speedup import Amdahl
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.solver.objective import evaluate
from paper.formulas import best_mixture, combined, sequences
from strategies import workloads

small = workloads(max_classes=2, max_epochs=3, max_width=3)
factors = st.sampled_from([1.0, 1.03, 1.2, 1.7, 3.0])


@given(workload=small, factor=factors)
def test_boa_equals_the_best_mixture_of_all_sequences_on_all_types(
    workload: Workload, factor: float
) -> None:
    options = [
        (c, [(jct, cost) for _, _, jct, cost in sequences(workload, c)]) for c in workload.classes
    ]
    spend, objective = combined(workload, options)
    budget = float(spend.min()) * factor
    found = boa.plan(workload, budget)
    assert found.objective == pytest.approx(best_mixture(spend, objective, budget), rel=1e-9)


@given(workload=workloads(), factor=factors)
def test_a_job_stays_on_its_type_and_shares_add_up(workload: Workload, factor: float) -> None:
    found = boa.plan(workload, boa.frontier(workload).cheapest * factor)
    for planned, job_class in zip(found.plan.classes, workload.classes, strict=True):
        assert sum(v.share for v in planned.variants) == pytest.approx(1.0)
        for variant in planned.variants:
            assert len(set(variant.gpu_types)) == 1
            assert len(variant.widths) == len(job_class.epochs)


@given(
    workload=workloads(max_classes=1, max_epochs=2, max_types=2, max_width=3, gaps=False),
    share=st.sampled_from([0.0, 0.1, 0.35, 0.5, 0.8, 1.0]),
)
def test_no_policy_of_the_definition_beats_boa_at_its_own_spend(
    workload: Workload, share: float
) -> None:
    """Any p and any widths per type, priced by hand, against the optimum for what they cost."""
    (job_class,) = workload.classes
    by_type = {
        gpu: [s for s in sequences(workload, job_class) if s[0] == gpu]
        for gpu in workload.gpu_types
    }
    shares = [share, 1.0 - share] if len(by_type) == 2 else [1.0]
    for chosen in product(*(found[:: max(1, len(found) // 4)] for found in by_type.values())):
        jct = sum(p * s[2] for p, s in zip(shares, chosen, strict=True))
        spend = job_class.arrivals_per_hour * sum(
            p * s[3] for p, s in zip(shares, chosen, strict=True)
        )
        assert boa.plan(workload, spend).objective <= jct * (1 + 1e-9)


def test_the_formulas_on_a_worked_example() -> None:
    """30 % on two A100s: 3600/8 + 90 s at 2 · 3 $/h; 70 % on one T4: 3600 + 90 s at 1 $/h."""
    types = {"T4": GpuType(name="T4", price=1.0), "A100": GpuType(name="A100", price=3.0)}
    only = JobClass(
        name="only",
        arrivals_per_hour=10.0,
        rescale_s=90.0,
        epochs=(Epoch(work=3600.0, speedups={"T4": Amdahl(1.0), "A100": Amdahl(1.0, 4.0)}),),
    )
    variants = (Variant(0.7, ("T4",), (1,)), Variant(0.3, ("A100",), (2,)))
    plan = Plan((ClassPlan(name="only", variants=variants),))
    outcome = evaluate(Workload(gpu_types=types, classes=(only,)), plan)
    assert outcome.average_jct == pytest.approx(0.7 * 3690 + 0.3 * 540)
    assert outcome.spend == pytest.approx(10 * (0.7 * 3690 * 1 + 0.3 * 540 * 6) / 3600)
    assert outcome.classes[0].rescalings == pytest.approx(1.0)
