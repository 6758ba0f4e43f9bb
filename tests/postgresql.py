"""A real PostgreSQL from the system's packages, for tests: a pytest plugin.

    pytest_plugins = ("postgresql",)

    def test_...(postgresql: Postgresql) -> None:      # the server
    def test_...(database: Database) -> None:          # runs twice: SQLite, PostgreSQL

Started once, by the first test that asks. Where it is not installed, tests that need it are
skipped. (PYTEST_DONT_REWRITE: tests import it before it is a plugin.)
"""

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, NullPool, create_engine
from sqlalchemy.exc import OperationalError


def programs() -> Path | None:
    """The folder of initdb and postgres; Debian keeps it out of the PATH."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return folders[-1] if folders else None


def _user() -> str | None:
    """It refuses to run as root: somebody else then."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in known)


class Postgresql:
    """A cluster in a folder of its own, reached through a socket in it."""

    def __init__(self, bin_folder: Path) -> None:
        self._bin, self._user = bin_folder, _user()
        self.folder = Path(tempfile.mkdtemp(prefix="boa-pg-"))
        self._numbers = itertools.count(1)
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        self.folder.chmod(0o755)
        options = ["--auth=trust", "--username=boa", "--no-sync", "--encoding=UTF8"]
        with self._started(self._program("initdb", *options)) as making:
            output, _ = making.communicate(timeout=300)
            assert making.returncode == 0, output.decode()
        url = self.url("postgres", driver="postgresql+psycopg")
        self._admin = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        self.start()

    def _program(self, name: str, *options: str) -> list[str]:
        return [str(self._bin / name), "-D", str(self.folder / "data"), *options]

    def _started(self, command: list[str]) -> "subprocess.Popen[bytes]":
        identity: dict[str, Any] = {}
        if self._user is not None:
            user = pwd.getpwnam(self._user)
            identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        return subprocess.Popen(
            command,
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **identity,
        )

    def start(self) -> None:
        """It ends with its input, so even tests that are killed leave no server behind."""
        options = ["-k", str(self.folder), "-c", "listen_addresses=", "-c", "fsync=off"]
        until_input_ends = '"$@" >>log 2>&1 & read -r _; kill -INT $!; wait'
        server = self._program("postgres", *options)
        self._server = self._started(["sh", "-c", until_input_ends, "sh", *server])
        deadline = time.monotonic() + 300
        while not self._answers():
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            self._admin.connect().close()
        except OperationalError:
            return False
        return True

    def stop(self) -> None:
        """Connections are broken, transactions undone."""
        self._server.communicate(timeout=300)

    def url(self, name: str, *, driver: str = "postgresql", host: Path | None = None) -> str:
        return f"{driver}://boa@/{name}?host={host or self.folder}"

    def new_database(self) -> str:
        name = f"test_{next(self._numbers)}"
        with self._admin.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        return name

    def cut_off(self, name: str) -> None:
        """Break every connection to a database, as a network does."""
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
        with self._admin.connect() as connection:
            while connection.exec_driver_sql(f"{end} '{name}'").all():
                time.sleep(0.005)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)


@dataclass(frozen=True)
class Database:
    """An empty one; a plain connection to it is what another program would use."""

    url: str

    def engine(self) -> Engine:
        url = self.url.replace("postgresql:", "postgresql+psycopg:")
        return create_engine(url, poolclass=NullPool)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Postgresql]:
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL is not installed: neither initdb nor /usr/lib/postgresql/*/bin")
    server = Postgresql(found)
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    if request.param == "sqlite":
        return Database(f"sqlite:///{tmp_path}/boa.db")
    server: Postgresql = request.getfixturevalue("postgresql")
    return Database(server.url(server.new_database()))
