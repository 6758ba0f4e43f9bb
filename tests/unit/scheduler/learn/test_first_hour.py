"""A new class in its first hour: how it is explored, and what that costs.

The real loop on a virtual clock. Four jobs of three epochs arrive at once, of a class that nothing
is known of; a rescaling takes 30 seconds, they report every quarter of a minute.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.model.job import GpuLimits
from boa.model.profile import ClassProfile
from live import Live, config, profile, spec
from strategies import numbers

RESCALE_S = 30.0
SETTLED_S = 10 * RESCALE_S
WIDEST = 16
EVERY_S = 15.0
BUDGET = 8.0


def scaling(speedup: Callable[[int], float], work: float = 7200.0) -> ClassProfile:
    found = profile("net", work=(work / 3,) * 3, rescale_s=RESCALE_S, widest=WIDEST)
    for width in range(1, WIDEST + 1):
        found.rates["T4"][:, :, width] = speedup(width)
    return found


@dataclass
class Hour:
    """Widths of every job and GPUs that were rented, again and again."""

    widths: list[tuple[int, ...]] = field(default_factory=list)
    rented: list[int] = field(default_factory=list)
    rescalings: list[int] = field(default_factory=list)

    def look(self, live: Live, ids: list[str]) -> None:
        records = [live.job(one) for one in ids]
        runs = [record.run for record in records]
        self.widths.append(tuple(run.allocation.width if run else 0 for run in runs))
        nodes = live.loop.state.nodes.values()
        self.rented.append(sum(node.gpus for node in nodes if node.state != "gone"))
        self.rescalings.append(sum(record.rescalings for record in records))

    def moves_by(self, seconds: float) -> int:
        return self.rescalings[int(seconds / EVERY_S) - 1]

    def new_width_at(self, width: int) -> float:
        """When the first job got so many GPUs."""
        return EVERY_S * next(n for n, widths in enumerate(self.widths) if max(widths) >= width)

    @property
    def spent(self) -> float:
        return sum(self.rented) * EVERY_S / 3600.0


def hour(known: ClassProfile, jobs: int = 4, seconds: float = 3600.0) -> Hour:
    with TemporaryDirectory() as folder:
        live = Live(config(Path(folder), budget=BUDGET), {"net": known})
        live.engine.report_s = EVERY_S
        asked = spec("net", epochs=3, gpus=GpuLimits(max=WIDEST))
        ids = [live.submit(asked) for _ in range(jobs)]
        found = Hour()
        for _ in range(int(seconds / EVERY_S)):
            live.advance(EVERY_S, tick=EVERY_S)
            found.look(live, ids)
        live.close()
    return found


@cache
def perfect() -> Hour:
    return hour(scaling(float), seconds=1500.0)


def test_in_its_first_five_minutes_a_new_class_is_rescaled_once_at_most() -> None:
    found = perfect()
    assert found.moves_by(300.0) <= 1
    assert max(found.rented[: int(300.0 / EVERY_S)]) <= 8


def test_a_new_width_is_tried_by_one_job_and_the_others_follow_when_it_is_settled() -> None:
    found = perfect()
    for width in (2, 4, 8):
        first = int(found.new_width_at(width) / EVERY_S)
        until = first + int(SETTLED_S / EVERY_S)
        wide = {sum(k >= width for k in at) for at in found.widths[first : until - 1]}
        assert wide == {1}, f"{width} GPUs"


def test_a_class_that_scales_perfectly_is_on_eight_gpus_within_25_minutes() -> None:
    assert (8, 8, 8, 8) in perfect().widths


def test_a_job_alone_that_scales_perfectly_is_on_eight_gpus_within_half_an_hour() -> None:
    found = hour(scaling(float, work=36_000.0), jobs=1, seconds=1800.0)
    assert found.widths[-1] >= (8,)


def test_a_class_that_gains_four_percent_by_four_gpus_ends_on_one() -> None:
    found = hour(scaling(lambda k: 1.0 + 0.04 * (min(k, 4) - 1) / 3))
    assert found.widths[-1] == (1, 1, 1, 1)
    assert max(max(widths) for widths in found.widths) == 2, "the next doubling is not tried"
    assert found.moves_by(3600.0) == 2, "there and back"


def test_what_does_not_scale_costs_no_more_than_the_budget_by_exploring() -> None:
    found = hour(scaling(lambda k: 1.0))
    assert found.spent <= BUDGET
    assert found.spent <= 4.0 + 4 * (SETTLED_S + 3 * RESCALE_S) / 3600.0, "one node, one trial"


@settings(max_examples=5)
@given(serial=numbers(0.0, 1.0), jobs=st.integers(1, 5))
def test_however_it_scales_a_class_climbs_one_settled_width_at_a_time(
    serial: float, jobs: int
) -> None:
    found = hour(scaling(lambda k: k / (1 + serial * (k - 1))), jobs, seconds=900.0)
    assert found.moves_by(300.0) <= 1
    widest = 1
    for n, widths in enumerate(found.widths):
        if max(widths) > widest:
            assert max(widths) <= 2 * widest
            assert n == 0 or sum(k > widest for k in widths) == 1
            widest = max(widths)


@pytest.mark.parametrize("serial", [0.0, 0.05, 1.0])
def test_exploring_holds_no_more_than_one_job_beyond_the_plan(serial: float) -> None:
    found = hour(scaling(lambda k: k / (1 + serial * (k - 1))), seconds=1000.0)
    for widths in found.widths:
        trained = sorted(widths)
        assert trained[-1] <= 2 * max(trained[-2], 1)
