"""Pictures of simulations and of comparisons: true to the numbers, readable, reproducible."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text

from boa.model.workload import GpuType
from boa.plots.comparison import comparison_picture, draw_comparison, headline, lines_of
from boa.plots.simulation import BINS, draw_simulation, simulation_picture, timeline_of
from boa.plots.style import BLUE
from boa.plots.words import Money
from boa.sim.comparison import comparisons
from boa.sim.rental import Rental
from boa.sim.report import ClusterSample, SimulationReport, Tally
from boa.sim.settings import Settings

BEGINNINGS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF", ".html": b"<!doctype html>"}
GPUS = Money(counts_gpus=True)


def report(samples: int = 1000, step: float = 60.0) -> SimulationReport:
    types = {"T4": GpuType(name="T4", price=1.0, gpus_per_node=4)}
    tally = Tally(last_end=samples * step, gpu_seconds={"T4": 7.0 * samples * step})
    tally.jcts.extend([600.0, 1800.0])
    tally.per_class["<b>nasty</b>"] = [2, 2400.0]
    series = [
        ClusterSample(n * step, n % 7, n % 3, n % 40, 40 + n % 9, None if n < samples / 2 else 0.7)
        for n in range(samples)
    ]
    return SimulationReport(
        policy="fixed",
        settings=Settings(),
        gpu_types=types,
        jobs=2,
        span_s=0.8 * samples * step,
        tally=tally,
        rental=Rental(types),
        series=series,
        wall_s=0.1,
        notes={},
    )


def point(policy: str, value: Any, spend: float, jct: float) -> dict[str, Any]:
    return {
        "policy": policy,
        "knob": "budget",
        "value": value,
        "spend_per_hour": spend,
        "average_jct_s": jct,
        "p95_jct_s": 3 * jct,
        "rescalings_per_job": 1.0,
    }


POINTS = [
    point("boa", 20, 22.5, 1000.0),
    point("boa", 10, 10.0, 4000.0),
    point("pollux", 15, 15.0, 3000.0),
    point("pollux", 25, 25.0, 1500.0),
    point("reservation", None, 12.0, 5200.0),
]


def found(points: list[dict[str, Any]] = POINTS) -> dict[str, Any]:
    return {"points": points, "comparisons": comparisons(points, counts_gpus=True)}


def test_a_rival_is_held_against_boa_at_its_own_spend() -> None:
    pollux, reservation = comparisons(POINTS, counts_gpus=True)
    assert (pollux["policy"], pollux["value"], pollux["at_gpus"]) == ("pollux", 15, 15.0)
    assert pollux["boa_jct_s"] == pytest.approx(2000), "halfway between BOA's points"
    assert pollux["jct_ratio"] == pytest.approx(1.5)
    assert pollux["p95_ratio"] == pytest.approx(1.5)
    assert reservation["jct_ratio"] == pytest.approx(1.7754, abs=1e-4)
    (dollars, _) = comparisons(POINTS, counts_gpus=False)
    assert dollars["at_spend_per_hour"] == 15.0


def test_without_boa_nothing_is_compared() -> None:
    rivals = [p for p in POINTS if p["policy"] != "boa"]
    assert comparisons(rivals, counts_gpus=True) == []
    assert headline([]) == "Job completion times against average spend"


def test_the_headline_is_the_finding() -> None:
    compared = comparisons(POINTS, counts_gpus=True)
    assert "1.50–1.78 times as long under 2 other policies" in headline(compared)
    assert "1.50 times as long under pollux as under BOA" in headline(compared[:1])


def test_boa_is_blue_on_top_and_every_line_goes_by_rising_spend() -> None:
    lines = lines_of(POINTS, GPUS)
    assert [line.shown for line in lines] == ["pollux", "reservation", "BOA"]
    assert [line.colour == BLUE for line in lines] == [False, False, True]
    assert len({line.colour for line in lines}) == 3
    for line in lines:
        assert [dot.spend for dot in line.dots] == sorted(dot.spend for dot in line.dots)


def test_every_policy_is_named_in_both_panels_and_no_name_hides_another() -> None:
    many = POINTS + [
        point(name, n, 10.0 + 3 * n, 4000.0 - 400 * n)
        for name in ("sia", "sia-autoscale", "fixed", "tiresias")
        for n in range(3)
    ]
    figure = draw_comparison(lines_of(many, GPUS), "title", GPUS)
    for axes in figure.axes:
        names = [text for text in axes.texts if text.get_text()]
        assert {t.get_text() for t in names} == {
            *("BOA", "pollux", "reservation", "sia", "sia-autoscale", "fixed", "tiresias")
        }
        for text in names:
            text.get_window_extent()  # moves it to where it belongs
        boxes = [Text.get_window_extent(text) for text in names]  # without the line to the dot
        for n, box in enumerate(boxes):
            for other in boxes[:n]:
                assert not (box.overlaps(other) and box.shrunk(0.9, 0.7).overlaps(other))


@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_pictures_are_files_of_the_kind_asked_for_and_the_same_every_time(suffix: str) -> None:
    first, again = (
        (simulation_picture(report(), "fixed", suffix), comparison_picture(found(), GPUS, suffix))
        for _ in range(2)
    )
    assert first == again
    assert all(picture.startswith(BEGINNINGS[suffix]) for picture in first)


def test_pages_say_what_every_dot_is_and_escape_names() -> None:
    page = comparison_picture(found(), GPUS, ".html").decode()
    assert page.count("<title>") == 1 + 2 * len(POINTS)
    assert "pollux (budget 15)\n15 GPUs: average JCT 50 min" in page
    assert "<td>1.50</td>" in page
    page = simulation_picture(report(), "<i>fixed</i>", ".html").decode()
    assert "<b>nasty" not in page
    assert "&lt;b&gt;nasty&lt;/b&gt;" in page
    assert "<i>" not in page


def test_a_timeline_averages_what_was_sampled() -> None:
    run = report()
    timeline = timeline_of(run, "fixed")
    assert len(timeline.busy) == len(timeline.ends) == BINS
    assert timeline.ends[-1] == run.tally.last_end
    assert np.mean(timeline.busy) == pytest.approx(np.mean([s.busy_gpus for s in run.series]), 0.01)
    assert np.isnan(timeline.efficiency[: BINS // 2 - 1]).all(), "nobody held GPUs"
    assert timeline.efficiency[-1] == pytest.approx(0.7)
    assert len(draw_simulation(timeline).axes) == 3


def test_stretches_without_a_sample_go_on_as_before() -> None:
    timeline = timeline_of(report(samples=10, step=7200.0), "fixed")
    assert not np.isnan(timeline.busy).any()
    assert set(timeline.busy) <= set(range(10))


def test_a_run_that_was_never_sampled_can_be_drawn() -> None:
    empty = replace(report(), series=[], span_s=0.0)
    assert simulation_picture(empty, "fixed", ".svg").startswith(b"<?xml")
