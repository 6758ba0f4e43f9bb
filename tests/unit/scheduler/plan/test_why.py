"""Why a class has its widths, in figures and in words."""

import re

import pytest

import boa
from boa.model.speedup import Amdahl, Table
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.scheduler.plan.why import MOST_WIDTHS, why
from boa.solver.solution import Solution
from fakes import FakeService
from integration.runner import Boa
from learned import learned, learned_on
from unit.server.routes.test_money import plan_state

T4 = GpuType(name="T4", price=1.0, gpus_per_node=4)


def workload(*epochs: Epoch, **fields: object) -> Workload:
    one = JobClass(name="one", arrivals_per_hour=2.0, epochs=epochs, **fields)  # type: ignore[arg-type]
    return Workload(gpu_types={"T4": T4}, classes=(one,))


def epoch(work: float, *rates: float) -> Epoch:
    return Epoch(work=work, speedups={"T4": Table.of(dict(enumerate(rates, start=1)))})


STEEP = workload(
    epoch(3600.0, 1.0, 1.1, 1.15, 1.2), epoch(36_000.0, 1.0, 1.9, 2.7, 3.4), max_gpus=4
)


def solved(of: Workload, factor: float) -> Solution:
    return boa.plan(of, boa.frontier(of).cheapest * factor)


def test_every_stretch_lists_all_widths_with_time_and_cost_of_the_whole_stretch() -> None:
    found = why(solved(STEEP, 1.1), "one")
    assert found is not None
    for variant in found.variants:
        at = 0
        for stretch in variant.epochs:
            assert stretch.first_epoch == at
            at = stretch.last_epoch + 1
            assert [choice.width for choice in stretch.choices] == [1, 2, 3, 4]
            for choice in stretch.choices:
                assert choice.cost_usd == pytest.approx(choice.width * choice.time_s / 3600)
            for narrow, wide in zip(stretch.choices, stretch.choices[1:], strict=False):
                assert wide.saves_s == pytest.approx(narrow.time_s - wide.time_s)
                assert wide.extra_usd == pytest.approx(wide.cost_usd - narrow.cost_usd)
            assert stretch.choices[0].saves_s is stretch.choices[0].extra_usd is None
        assert at == 2


def test_time_and_cost_add_up_to_those_of_the_plan() -> None:
    solution = solved(STEEP, 1.3)
    found = why(solution, "one")
    assert found is not None
    time = cost = 0.0
    for variant in found.variants:
        for stretch in variant.epochs:
            (planned,) = (c for c in stretch.choices if c.width == stretch.width)
            time += variant.share * planned.time_s
            cost += variant.share * planned.cost_usd
    assert time == pytest.approx(solution.outcome.classes[0].jct)
    assert cost == pytest.approx(solution.outcome.classes[0].cost)


def test_the_words_hold_the_planned_width_against_its_neighbours_at_the_exchange_rate() -> None:
    found = why(solved(STEEP, 1.1), "one")
    assert found is not None
    assert found.seconds_per_usd > 0
    rates = r"going from (\d+) to (\d+) saves .* \(([\d,]+) s per dollar\), (just )?worth it: "
    for said in found.words:
        match = re.search(rates + r"elsewhere a dollar saves ([\d,]+) s", said)
        if match:
            worth, elsewhere = (float(match[n].replace(",", "")) for n in (3, 5))
            assert worth >= elsewhere
        match = re.search(r"would save .* \(([\d,]+) s per dollar\): not worth it", said)
        if match:
            assert float(match[1].replace(",", "")) <= found.seconds_per_usd + 0.5
    assert any("worth it" in said for said in found.words)


def test_where_the_budget_is_no_limit_the_fastest_width_needs_no_reason() -> None:
    found = why(solved(STEEP, 10.0), "one")
    assert found is not None
    assert found.seconds_per_usd == 0.0
    assert all(said.endswith("the budget is no limit.") for said in found.words)


def test_a_class_with_one_width_has_no_choice() -> None:
    found = why(solved(workload(epoch(3600.0, 1.0), max_gpus=1), 1.0), "one")
    assert found is not None
    assert found.words == ("The job on 1×T4: the only width that it may have now.",)


def test_two_variants_are_as_good_as_each_other_and_the_budget_ends_between_them() -> None:
    found = why(solved(workload(epoch(3600.0, 1.0, 1.5), max_gpus=2), 1.1), "one")
    assert found is not None
    assert len(found.variants) == 2
    assert any("as good, but the budget is used up" in said for said in found.words)
    assert any("just worth it" in said for said in found.words)
    assert all(re.match(r"For [\d.]+ % of its jobs: The job on", said) for said in found.words)


def test_of_many_widths_the_planned_one_and_those_beside_it_are_among_those_told() -> None:
    wide = workload(Epoch(work=1e6, speedups={"T4": Amdahl(0.999)}), max_gpus=1000)
    found = why(solved(wide, 1.4), "one")
    assert found is not None
    for variant in found.variants:
        (stretch,) = variant.epochs
        widths = [choice.width for choice in stretch.choices]
        assert len(widths) <= MOST_WIDTHS
        assert {stretch.width - 1, stretch.width, stretch.width + 1} <= set(widths)
        assert (widths[0], widths[-1]) == (1, 1000)
        assert widths == sorted(widths)


def test_a_class_that_the_plan_does_not_know_has_no_reasons() -> None:
    assert why(solved(STEEP, 1.1), "other") is None


def test_show_prints_the_words_below_what_was_learned_of_a_class(
    run: Boa, service: FakeService
) -> None:
    service.control.plan = plan_state()
    service.control.documents["small"] = document = learned("small", [learned_on("T4")])
    words = why(service.control.plan.solution, "small")
    assert words is not None
    said = " ".join(run("show", "small").split())
    assert "Why these widths" in said
    for sentence in words.words:
        assert sentence in said
    assert run.json("show", "small") == document
