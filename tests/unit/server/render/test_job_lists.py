"""Lists of jobs against a real database: every filter finds what it must, page by page."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boa.model.changes import Changes
from boa.model.job import ENDED, JobRecord
from boa.runtime.snapshot import Snapshot
from boa.server.render import job_lists
from boa.server.render.job_lists import STATES, JobQuery, active_jobs, stored_jobs
from boa.store.base import Store
from boa.store.sql import open_store
from fakes import MONEY
from stored import job, spec


def made(number: int, dice: random.Random) -> JobRecord:
    name = dice.choice(["", "first", "Second try", "über", "100%_sure"])
    said = spec(dice.choice(["resnet18", "bert", "ResNet50"]), name=name)
    return job(number, spec=said, state=dice.choice(STATES))


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[tuple[Store, list[JobRecord]]]:
    store = open_store(f"sqlite:///{tmp_path}/boa.db")
    dice = random.Random(7)
    records = [made(number, dice) for number in range(1, 120)]
    store.commit(Changes(jobs={record.id: record for record in records}))
    yield store, records[::-1]
    store.close()


def shot(records: list[JobRecord]) -> Snapshot:
    return Snapshot(
        now=0.0,
        jobs={record.id: record for record in records if not record.ended},
        nodes={},
        holds={},
        charged=lambda: MONEY,
        plan=None,
        last_event=0,
    )


def paged(store: Store, snapshot: Snapshot, asked: JobQuery, limit: int) -> list[str]:
    found: list[str] = []
    before: int | None = None
    while True:
        if asked.ended:
            page, before = stored_jobs(store, snapshot, asked, limit, before)
        else:
            page, before = active_jobs(snapshot, asked, limit, before)
        assert len(page) <= limit
        found += [record.id for record in page]
        if before is None:
            return found


FILTERS: list[dict[str, Any]] = [
    {},
    {"search": "RESNET"},
    {"search": "%_"},
    {"search": "ÜBER"},
    {"search": "1"},
    {"states": ["failed"]},
    {"states": ["failed,succeeded", "stopped"]},
    {"states": ["waiting", "failed"], "search": "try"},
    {"states": ["running"], "job_class": "bert"},
    {"states": ["stopped"], "job_class": "bert", "search": "first"},
    {"search": "nobody is called so"},
]


@pytest.mark.parametrize("all_of_them", [False, True])
@pytest.mark.parametrize("wanted", FILTERS)
def test_pages_put_together_are_all_jobs_that_fit_newest_first(
    kept: tuple[Store, list[JobRecord]],
    wanted: dict[str, Any],
    all_of_them: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, records = kept
    monkeypatch.setattr(job_lists, "PAGE", 10)
    monkeypatch.setattr(job_lists, "MOST_READ", 30)
    filters = {"job_class": None, "states": None, "search": None, **wanted}
    asked = JobQuery.of(all_of_them, **filters)
    text = (wanted.get("search") or "").casefold()
    active = [state for state in STATES if state not in ENDED]
    states = ",".join(wanted.get("states", STATES if all_of_them else active)).split(",")
    expected = [
        record.id
        for record in records
        if record.state in states
        and wanted.get("job_class", record.job_class) == record.job_class
        and any(text in part.casefold() for part in (record.id, record.name, record.job_class))
    ]
    for limit in (1, 3, 7, 1000):
        assert paged(store, shot(records), asked, limit) == expected


def test_active_jobs_are_listed_as_they_are_now_not_as_they_were_stored(
    kept: tuple[Store, list[JobRecord]],
) -> None:
    store, records = kept
    now = [replace(r, epoch=5) if r.state == "running" else r for r in records]
    found, _ = stored_jobs(store, shot(now), JobQuery.of(True, None, None, None), 1000, None)
    assert {record.epoch for record in found if record.state == "running"} == {5}
