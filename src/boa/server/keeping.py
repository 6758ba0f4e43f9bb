"""`boa store`: the store of a data folder looked at, copied and put back, without a service."""

import os
from dataclasses import dataclass
from pathlib import Path

from boa.engines.users import name_of
from boa.errors import FileError, InputError
from boa.formats.service import default_data_dir
from boa.server.folder import DataFolder
from boa.server.looking import Look, look_beside, write_restored
from boa.store import snapshots
from boa.store.checking import check
from boa.store.errors import StoreRefused
from boa.store.faults import listed
from boa.store.memory import read_mark
from boa.store.replacing import copy_beside, replace_store
from boa.store.snapshots import Snapshot
from boa.store.sql import backend_of, file_at
from boa.store.sqlite import Sqlite, checkers

BY_ITSELF = "a SQLite store: PostgreSQL is copied by pg_dump, and put back by its own means"


@dataclass(frozen=True, slots=True)
class Place:
    folder: Path
    url: str

    @property
    def file(self) -> Path:
        """Raises InputError where the store is no file."""
        path = file_at(self.url)
        if path is None:
            raise InputError("--db", self.url.partition("@")[2] or self.url, BY_ITSELF)
        return path

    @property
    def snapshots(self) -> Path:
        return self.folder / snapshots.FOLDER


def place(data: Path | None, db: str | None) -> Place:
    folder = Path(data or default_data_dir()).absolute()
    if not folder.is_dir():
        raise FileError(f"--data {folder}", "is no folder", "the data folder of a service")
    return Place(folder, db or f"sqlite:///{folder / 'boa.db'}")


def status(where: Place) -> Look:
    return look_beside(where.url, where.folder)


def take_snapshot(where: Place, now: float) -> Snapshot:
    if not where.file.is_file():
        raise FileError(str(where.file), "is not there", "the database of a service")
    check_whose(where)
    return snapshots.take(where.file, where.snapshots, now)


def check_whose(where: Place) -> None:
    """Refuse to write for another user's service, which could not open what is ours."""
    owner = where.folder.stat().st_uid
    if owner != os.geteuid():
        name = name_of(owner)
        expected = f"{name} to do this: sudo -u {name} boa store …"
        raise FileError(f"--data {where.folder}", f"is {name}'s, not yours", expected)


def all_snapshots(where: Place) -> list[Snapshot]:
    """The newest first."""
    _ = where.file
    return snapshots.snapshots(where.snapshots)


@dataclass(frozen=True, slots=True)
class Restored:
    snapshot: Path
    aside: Path
    """Folder with the files that were there."""
    lost: frozenset[int]
    """Numbers of jobs that were given out, and that it does not know."""

    @property
    def lost_in_words(self) -> str:
        return listed(self.lost)


def put_back(where: Place, name: str) -> Restored:
    """One of the snapshots by its name, or any file. Raises InputError while a service runs."""
    path, source = where.file, _snapshot(where, name)
    check_whose(where)
    folder = DataFolder(where.folder)
    try:
        backend = backend_of(where.url)
        try:
            assert isinstance(backend, Sqlite)
            return _put_back(folder, backend, source, path)
        finally:
            backend.close()
    finally:
        folder.close()


def _put_back(folder: DataFolder, backend: Sqlite, source: Path, path: Path) -> Restored:
    mark, seen = read_mark(folder.path), folder.jobs()
    draft = copy_beside(source, path)
    try:
        engine = checkers(draft, immutable=True)
        found = check(engine, draft, backend.reason)
        engine.dispose()
        if not found.there:
            found.tell("file", "the file is empty")
        if found.faults:
            raise StoreRefused(str(source), found.faults, "Name another copy: boa store restore")
        aside = folder.new_quarantine() / "store"
        write_restored(folder.path, found)
        replace_store(path, draft, aside)
    finally:
        draft.unlink(missing_ok=True)
    after = Look(found, mark, seen, ())
    return Restored(source, aside, frozenset(after.lost - found.lost))


def _snapshot(where: Place, name: str) -> Path:
    for path in (where.snapshots / name, Path(name)):
        if os.path.isfile(path):  # which a name that can be none's is not either
            return path.absolute()
    expected = "one that boa store restore lists, or a file"
    raise InputError("SNAPSHOT", name, expected, f"there is no {name[:60]}")
