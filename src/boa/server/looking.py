"""A store beside what its data folder knows of it; nothing is changed by looking."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from boa.atomic_file import replace_file
from boa.errors import InputError
from boa.model.records import NodeRecord
from boa.plain_file import read_plain
from boa.server.folder import RESTORED, jobs_in, owner_in
from boa.store import snapshots
from boa.store.backend import Backend
from boa.store.base import StoreTrouble
from boa.store.checking import check
from boa.store.faults import Fault, Found
from boa.store.history import compare
from boa.store.memory import Mark, read_mark, told_by
from boa.store.reading import settings_and_nodes
from boa.store.sql import backend_of, file_at
from boa.store.sqlite import Sqlite, checkers, reason_of

ACCEPT = "--accept-store"
OTHER_STORE = ("older", "foreign")
"""Kinds of faults of a store that is whole, but not the folder's newest."""
MARGIN = 1_000
"""Numbers of jobs that are passed over where the highest is not known."""
FORMER = "former_clusters"
"""Names that the store had before, in its `meta`."""


@dataclass(frozen=True, slots=True)
class Look:
    """A store beside what its data folder knows of it."""

    found: Found
    mark: Mark | None
    seen: set[int]
    """Numbers of jobs that the folder has runs or checkpoints of."""
    faults: Sequence[Fault]
    of_a_file: bool = True
    """Whether the store is a SQLite file, and none on a server."""
    restored: bool = False
    """Whether it was put back on purpose, so that the next start goes on from it: what it does not
    know is then no fault of it."""

    @property
    def is_whole(self) -> bool:
        """Whether it is at most not the newest one."""
        return all(fault.kind in OTHER_STORE for fault in self.faults)

    @property
    def lost(self) -> set[int]:
        """Numbers that were given out, of jobs which are not there."""
        highest = max([self.found.job, self.mark.job if self.mark else 0, *self.seen])
        return set(range(1, highest + 1)) - self.found.jobs

    @property
    def doubtful(self) -> set[int]:
        """Numbers that may have been given out, where nobody remembers the highest."""
        if self.mark is not None:
            return set()
        highest = max([self.found.job, *self.seen])
        return set(range(highest + 1, highest + 1 + MARGIN))


def look(backend: Backend, mark: Mark | None, seen: set[int]) -> Look:
    """`mark`: read before this, since a service that is at work writes it last."""
    path = backend.path if isinstance(backend, Sqlite) else None
    found = check(backend.checkers, path, backend.reason)
    passing = [fault for fault in found.faults if path is None and fault.kind == "file"]
    if passing:  # a server that is away is no store that is damaged
        raise StoreTrouble(f"{backend.where}: {passing[0].text}")
    faults = [*found.faults, *compare(found, mark, seen)]
    return Look(found, mark, seen, faults, of_a_file=path is not None)


def look_beside(url: str, folder: Path) -> Look:
    """As `look`, of a store that a service may be at work on, and that may have been put back."""
    mark = read_mark(folder)
    jobs, path = told_by(jobs_in(folder), folder, mark), file_at(url)
    if path is None:
        with closing(backend_of(url)) as backend:
            return look(backend, mark, jobs)
    with _looking_into(path) as engine:
        found = check(engine, path, reason_of)
    seen = Look(found, mark, jobs, [*found.faults, *compare(found, mark, jobs)])
    if seen.faults and seen.is_whole and is_restored(folder, found):
        return replace(seen, faults=(), restored=True)
    return seen


def peek(url: str) -> tuple[Mapping[str, Any], Sequence[NodeRecord]]:
    """Settings, and nodes that are not gone, of a store of any version."""
    path = file_at(url)
    if path is None:
        with closing(backend_of(url)) as backend:
            return settings_and_nodes(backend.checkers)
    with _looking_into(path) as engine:
        return settings_and_nodes(engine)


@contextmanager
def _looking_into(path: Path) -> Iterator[Engine]:
    """Without the lock that whoever writes has."""
    engine = checkers(path)
    try:
        yield engine
    finally:
        engine.dispose()


def what_to_do(folder: Path, seen: Look) -> str:
    if not seen.of_a_file:
        if seen.is_whole:
            return f"Bring the newest back by PostgreSQL's own means, or boa serve {ACCEPT}"
        return "boa store check tells more; bring a whole one back by PostgreSQL's own means"
    newest = next(iter(snapshots.snapshots(folder / snapshots.FOLDER)), None)
    kept = f"boa store restore {newest.path.name}" if newest else "boa store restore FILE"
    return (
        f"boa store check tells more; {kept} puts a copy back; boa serve {ACCEPT} goes on with "
        "what is there"
    )


# Whose folder it is


def is_owner(folder: Path, meta: Mapping[str, Any]) -> bool:
    """Whether the folder was made with this store, by one of its names."""
    owner = owner_in(folder)
    return not owner or owner in (meta.get("cluster"), *meta.get(FORMER, ()))


def check_owner(folder: Path, meta: Mapping[str, Any]) -> None:
    if not is_owner(folder, meta):
        problem = f"{folder} belongs to another database"
        expected = "the database that it was made with (--db), or another folder"
        raise InputError("--data", str(folder), expected, problem)


# A store that was put back on purpose


def write_restored(folder: Path, found: Found) -> None:
    """So that the next start knows the store that was put back."""
    document = {"opened": found.opened, "commits": found.commits}
    replace_file(folder / RESTORED, json.dumps(document), durable=True, private=True)


def is_restored(folder: Path, found: Found) -> bool:
    with suppress(OSError, ValueError):
        document = json.loads(read_plain(folder / RESTORED, most=4096))
        return bool(document == {"opened": found.opened, "commits": found.commits})
    return False


def forget_restored(folder: Path) -> None:
    with suppress(OSError):
        (folder / RESTORED).unlink(missing_ok=True)
