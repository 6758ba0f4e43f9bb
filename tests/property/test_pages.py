"""Through pages, crashes and cleaning, no dollar of any history is lost or counted twice."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.model.history_kept import HistoryKept
from boa.model.records import Hold
from boa.scheduler.money.costs import costs
from boa.scheduler.money.ledger import bill
from boa.store import pages
from boa.store.checking import check
from boa.store.sql import open_store
from boa.store.sqlite import checkers, reason_of
from boa.units import DAY_S
from property.test_store import Files
from reading import held
from stored import changes, hold, job, node, sample

HOUR = 3600.0
NODES = tuple(node(n, state="ready", billed_from=0.0, ready_at=0.0) for n in (1, 2, 3))
META = {
    "cluster": "boa-1-a",
    "clock": [1.0, 2.0],
    "serials": {"resnet18": 10_000},
    "began": 1.0,
    "money": {"terms": None},
    "tally": {"since": 1.0, "closed": {}},
}


@dataclass
class Step:
    """After some hours every `stays`-th job goes on and the others end, perhaps heard of late; then
    some begin."""

    hours: float
    late: float
    stays: int
    begun: int
    crash: bool


steps = st.lists(
    st.builds(
        Step,
        hours=st.floats(0.1, 30.0),
        late=st.sampled_from([0.0, 0.0, 2.0, 40.0]),
        stays=st.integers(1, 4),
        begun=st.integers(0, 4),
        crash=st.booleans(),
    ),
    min_size=3,
    max_size=10,
)


@settings(max_examples=12)
@given(history=steps, page=st.integers(1, 4))
def test_after_crashes_and_cleaning_the_bill_is_that_of_all_holds_there_ever_were(
    history: list[Step], page: int
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "PAGE", page)
        _act_out(history, Files(Path(folder)))


def _act_out(history: list[Step], place: Files) -> None:
    keep = HistoryKept(samples_days=1.0, jobs_days=1.0)
    url, now, number = place.new(), 0.0, 0
    store = open_store(url, keep)
    store.commit(changes(nodes=NODES, meta=META))
    ever: dict[tuple[str, int, float], Hold] = {}
    for step in history:
        now += step.hours * HOUR
        ended = [
            hold(int(h.job), h.node, h.since, max(h.since, now - step.late * HOUR))
            for h in ever.values()
            if h.until is None and int(h.job) % step.stays
        ]
        begun = [hold(number + n, n % 3 + 1, now) for n in range(1, step.begun + 1)]
        number += step.begun
        over = (job(int(h.job), state="succeeded", ended_at=h.until) for h in ended)
        jobs = (*over, *(job(int(h.job), submitted_at=h.since) for h in begun))
        written = (*ended, *begun)
        store.commit(changes(jobs=jobs, holds=written, samples=[sample(now)]))
        ever.update({(h.job, h.node, h.since): h for h in written})
        if step.crash:
            url = place.crash(url, store)
            store = open_store(url, keep)
        _compare(store.held_between(0.0, now + 1), list(ever.values()), now + 1)
        young = {h.job for h in ever.values() if h.until is None or h.until >= now - DAY_S}
        assert young <= {one.id for one in store.jobs()}
    store.close()
    _look_through(url)


def _compare(found: object, ever: list[Hold], until: float) -> None:
    for since in (0.0, until / 3):
        charged, rows = costs(NODES, found, since, until, "job")  # type: ignore[arg-type]
        assert charged.jobs == pytest.approx(bill(NODES, ever, since, until).jobs, abs=1e-9)
        expected = costs(NODES, held(ever), since, until, "job")[1]
        assert {r["job"]: r["jobs_usd"] for r in rows} == pytest.approx(
            {r["job"]: r["jobs_usd"] for r in expected}, abs=1e-9
        )


def _look_through(url: str) -> None:
    path = Path(url.removeprefix("sqlite:///"))
    engine = checkers(path)
    try:
        faults = check(engine, path, reason_of).faults
        assert [fault for fault in faults if "totals" not in fault.text] == []  # none are written
    finally:
        engine.dispose()


def test_jobs_that_ended_long_ago_are_dropped_and_their_cost_stays(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/boa.db"
    old = [hold(n, 1, 100.0 * n, 100.0 * n + 50) for n in (1, 2, 3)]
    with closing(open_store(url, HistoryKept(jobs_days=1.0))) as store:
        ended = tuple(job(int(h.job), state="failed", ended_at=h.until) for h in old)
        store.commit(changes(nodes=NODES, jobs=(*ended, job(4)), holds=tuple(old), meta=META))
        store.commit(changes(samples=[sample(2 * DAY_S)]))
        assert [one.id for one in store.jobs()] == ["4"]
        assert store.holds_between(0.0, 1e9) == []
        assert sorted(store.held_between(0.0, 1e9).job.tolist()) == [1, 2, 3]
        store.commit(changes(jobs=(job(4, state="stopped", ended_at=500.0),)))
        store.commit(changes(samples=[sample(2 * DAY_S + 60)]))
        assert [one.id for one in store.jobs()] == ["4"], "the newest: numbers go on from it"
    _look_through(url)


def test_unless_a_person_says_so_every_job_is_kept(tmp_path: Path) -> None:
    with closing(open_store(f"sqlite:///{tmp_path}/boa.db")) as store:
        store.commit(changes(jobs=(job(1, state="failed", ended_at=5.0), job(2))))
        store.commit(changes(samples=[sample(1e9)]))
        assert [one.id for one in store.jobs()] == ["2", "1"]
