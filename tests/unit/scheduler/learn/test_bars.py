"""Placements that failures bar, and for how long."""

import pytest

from boa.model.placements import AGAIN_S, FailedPlacement, Placement
from boa.scheduler.learn.bars import Bars, bars_of
from boa.scheduler.learn.placements_tried import MOST_KEPT, PlacementsTried

WIDEST = 8
NOW = 1000.0


def at(width: int, *, across: bool = False, gpu: str = "T4") -> Placement:
    return Placement(gpu, width, across)


def failure(place: Placement, when: float = NOW, job: str = "1", code: str = "") -> FailedPlacement:
    return FailedPlacement(place, 1, 1, when, "exit code 1", job, code)


def shut(bars: Bars, *, across: bool = False, trier: bool = True) -> list[int]:
    mask = bars.of(trier).get("T4")
    return [] if mask is None else [k for k in range(1, WIDEST + 1) if mask[int(across), k]]


@pytest.mark.parametrize(
    ("worked", "barred"),
    [
        ([1], [4, 5, 6, 7, 8]),
        ([1, 6], [4]),
        ([8], [1, 2, 3, 4]),
        ([], [1, 2, 3, 4, 5, 6, 7, 8]),
    ],
)
def test_a_failure_bars_what_lies_beyond_it_and_nothing_that_went_well(
    worked: list[int], barred: list[int]
) -> None:
    bars = bars_of([failure(at(4))], [at(k) for k in worked], WIDEST, NOW)
    assert shut(bars) == barred


def test_one_on_a_single_node_counts_for_several_and_not_the_other_way_round() -> None:
    single = bars_of([failure(at(4))], [at(1)], WIDEST, NOW)
    assert shut(single, across=True) == [4, 5, 6, 7, 8]
    several = bars_of([failure(at(4, across=True))], [at(1), at(4)], WIDEST, NOW)
    assert shut(several, across=True) == [4, 5, 6, 7, 8]
    assert shut(several) == []


def test_beside_a_failure_only_those_who_try_things_go_where_nobody_has_been() -> None:
    bars = bars_of([failure(at(4))], [at(1), at(3)], WIDEST, NOW)
    assert shut(bars, trier=True) == [4, 5, 6, 7, 8]
    assert shut(bars, trier=False) == [2, 4, 5, 6, 7, 8]


def test_other_types_are_left_alone() -> None:
    bars = bars_of([failure(at(4, gpu="A100"))], [at(1)], WIDEST, NOW)
    assert "T4" not in bars.all
    assert "T4" not in bars.most


def test_a_failure_stands_for_an_hour_then_for_six_and_then_for_good() -> None:
    tried = PlacementsTried(worked={at(1)})
    when = NOW
    for lasts in AGAIN_S:
        tried.fails(failure(at(2), when), began=when)
        assert shut(tried.bars(WIDEST))
        assert tried.again_at == when + lasts
        assert not tried.look(when + lasts - 1)
        assert tried.look(when + lasts)
        assert not shut(tried.bars(WIDEST)), "may be tried"
        assert shut(tried.bars(WIDEST), trier=False), "but not by everybody"
        when += lasts + 10
    tried.fails(failure(at(2), when), began=when)
    assert not tried.look(when + 1e9)
    assert shut(tried.bars(WIDEST))
    (found,) = tried.failed.values()
    assert (found.times, found.again_at) == (3, None)


def test_runs_that_had_begun_before_a_failure_was_known_are_of_the_same_try() -> None:
    tried = PlacementsTried(worked={at(1)})
    for n in range(5):
        tried.fails(failure(at(2), NOW + n), began=NOW - 10)
    (found,) = tried.failed.values()
    assert (found.times, found.tries) == (5, 1)


def test_progress_at_a_placement_ends_its_failures() -> None:
    tried = PlacementsTried(worked={at(1)})
    tried.fails(failure(at(2)), began=NOW)
    assert tried.works(at(2))
    assert not tried.failed
    assert not tried.fails(failure(at(2)), began=NOW), "it goes well there: that was the job"


def test_new_code_is_another_try_and_the_old_code_is_not() -> None:
    tried = PlacementsTried(worked={at(1)}, code="old")
    tried.fails(failure(at(2), code="old"), began=NOW)
    assert tried.runs("new")
    assert not shut(tried.bars(WIDEST), trier=False)
    assert tried.runs("old")
    assert shut(tried.bars(WIDEST))
    assert not tried.runs(""), "unknown: taken for the same"
    assert shut(tried.bars(WIDEST))


def test_a_job_that_fails_everywhere_takes_back_what_it_taught() -> None:
    tried = PlacementsTried(worked={at(1)})
    tried.fails(failure(at(2), job="1"), began=NOW)
    tried.fails(failure(at(4), job="2"), began=NOW)
    assert tried.withdraw("2")
    assert [found.place for found in tried.standing()] == [at(2)]


def test_asking_for_it_forgets_by_type_and_width() -> None:
    tried = PlacementsTried(worked={at(1)})
    for place in (at(2), at(4), at(2, gpu="A100")):
        tried.fails(failure(place), began=NOW)
    assert [found.place for found in tried.forgive("T4", 2)] == [at(2)]
    assert [found.place for found in tried.forgive("A100", None)] == [at(2, gpu="A100")]
    assert len(tried.forgive(None, None)) == 1


def test_it_is_read_back_as_it_was_stored_and_few_are_kept() -> None:
    tried = PlacementsTried(worked={at(1), at(8, across=True)}, code="x")
    for n in range(MOST_KEPT + 10):
        tried.fails(failure(at(2), code=f"{n}"), began=NOW)
    assert len(tried.failed) == MOST_KEPT
    assert PlacementsTried.from_document(tried.as_document()) == tried
