"""A store in a PostgreSQL database of its own.

The connection that writes also holds the lock that keeps other services out: who has lost the one
has lost the other, and the server undoes what a lost connection had begun before it gives the lock
to anyone else.
"""

import os
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, func, select
from sqlalchemy.exc import DBAPIError

from boa.errors import BoaError
from boa.store.backend import LOCK_WAIT_S, first_line
from boa.store.errors import InUse
from boa.store.lease import not_for_children

LEASE = 0x626F61  # "boa", among the database's advisory locks
LOCKED = "55P03"
REASONS = {
    LOCKED: "it is locked by another session",
    "53100": "its disk is full",
    "53300": "it has no connection to spare",
    "25006": "it is read-only",
}
# Both ends notice within half a minute that the other machine is gone.
FROM_HERE = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
    "application_name": "boa serve",
}
FROM_THERE = (
    f"-c lock_timeout={LOCK_WAIT_S * 1000:.0f} -c tcp_keepalives_idle=10 "
    "-c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
)


class Postgresql:
    def __init__(self, url: URL) -> None:
        self.where = url.render_as_string()
        url = _with_settings(url)
        try:
            self._writers = create_engine(url, poolclass=NullPool)
            self.readers: Engine = create_engine(url, pool_pre_ping=True, pool_timeout=LOCK_WAIT_S)
        except ImportError as error:
            raise BoaError(
                f"--db {self.where} needs the package psycopg ({error}): "
                "pip install 'boa-constrictor[postgres]'"
            ) from None
        self.checkers = self.readers
        self._writer: Any = None
        """The driver's connection that holds the lock."""
        not_for_children(self)

    def prepare(self) -> None:
        """Nothing: whoever runs the server makes the database."""

    def connect(self) -> Connection:
        connection = self._writers.connect()
        try:
            with connection.begin():
                # It waits for a moment: the service before this one may have just been killed.
                connection.execute(select(func.pg_advisory_lock(LEASE)))
        except DBAPIError as error:
            connection.close()
            if _state(error) == LOCKED:
                raise InUse(self.where) from None
            raise
        self._writer = connection.connection.driver_connection
        return connection

    def let_go_in_child(self) -> None:
        if self._writer is not None and not self._writer.closed:
            os.close(self._writer.fileno())

    def reason(self, error: DBAPIError) -> str:
        state = _state(error)
        if state is None:
            return f"it cannot be reached ({first_line(error)})"
        return REASONS.get(state, first_line(error))

    def close(self) -> None:
        self._writer = None
        self.readers.dispose()
        self._writers.dispose()


def _with_settings(url: URL) -> URL:
    """The URL with our settings; those that it has itself come first."""
    url = url.set(drivername="postgresql+psycopg")
    query = {**FROM_HERE, **url.query}
    given = query.get("options", "")
    query["options"] = " ".join([FROM_THERE, *([given] if isinstance(given, str) else given)])
    return url.set(query=query)


def _state(error: DBAPIError) -> str | None:
    state: str | None = getattr(error.orig, "sqlstate", None)
    return state
