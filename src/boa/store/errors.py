"""Trouble with a database that does not pass by itself."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from boa.errors import BoaError
from boa.store.base import StoreTrouble

if TYPE_CHECKING:
    from boa.store.faults import Fault


class InUse(StoreTrouble):
    """Only one service may work on a database."""

    def __init__(self, database: str, holder: str = "") -> None:
        self.database = database
        super().__init__(
            f"{database} is in use by another boa serve{holder}. Stop that one, or name another "
            "database with --db"
        )


class Overtaken(StoreTrouble):
    """The database is no longer as this service left it. Nothing more can be written by it."""

    def __init__(self, database: str) -> None:
        super().__init__(
            f"{database} has changed under this service (another boa serve has worked on it, or a "
            "change was stored whose confirmation got lost). Restart boa serve: it then goes on "
            "from what is stored"
        )


class StoreRefused(BoaError):
    """The store is damaged, or is not what its data folder knows: nothing was changed."""

    exit_code = 2

    def __init__(self, database: str, faults: "Sequence[Fault]", what_to_do: str) -> None:
        self.database, self.faults = database, faults
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        super().__init__(f"{database}: {faults[0].text}{more}. {what_to_do}")
