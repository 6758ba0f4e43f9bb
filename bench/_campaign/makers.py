"""Makers of worlds, with the servers that worlds share."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from random import Random

import postgresql
from _campaign.database import Database, PostgresqlWorld
from _campaign.world import Means, World


def available() -> list[str]:
    """Worlds that can be had on this machine."""
    return ["local", *(["postgresql"] if postgresql.programs() else [])]


class Makers(ExitStack):
    """Servers are started by the first world that needs them, and end with the campaign."""

    _database: Database | None = None

    def of(self, kind: str) -> Callable[[Means, Random], World]:
        if kind == "postgresql":
            database = self._with_database()
            return lambda means, luck: PostgresqlWorld(means, luck, database)
        return World

    def _with_database(self) -> Database:
        if self._database is None:
            found = postgresql.programs()
            assert found is not None
            self._database = self.enter_context(closing(Database(found)))
        return self._database
