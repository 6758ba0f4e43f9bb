"""The loop closed on a little plant whose budget changes by the hour, as in `test_pacing.py`."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.model.calendar import DAYS, Calendar, Period
from boa.scheduler.money import accounts, pacing
from plant import HORIZON_H, LOOK_H, Plant

DAY = Period(name="day", budget=24.0, days=DAYS[:6], begins=480, ends=1200)
NIGHT = Period(name="night", budget=60.0)
CALENDAR = Calendar(periods=(DAY, NIGHT), time_zone="Europe/Berlin").begun_on_a_monday()
few = settings(max_examples=4)


@dataclass
class Changing(Plant):
    """A plant that is paced by a calendar: looks come every quarter of an hour, as changes do."""

    calendar: Calendar = CALENDAR
    owned: accounts.PeriodAccounts = field(default_factory=accounts.PeriodAccounts)

    def run(self, hours: float) -> "Changing":
        calendar = self.calendar
        for _ in range(round(hours / LOOK_H)):
            begun = len(self.planned) * LOOK_H * 3600
            left = accounts.left_at(self.owned, calendar, begun, HORIZON_H)
            plan = max(pacing.effective(self.pace, HORIZON_H, left), self.cheapest)
            self.planned.append(plan / self.pace.budget)
            now = len(self.planned) * LOOK_H
            spent = self._spend_until(now, plan / (self.expected_per_hour * self.duration_h))
            self.totals.append(self.totals[-1] + spent * (1 + self.overhead))
            allowed = calendar.allowed(begun, now * 3600)
            schedule = pacing.Schedule(allowed, calendar.budget_at(now * 3600), calendar.average)
            self.owned = accounts.looked(
                self.owned,
                calendar,
                begun,
                now * 3600,
                billed=self.totals[-1] - self.totals[-2],
                horizon_h=HORIZON_H,
                bound=pacing.BOUND,
            )
            self.pace = pacing.advanced(self.pace, self.bill, plan, now * 3600, HORIZON_H, schedule)
        return self

    def kept(self, first_h: float = 0.0) -> dict[str, float]:
        """By period: what was spent while it held, over what it allowed."""
        spent, allowed = dict[str, float](), dict[str, float]()
        for look in range(round(first_h / LOOK_H), len(self.planned)):
            begun = look * LOOK_H * 3600
            name = self.calendar.periods[self.calendar.at(begun)].name
            spent[name] = spent.get(name, 0.0) + self.totals[look + 1] - self.totals[look]
            more = self.calendar.allowed(begun, begun + LOOK_H * 3600)
            allowed[name] = allowed.get(name, 0.0) + more
        whole = {"whole": sum(spent.values()) / sum(allowed.values())}
        return {name: spent[name] / allowed[name] for name in spent} | whole


@few
@given(
    world=st.sampled_from([(0.5, 0.5), (1.0, 0.5), (2.0, 0.5), (1.0, 3.0)]),
    overhead=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 10_000),
)
def test_the_average_is_the_schedules_and_so_is_that_of_every_period(
    world: tuple[float, float], overhead: float, seed: int
) -> None:
    """Jobs of three hours carry a quarter of a night's spend into the day: no further from what
    was taken for granted, or the day has nothing left to give."""
    misjudged, duration_h = world
    plant = Changing(misjudged, overhead, duration_h, expected_per_hour=40.0, seed=seed)
    kept = plant.run(28 * 24).kept()
    assert kept["whole"] == pytest.approx(1.0, abs=0.03)
    assert kept["day"] == pytest.approx(1.0, abs=0.05)
    assert kept["night"] == pytest.approx(1.0, abs=0.05)


@few
@given(seed=st.integers(0, 10_000))
def test_what_one_period_cannot_spend_no_other_does(seed: int) -> None:
    """Nobody submits by night: what that leaves is forgone, and the day keeps its own budget."""
    plant = Changing(
        duration_h=0.2,
        expected_per_hour=100.0,
        demand=lambda hour: float(CALENDAR.at(hour * 3600) == 0),
        seed=seed,
    ).run(28 * 24)
    kept = plant.kept(7 * 24)
    assert kept["night"] < 0.2
    assert kept["day"] == pytest.approx(1.0, abs=0.05)


def test_stretches_of_one_look_count_for_the_period_that_they_are_in() -> None:
    """The clock stood still from the last hour of a night into the second of a day."""
    since, now = 7 * 3600.0, 10 * 3600.0
    found = accounts.looked(
        accounts.PeriodAccounts(), CALENDAR, since, now, billed=90.0, horizon_h=1e3, bound=2.0
    )
    assert found.left == {"night": 60.0 - 30.0, "day": 2 * 24.0 - 60.0}
    assert accounts.left_at(found, CALENDAR, now, 1e3) == pytest.approx(-12.0 / CALENDAR.share(0))
    again = accounts.PeriodAccounts.from_document(found.as_document())
    assert again == found


SUNDAY = Period(name="sunday", budget=12.0, days=DAYS[6:])
WEEK = Calendar(periods=(DAY, SUNDAY, NIGHT)).begun_on_a_monday()


def test_a_day_that_comes_once_a_week_saves_up_half_of_it_and_spends_that_over_it() -> None:
    began = 6 * 24 * 3600.0
    ended = began + 24 * 3600.0
    found = accounts.looked(
        accounts.PeriodAccounts(), WEEK, began, ended, billed=0.0, horizon_h=24.0, bound=0.5
    )
    assert found.left == {"sunday": 12 * 12.0}
    assert accounts.left_at(found, WEEK, began, 24.0) == 12 * 12.0
    assert accounts.left_at(found, WEEK, ended, 24.0) == 0.0, "no other period's to spend"


def test_the_nearer_the_end_of_a_day_that_comes_once_a_week_the_sooner_it_makes_good() -> None:
    """It has no other hours in the coming horizon; a period that comes every day has them."""
    owned = accounts.PeriodAccounts(left={"sunday": 12.0, "night": 12.0})
    sunday, quarter = 6 * 24 * 3600.0, 6 * 3600.0
    seen = [accounts.left_at(owned, WEEK, sunday + quarter * n, 24.0) for n in range(4)]
    assert seen == pytest.approx([12.0, 16.0, 24.0, 48.0])
    last = accounts.left_at(owned, WEEK, sunday + 24 * 3600.0 - 60.0, 24.0)
    assert last == pytest.approx(12.0 / accounts.LEAST_PART)
    nights = {accounts.left_at(owned, WEEK, hour * 3600.0, 24.0) for hour in (24, 28, 31, 44)}
    assert nights == {24.0}


@few
@given(seed=st.integers(0, 10_000))
def test_a_day_that_comes_once_a_week_is_kept_though_fewer_jobs_come_then(seed: int) -> None:
    """Three fifths of those that plans expect. Made good at a horizon's pace to its end, which is
    over before that, it came to 0.9."""
    plant = Changing(
        2.0,
        0.1,
        0.5,
        expected_per_hour=10.0,
        demand=lambda hour: 0.6 if hour % 168 >= 144 else 1.0,
        calendar=WEEK,
        seed=seed,
    )
    kept = plant.run(28 * 24).kept()
    assert kept["sunday"] == pytest.approx(1.0, abs=0.06)
    assert kept["day"] == pytest.approx(1.0, abs=0.01)
    assert kept["night"] == pytest.approx(1.0, abs=0.01)


def test_what_a_period_owes_beyond_its_bounds_the_others_pay() -> None:
    """A day whose jobs cost more than its budget, whatever is planned."""
    day, night = 8 * 3600.0, 20 * 3600.0
    found = accounts.looked(
        accounts.PeriodAccounts(), CALENDAR, day, night, billed=900.0, horizon_h=24.0, bound=0.5
    )
    most = 0.5 * 24 * 0.5 * 24.0
    assert (found.left["day"], found.common) == (-most, 12 * 24.0 - 900.0 + most)
    assert accounts.left_at(found, CALENDAR, night, 24.0) == found.common
    rested = accounts.looked(
        found, CALENDAR, night, night + 12 * 3600.0, billed=0.0, horizon_h=24.0, bound=0.5
    )
    assert found.common < rested.common <= 0.0
