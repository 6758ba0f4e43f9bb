"""Why a class has its widths, in figures and in words."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import boa
from boa.api.classes import ClassDocument
from boa.model.cluster import Allocation
from boa.model.speedup import Amdahl, Table
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.scheduler.learn.profiler import Profiler
from boa.scheduler.plan.why import MOST_WIDTHS, why
from boa.solver.solution import Solution
from fakes import FakeService
from integration.runner import Boa
from learned import learned, learned_on
from profiling import job, packed, profiler, ran, took
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
    assert found.words == ("The plan gives 1×T4: its jobs may have no other width.",)


def test_two_variants_are_as_good_as_each_other_and_the_budget_ends_between_them() -> None:
    found = why(solved(workload(epoch(3600.0, 1.0, 1.5), max_gpus=2), 1.1), "one")
    assert found is not None
    assert len(found.variants) == 2
    assert any("as good, but the budget is used up" in said for said in found.words)
    assert any("just worth it" in said for said in found.words)
    assert all(re.match(r"For [\d.]+ % of its jobs the plan gives", said) for said in found.words)


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


# Widths that no plan may use yet


def grown(*cells: tuple[int, float, float]) -> Profiler:
    """A class whose jobs trained at these widths: each a width, a rate and seconds."""
    of = profiler(types={"T4": T4})
    of.arrived(job(max=4), 0.0)
    of.rescaled(job(max=4), took(14.5))
    for width, rate, seconds in cells:
        ran(of, packed(T4, width), rate, seconds=seconds, max=4)
    return of


def widest_of(of: Profiler) -> tuple[ClassDocument, int]:
    document = of.document("net", 0.0)
    assert document is not None
    workload = of.workload(0.0)
    assert workload is not None
    found = why(boa.plan(workload, boa.frontier(workload).cheapest * 3), "net", document)
    assert found is not None
    return document, found.variants[0].epochs[0].choices[-1].width


def words_of(of: Profiler) -> str:
    document, _ = widest_of(of)
    workload = of.workload(0.0)
    assert workload is not None
    found = why(boa.plan(workload, boa.frontier(workload).cheapest * 3), "net", document)
    assert found is not None
    return " ".join(found.words)


def test_a_width_that_is_measured_and_not_settled_says_how_far_it_is() -> None:
    said = words_of(grown((1, 1.0, 600.0), (2, 3.6, 78.0)))
    assert (
        "2 GPUs: 3.6× so far, measured for 1.3 min of 2.4 min; until then one job in five" in said
    )
    assert "no other width is measured yet" in said
    assert "may have no other" not in said


def test_a_width_that_brings_nothing_says_so() -> None:
    said = words_of(grown((1, 1.0, 600.0), (2, 1.0, 600.0)))
    assert "2 GPUs: 1×, measured for 10 min; too little" in said


def test_a_width_that_was_never_tried_says_who_tries_it() -> None:
    assert "2 GPUs: not tried yet; one job in five" in words_of(grown((1, 1.0, 600.0)))


def test_a_class_that_has_its_most_gpus_has_no_more_to_be_told_of() -> None:
    of = grown((1, 1.0, 600.0))
    of.arrived(job(2, max=1), 0.0)
    assert words_of(of) == "The plan gives 1×T4: its jobs may have no other width."


def test_running_jobs_with_other_gpus_than_the_plan_gives_are_told_with_the_reason() -> None:
    document, _ = widest_of(of := grown((2, 1.0, 600.0), (4, 1.0, 10.0)))
    workload = of.workload(0.0)
    assert workload is not None
    solution = boa.plan(workload, boa.frontier(workload).cheapest * 3)
    running = [Allocation("T4", ((node, width),)) for node, width in ((1, 1), (2, 2), (3, 4))]
    found = why(solution, "net", document, [*running, Allocation("A100", ((4, 1),))])
    assert found is not None
    widths = {stretch.width for variant in found.variants for stretch in variant.epochs}
    assert widths == {2}
    assert found.words[1:] == (
        "1 running job has 1×A100: the GPUs of the plan are short.",
        "1 running job has 1×T4: GPUs are short.",
        "1 running job has 4×T4: a trial of that width.",
    )


@given(
    st.lists(
        st.tuples(st.integers(1, 4), st.floats(0.2, 8.0), st.floats(1.0, 900.0)),
        min_size=1,
        max_size=6,
    )
)
def test_no_reason_contradicts_the_table_above_it(cells: list[tuple[int, float, float]]) -> None:
    """The words give the table's figure of every measured width beyond those of the plan."""
    of = grown(*cells)
    document, most = widest_of(of)
    said = words_of(of)
    for sample in document["gpu_types"][0]["samples"]:
        speedup = sample["measured_speedup"]
        if sample["width"] > most and speedup is not None:
            assert f"{sample['width']} GPUs: {speedup:.3g}×" in said
            assert "there is; the budget" not in said
