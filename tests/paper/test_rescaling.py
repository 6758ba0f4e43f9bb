"""Theorem "JCT and budget under rescaling": the formulas, worked by hand, and their optimum."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import boa
from boa.model.plan import ClassPlan, Plan, Variant
from boa.model.speedup import Table
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.solver.objective import Rules, evaluate
from paper.formulas import best_mixture, best_pure, combined, sequences
from strategies import workloads

CURVE = Table.of({1: 1.0, 2: 1.6, 4: 2.5})


def example() -> Workload:
    """Two jobs an hour of three epochs with r = 60 s; one an hour of one epoch with r = 100 s."""
    vision = JobClass(
        name="vision",
        arrivals_per_hour=2.0,
        rescale_s=60.0,
        epochs=tuple(Epoch(work=x, speedups={"T4": CURVE}) for x in (800.0, 1600.0, 1000.0)),
    )
    speech = JobClass(
        name="speech",
        arrivals_per_hour=1.0,
        rescale_s=100.0,
        epochs=(Epoch(work=3500.0, speedups={"T4": CURVE}),),
    )
    return Workload(gpu_types={"T4": GpuType(name="T4")}, classes=(vision, speech))


def widths(**of_class: tuple[float, ...]) -> Plan:
    return Plan(
        tuple(
            ClassPlan(name=name, variants=(Variant(1.0, ("T4",) * len(k), k),))
            for name, k in of_class.items()
        )
    )


def test_the_formulas_on_a_worked_example() -> None:
    """vision on 2, 2, 4 GPUs: 800/1.6 + 60, 1600/1.6, 1000/2.5 + 60 s; speech on 1: 3500 + 100 s.

    JCTs 2020 s and 3600 s; GPU-seconds 2·560 + 2·1000 + 4·460 = 4960 and 3600.
    """
    outcome = evaluate(example(), widths(vision=(2, 2, 4), speech=(1,)))
    vision, speech = outcome.classes
    assert [vision.jct, speech.jct] == pytest.approx([2020.0, 3600.0])
    assert [vision.rescalings, speech.rescalings] == [2, 1]
    assert vision.spend == pytest.approx(2 * 4960 / 3600)
    assert speech.spend == pytest.approx(1.0)
    assert outcome.average_jct == pytest.approx((2 * 2020 + 3600) / 3)
    assert outcome.spend == pytest.approx(2 * 4960 / 3600 + 1.0)


def test_the_first_start_is_a_rescaling_like_any_other() -> None:
    """It is no constant either: on 4 GPUs the same start costs four times as much."""
    free = Rules(rescaling=False)
    for k in (1.0, 2.0, 4.0):
        plan = widths(vision=(k, k, k), speech=(k,))
        with_start, without = evaluate(example(), plan), evaluate(example(), plan, free)
        assert with_start.classes[1].jct - without.classes[1].jct == pytest.approx(100.0)
        started = with_start.spend - without.spend
        assert started == pytest.approx(k * (2 * 60 + 100) / 3600)


def test_going_back_to_an_earlier_width_is_another_rescaling() -> None:
    outcome = evaluate(example(), widths(vision=(2, 4, 2), speech=(1,)))
    assert outcome.classes[0].rescalings == 3


def test_rescaling_is_worth_it_only_when_it_saves_more_than_it_takes() -> None:
    """The optimum keeps one width through the epochs when r is large, and changes when small."""
    flat = Table.of({1: 1.0, 2: 1.05})
    steep = Table.of({1: 1.0, 2: 1.95})
    gpus = {"T4": GpuType(name="T4")}

    def planned(rescale_s: float) -> tuple[float, ...]:
        epochs = tuple(Epoch(work=1000.0, speedups={"T4": c}) for c in (flat, steep))
        only = JobClass(
            name="only", arrivals_per_hour=1, rescale_s=rescale_s, epochs=epochs, max_gpus=2
        )
        workload = Workload(gpu_types=gpus, classes=(only,))
        found = boa.plan(workload, boa.frontier(workload).cheapest * 1.2, deterministic=True)
        return found.plan["only"].variants[0].widths

    assert planned(1.0) == (1, 2)
    assert planned(2000.0) == (1, 1)


@given(
    workload=workloads(max_types=1, max_classes=2, max_epochs=3, max_width=4, rescaling=True),
    factor=st.sampled_from([1.0, 1.02, 1.2, 1.6, 3.0]),
)
def test_exact_is_the_best_of_every_width_sequence(workload: Workload, factor: float) -> None:
    """One sequence per class as the theorem has it, and mixed as our plans may be."""
    options = [
        (c, [(jct, cost) for _, _, jct, cost in sequences(workload, c)]) for c in workload.classes
    ]
    spend, objective = combined(workload, options)
    budget = float(spend.min()) * factor
    one_each = boa.plan(workload, budget, deterministic=True)
    assert one_each.objective == pytest.approx(best_pure(spend, objective, budget), rel=1e-9)
    mixed = boa.plan(workload, budget)
    assert mixed.objective == pytest.approx(best_mixture(spend, objective, budget), rel=1e-9)
