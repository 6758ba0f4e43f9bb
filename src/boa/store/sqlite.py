"""A store in one file: readers never wait for the writer, nor the writer for them."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

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
        self.path = path = file_of(url)
        self._lease = self._take(path)
        self._writers = writers(path)
        self.readers: Engine = create_engine(_here(path), pool_timeout=LOCK_WAIT_S, **_settings())
        event.listen(self.readers, "connect", _for_reading)
        self.checkers = checkers(path)

    def _take(self, path: Path) -> FileLease:
        lock = path.with_name(path.name + ".lock")
        try:
            private_folder(path.parent)
            return FileLease(lock)
        except BlockingIOError:
            process = FileLease.holder(lock)
            raise InUse(self.where, f" (process {process})" if process else "") from None
        except OSError as error:
            raise self._unusable(error) from None

    def prepare(self) -> None:
        try:
            if not self.path.exists():
                private_file(self.path)  # it will hold the environments of jobs, and a secret
        except OSError as error:
            raise self._unusable(error) from None
        tighten([*parts_of(self.path), self.path.with_name(self.path.name + ".lock")])

    def _unusable(self, error: OSError) -> InputError:
        expected = "sqlite:///PATH of a file in a folder that can be written"
        reason = f"{error.strerror}: {error.filename}"
        return InputError("--db", self.where, expected, f"cannot be opened ({reason})")

    def connect(self) -> Connection:
        return self._writers.connect()

    def reason(self, error: DBAPIError) -> str:
        return reason_of(error)

    def close(self) -> None:
        self.checkers.dispose()
        self.readers.dispose()
        self._writers.dispose()
        self._lease.release()


def reason_of(error: DBAPIError) -> str:
    name = getattr(error.orig, "sqlite_errorname", "")
    known = (words for code, words in REASONS.items() if name.startswith(code))
    return next(known, first_line(error))


def file_of(url: URL) -> Path:
    return Path(url.database or "").absolute()


def parts_of(path: Path) -> list[Path]:
    """The files of a database."""
    return [path.with_name(path.name + part) for part in ("", "-wal", "-shm")]


def writers(path: Path, *, alone: bool = False) -> Engine:
    """`alone`: nobody reads it meanwhile, and everything is to be in the one file."""
    found = create_engine(_here(path), poolclass=NullPool, **_settings())
    event.listen(found, "connect", _for_writing_alone if alone else _for_writing)
    event.listen(found, "begin", _begin)
    return found


def _settings() -> dict[str, Any]:
    return {
        "connect_args": {"timeout": LOCK_WAIT_S, "check_same_thread": False},
        "paramstyle": "named",
    }


def _here(path: Path) -> URL:
    return URL.create("sqlite", database=str(path))


def read_only(path: Path, *, immutable: bool = False) -> str:
    """A URI of SQLite's by which nothing is moved out of the log of changes. `immutable`: a file
    that nobody writes to, and that has no such log."""
    return f"file:{quote(str(path))}?mode=ro{'&immutable=1' if immutable else ''}"


def checkers(path: Path, *, immutable: bool = False) -> Engine:
    """For looking at a file that may be damaged, also beside a service; what is no text is read all
    the same."""
    here = f"sqlite:///{read_only(path, immutable=immutable)}&uri=true"
    settings = {"timeout": LOCK_WAIT_S, "check_same_thread": False}
    found = create_engine(here, poolclass=NullPool, connect_args=settings)
    event.listen(found, "connect", _for_checking)
    event.listen(found, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return found


def _for_checking(connection: Any, _record: object) -> None:
    connection.isolation_level = None
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")


def _for_writing(connection: Any, _record: object) -> None:
    """Transactions begin when `_begin` says so. A commit is on the disk before it returns."""
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


def _for_writing_alone(connection: Any, _record: object) -> None:
    connection.isolation_level = None


def _for_reading(connection: Any, _record: object) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA query_only = ON")


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
