"""Which jobs a list has: those that were asked for, page by page."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self, get_args

from boa.errors import InputError
from boa.model.job import ENDED, JobRecord, State
from boa.runtime.snapshot import Snapshot
from boa.store.base import Store

PAGE = 1000
"""The most jobs that one answer lists."""
MOST_READ = 5 * PAGE
"""So many stored jobs are looked at for one answer; the next one goes on from there."""
STATES: tuple[State, ...] = get_args(State)
Found = tuple[list[JobRecord], int | None]
"""Newest first, and where the list goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobQuery:
    ended: bool
    """Ended ones too."""
    job_class: str | None = None
    states: frozenset[str] = frozenset()
    """None: any."""
    search: str = ""
    """The text to look for, in lower case."""

    @classmethod
    def of(
        cls, all: bool, job_class: str | None, states: Iterable[str] | None, search: str | None
    ) -> Self:
        named = [state.strip() for given in states or () for state in given.split(",")]
        for state in named:
            if state not in STATES:
                raise InputError("state", state, f"one of {', '.join(STATES)}")
        ended = not ENDED.isdisjoint(named) or (all and not named)
        return cls(
            ended=ended,
            job_class=job_class,
            states=frozenset(named),
            search=(search or "").strip().casefold(),
        )

    @property
    def reads_on(self) -> bool:
        """Whether the store may have to be looked through for it."""
        return bool(self.states or self.search)

    def fits(self, job: JobRecord) -> bool:
        if self.job_class is not None and job.job_class != self.job_class:
            return False
        if self.states and job.state not in self.states:
            return False
        if not self.search:
            return True
        return any(self.search in text.casefold() for text in (job.id, job.name, job.job_class))


def active_jobs(snapshot: Snapshot, asked: JobQuery, limit: int, before: int | None) -> Found:
    found = [
        record
        for record in snapshot.jobs.values()
        if (before is None or int(record.id) < before) and asked.fits(record)
    ]
    shown = sorted(found, key=lambda record: -int(record.id))[:limit]
    return shown, int(shown[-1].id) if len(found) > limit else None


def stored_jobs(
    store: Store, snapshot: Snapshot, asked: JobQuery, limit: int, before: int | None
) -> Found:
    """Ended ones too. May block on the store."""
    found: list[JobRecord] = []
    ended = True if asked.states and asked.states <= ENDED else None
    page, read = PAGE if asked.reads_on else limit + 1, 0
    while True:
        stored = store.jobs(ended=ended, job_class=asked.job_class, limit=page, before=before)
        for record in stored:
            record = snapshot.jobs.get(record.id, record)
            if not asked.fits(record):
                continue
            if len(found) == limit:
                return found, int(found[-1].id)
            found.append(record)
        if len(stored) < page:
            return found, None
        before, read = int(stored[-1].id), read + page
        if read >= MOST_READ:
            return found, before
