"""The keeper as a rank sees it. Every call may raise `NoKeeper`: then the disk is there."""

import socket
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from boa.train.keeper import messages
from boa.train.keeper.far import Address
from boa.train.keeper.messages import Message
from boa.train.keeper.process import SOCKET, WANTED
from boa.train.keeper.stripes import Stripes

COMING_S = 60.0
"""For a keeper to come when it was asked for."""
LOOK_S = 0.2
PATIENCE_S = 20.0
"""For an answer."""


class NoKeeper(OSError):
    """There is none, it has died, or it will not; says which."""


class Later(NoKeeper):
    """The memory is being had from the system: to be asked again."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A segment."""

    number: int
    content: Stripes


class Where(NamedTuple):
    """Which keeper it is, and how it is found."""

    key: str
    """The word by which it knows itself."""
    address: Address | None
    """Where other nodes reach it, if they do."""
    node: str
    """The name of its node, if it was told."""
    pid: int


class KeeperClient:
    """One connection, for any thread. What was reserved through it and not kept is free when it
    closes."""

    def __init__(self, folder: Path) -> None:
        self._alone = threading.Lock()
        try:
            self._connection = messages.connect(folder / SOCKET)
        except OSError as problem:
            raise NoKeeper(f"no keeper listens in {folder}: {problem.strerror}") from None
        self._connection.settimeout(PATIENCE_S)

    def reserve(self, count: int) -> Memory:
        """Memory to write so many bytes into. `Later`: not yet."""
        answer, files = self._ask(ask="reserve", bytes=count)
        return Memory(answer["segment"], Stripes(files, answer["bytes"]))

    def keep(
        self,
        segment: int,
        generation: str,
        command: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        pointer: Path | None = None,
    ) -> None:
        """Hold what is in it, under that name. `command`, `env`: see `write`, which is then taken
        as asked for when this connection ends. `pointer`: the file that speaks of the generation
        once it is published: what nobody writes, and that does not speak of, is free then."""
        will = {"command": list(command), "env": dict(env or {}), "pointer": str(pointer or "")}
        self._ask(ask="keep", segment=segment, generation=generation, **will)

    def open(self, segment: int, generation: str) -> Memory:
        """A segment that another rank has left something in, to read."""
        answer, files = self._ask(ask="open", segment=segment, generation=generation)
        return Memory(segment, Stripes(files, answer["bytes"]))

    def write(self, generation: str, command: list[str], env: dict[str, str]) -> None:
        """Have it written to the disk, by this command."""
        self._ask(ask="write", generation=generation, command=command, env=env)

    def release(self, generation: str) -> None:
        """It is on the disk, or not needed."""
        self._ask(ask="release", generation=generation)

    def where(self) -> Where:
        answer, _ = self._ask(ask="where")
        address = Address(answer["host"], answer["port"], answer["key"])
        reached = address if answer["host"] else None
        return Where(answer["key"], reached, answer["node"], answer["pid"])

    def close(self) -> None:
        with suppress(OSError):  # heard of at once, though a forked process may have it, too
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _ask(self, **message: object) -> tuple[Message, list[int]]:
        try:
            with self._alone:  # or one gets the other's answer, and its memory
                messages.send(self._connection, message)
                heard = messages.receive(self._connection)
        except (OSError, ValueError) as problem:
            self.close()  # an answer that is late would be taken for the next one
            raise NoKeeper(f"the keeper does not answer: {problem}") from None
        if heard is None:
            raise NoKeeper("the keeper has ended")
        answer, files = heard
        if "later" in answer:
            raise Later(answer["later"])
        if "refused" in answer:
            raise NoKeeper(str(answer["refused"]))
        return answer, files


def begun(folder: Path, over: threading.Event) -> KeeperClient:
    """A connection to the keeper there; if there is none yet, ask for one and wait.

    NoKeeper: none has come, or `over` has been set meanwhile.
    """
    until = time.monotonic() + COMING_S
    while True:
        try:
            return KeeperClient(folder)
        except NoKeeper:
            if time.monotonic() > until or over.is_set():
                raise
        with suppress(OSError):
            (folder / WANTED).touch(mode=0o600)
        over.wait(LOOK_S)


def listens(folder: Path) -> bool:
    try:
        connection: socket.socket = messages.connect(folder / SOCKET)
    except OSError:
        return False
    connection.close()
    return True
