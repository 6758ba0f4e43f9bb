"""A store in one file: readers never wait for the writer, nor the writer for them."""

from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event
from sqlalchemy.exc import DBAPIError

from boa.errors import InputError
from boa.private_files import private_file, private_folder, tighten
from boa.store.backend import LOCK_WAIT_S, first_line
from boa.store.errors import InUse
from boa.store.lease import FileLease

REASONS = {
    "SQLITE_BUSY": "it is locked by another process",
    "SQLITE_FULL": "the disk is full",
    "SQLITE_IOERR": "the disk failed (I/O error)",
    "SQLITE_READONLY": "the file, or its folder, may not be written",
    "SQLITE_CANTOPEN": "the file cannot be opened",
    "SQLITE_NOTADB": "the file is no SQLite database",
    "SQLITE_CORRUPT": "the file is damaged",
}


class Sqlite:
    def __init__(self, url: URL) -> None:
        self.where = url.render_as_string()
        path = Path(url.database or "").absolute()
        self._lease = self._take(path)
        settings: dict[str, Any] = {
            "connect_args": {"timeout": LOCK_WAIT_S, "check_same_thread": False},
            "paramstyle": "named",
        }
        here = URL.create("sqlite", database=str(path))
        self._writers = create_engine(here, poolclass=NullPool, **settings)
        event.listen(self._writers, "connect", _for_writing)
        event.listen(self._writers, "begin", _begin)
        self.readers: Engine = create_engine(here, pool_timeout=LOCK_WAIT_S, **settings)
        event.listen(self.readers, "connect", _for_reading)

    def _take(self, path: Path) -> FileLease:
        lock = path.with_name(path.name + ".lock")
        try:
            private_folder(path.parent)
            lease = FileLease(lock)
            if not path.exists():
                private_file(path)  # it will hold the environments of jobs, and a secret
            tighten(path.with_name(path.name + part) for part in ("", "-wal", "-shm", ".lock"))
        except BlockingIOError:
            process = FileLease.holder(lock)
            raise InUse(self.where, f" (process {process})" if process else "") from None
        except OSError as error:
            expected = "sqlite:///PATH of a file in a folder that can be written"
            reason = f"{error.strerror}: {error.filename}"
            raise InputError("--db", self.where, expected, f"cannot be opened ({reason})") from None
        return lease

    def connect(self) -> Connection:
        return self._writers.connect()

    def reason(self, error: DBAPIError) -> str:
        name = getattr(error.orig, "sqlite_errorname", "")
        known = (words for code, words in REASONS.items() if name.startswith(code))
        return next(known, first_line(error))

    def close(self) -> None:
        self.readers.dispose()
        self._writers.dispose()
        self._lease.release()


def _for_writing(connection: Any, _record: object) -> None:
    """Transactions begin when `_begin` says so. A commit is on the disk before it returns."""
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


def _for_reading(connection: Any, _record: object) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA query_only = ON")


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
