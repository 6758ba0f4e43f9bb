"""Parts of a trace: a stretch of it, and the same jobs at a higher rate."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.catalogue import read_trace
from boa.catalogue.reading import WHOLE, Reading
from boa.errors import InputError
from boa.model.trace import Trace, TraceJob


def trace_of(*arrivals: float) -> Trace:
    jobs = [
        TraceJob(name=f"j-{n}", arrival_s=t, application="bert") for n, t in enumerate(arrivals)
    ]
    return Trace(tuple(jobs))


def times(trace: Trace) -> list[tuple[str, float]]:
    return [(job.name, job.arrival_s) for job in trace.jobs]


DAY = trace_of(0.0, 3600.0, 5400.0, 7200.0, 86_400.0)


def test_a_trace_of_which_nothing_is_asked_stays_as_it_is() -> None:
    assert WHOLE.part_of(DAY) is DAY
    assert list(WHOLE.flags()) == []


def test_a_stretch_has_its_first_moment_and_not_its_last_and_counts_from_its_start() -> None:
    part = Reading(from_h=1, hours=1).part_of(DAY)
    assert times(part) == [("j-1", 0.0), ("j-2", 1800.0)]
    assert times(Reading(from_h=1.5).part_of(DAY)) == [
        ("j-2", 0.0),
        ("j-3", 1800.0),
        ("j-4", 81_000.0),
    ]
    assert len(Reading(hours=2).part_of(DAY).jobs) == 3


def test_hours_are_those_of_the_file_and_the_rate_comes_after() -> None:
    part = Reading(from_h=1, hours=2, rate_factor=10).part_of(DAY)
    assert times(part) == [("j-1", 0.0), ("j-2", 180.0), ("j-3", 360.0)]


@given(gaps=st.lists(st.floats(0.001, 1e5), min_size=3, max_size=30), factor=st.floats(0.01, 1000))
def test_a_higher_rate_changes_the_rate_by_its_factor_and_leaves_the_bursts(
    gaps: list[float], factor: float
) -> None:
    arrivals = [sum(gaps[:n]) * 1000 for n in range(1, len(gaps) + 1)]
    trace = trace_of(*arrivals)
    denser = trace.denser(factor)
    assert denser.counts() == trace.counts()
    assert denser.arrivals_per_hour()["bert"] == pytest.approx(
        factor * trace.arrivals_per_hour()["bert"], rel=1e-3
    )
    before = trace.interarrival_cv2()
    assert before is not None
    assert denser.interarrival_cv2() == pytest.approx(before, rel=1e-2, abs=1e-6)


def test_a_stretch_without_jobs_is_an_error_that_says_where_there_are_some() -> None:
    with pytest.raises(InputError, match=r"hours: got 0.5; expected more hours: .* 22 h later"):
        Reading(from_h=2.0001, hours=0.5).part_of(DAY)
    with pytest.raises(InputError, match=r"from_h: got 25.0; expected .*its last is 24"):
        Reading(from_h=25.0, hours=0.5).part_of(DAY)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"from_h": -1.0}, "from_h"),
        ({"from_h": float("nan")}, "from_h"),
        ({"hours": 0.0}, "hours"),
        ({"hours": float("inf")}, "hours"),
        ({"rate_factor": 0.0}, "rate_factor"),
        ({"rate_factor": 1e7}, "rate_factor"),
        ({"recipe": "helios"}, "recipe"),
    ],
)
def test_what_cannot_be_read_so_is_refused_by_name(wrong: dict[str, float], field: str) -> None:
    with pytest.raises(InputError, match=f"^{field}: got"):
        Reading(**wrong)  # type: ignore[arg-type]


def test_the_options_that_are_told_are_those_that_matter() -> None:
    reading = Reading(from_h=24, hours=48, rate_factor=10, recipe="pollux", seed=3)
    said = "--from-h 24 --hours 48 --rate-factor 10 --recipe pollux --seed 3"
    assert " ".join(reading.flags()) == said


def test_any_format_can_be_cut(tmp_path: Path) -> None:
    path = tmp_path / "sia.csv"
    path.write_text("name,time,application\na,10,bert\nb,3700,bert\n")
    (job,) = read_trace(path, Reading(from_h=1)).jobs
    assert (job.name, job.arrival_s, job.line) == ("b", 100.0, 3)
