"""Differences between SQLite and PostgreSQL, behind one protocol."""

from typing import Protocol

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

LOCK_WAIT_S = 2.0
"""How long to wait for a lock that somebody else holds."""


class Backend(Protocol):
    where: str
    """Its URL as errors show it: without a password."""
    readers: Engine
    checkers: Engine
    """Engine for looking, which changes nothing and undoes nothing, and takes any text."""

    def prepare(self) -> None:
        """Make what has to be there before the first connection. Raises InputError."""
        ...

    def connect(self) -> Connection:
        """A connection to write with; as long as it lives no other service can have one.

        Raises InUse, or the driver's error.
        """
        ...

    def reason(self, error: DBAPIError) -> str:
        """The cause of an error, in plain words."""
        ...

    def close(self) -> None: ...


def first_line(error: DBAPIError) -> str:
    lines = str(error.orig).strip().splitlines()
    return lines[0] if lines else type(error.orig).__name__
