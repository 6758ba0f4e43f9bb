"""A world whose service keeps everything in PostgreSQL, which fails apart from it."""

import random
import signal
import threading
from pathlib import Path
from typing import Any

from _campaign.faults import fault
from _campaign.processes import children, end_all, lives, send, until
from _campaign.world import Means, World
from postgresql import Postgresql

HERE = ("postgresql",)


class Database:
    """A server that many worlds share, one after the other, each with a database of its own."""

    def __init__(self, programs: Path) -> None:
        self.server = Postgresql(programs)

    def pid(self) -> int:
        return int((self.server.folder / "data" / "postmaster.pid").read_text().split()[0])

    def wrapper(self) -> list[int]:
        """The process that ends it with us."""
        return [self.server._server.pid]

    def everybody(self) -> list[int]:
        return [self.pid(), *children(self.pid())]

    def crash(self) -> None:
        """All of its processes at once; it comes back with what it had promised."""
        left = self.everybody()
        end_all(lambda: [pid for pid in left if lives(pid)])
        self.server.stop()
        self.server.start()

    def close(self) -> None:
        self.server.remove()


class PostgresqlWorld(World):
    def __init__(self, means: Means, luck: random.Random, database: Database) -> None:
        self.database = database
        self.name = database.server.new_database()
        super().__init__(means, luck, "postgresql")

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "db": self.store_url()}

    def store_url(self) -> str:
        return self.database.server.url(self.name)

    def second_settings(self) -> dict[str, Any]:
        return {"data_dir": str(self.scratch / "second"), "db": self.store_url()}

    def recover(self) -> None:
        for pid in self.database.everybody():
            send(pid, signal.SIGCONT)


def _database(world: World) -> Database:
    assert isinstance(world, PostgresqlWorld)
    return world.database


@fault("kill-postgresql", HERE, weight=6)
def kill_postgresql(world: World, luck: random.Random) -> bool:
    _database(world).crash()
    return True


@fault("stop-postgresql", HERE, weight=4)
def stop_postgresql(world: World, luck: random.Random) -> bool:
    for pid in _database(world).everybody():
        send(pid, signal.SIGSTOP)
    asking = threading.Thread(target=world.submit)  # who asks waits for a minute
    asking.start()
    world.advance(busy=False)
    world.recover()
    asking.join()
    return True


@fault("cut-postgresql", HERE, weight=4)
def cut_postgresql(world: World, luck: random.Random) -> bool:
    """Every connection breaks, as in a network."""
    assert isinstance(world, PostgresqlWorld)
    world.database.server.cut_off(world.name)
    world.use()
    return True


@fault("kill-postgresql-backend", HERE, weight=2)
def kill_backend(world: World, luck: random.Random) -> bool:
    """One of its processes: the server ends all others and recovers by itself."""
    server = _database(world)
    found = children(server.pid())
    if not found or not send(luck.choice(found), signal.SIGKILL):
        return False
    until(server.server._answers, "PostgreSQL recovers")
    return True
