"""The observer's own books: what was acknowledged, what jobs did, what the cloud has rented."""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boa.client import Client
from boa.errors import BoaError, NoServer, Refused

LOOK_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What a worker wrote down."""

    at: float
    what: str
    name: str
    job: str
    attempt: int
    rank: int
    pid: int
    n: int
    more: Mapping[str, Any]


class Journal:
    """All lines of all workers, the oldest first."""

    def __init__(self, path: Path) -> None:
        self._path, self._read = path, 0
        self._lines: list[Line] = []
        path.touch()

    def lines(self) -> list[Line]:
        with self._path.open("rb") as file:
            file.seek(self._read)
            whole, _, _ = file.read().rpartition(b"\n")
        if whole:
            self._read += len(whole) + 1
            self._lines += map(_line, whole.split(b"\n"))
        return self._lines

    def pids(self, what: str) -> list[int]:
        """Workers that have started, or the children that they had."""
        found = (line for line in self.lines() if line.what == what)
        return [int(line.more.get("child", line.pid)) for line in found]

    def done(self) -> dict[str, set[int]]:
        """By name of a job: numbers of the units that were really done."""
        found: dict[str, set[int]] = defaultdict(set)
        for line in self.lines():
            if line.what == "unit":
                found[line.name].add(line.n)
        return found

    def by_attempt(self) -> dict[tuple[str, int], int]:
        """By id of a job and attempt: how many units were done in it."""
        found: dict[tuple[str, int], int] = defaultdict(int)
        for line in self.lines():
            if line.what == "unit":
                found[line.job, line.attempt] += 1
        return found


def _line(text: bytes) -> Line:
    read = json.loads(text)
    known = {name: read.pop(name) for name in Line.__slots__ if name != "more"}
    return Line(**known, more=read)


@dataclass
class Acknowledged:
    """What the service has said yes to, and what it may have done without an answer."""

    jobs: dict[str, str] = field(default_factory=dict)
    """By name: the id that was answered."""
    maybe: set[str] = field(default_factory=set)
    """Names of jobs that were asked for and never answered."""
    stops: set[str] = field(default_factory=set)
    maybe_stops: set[str] = field(default_factory=set)
    budgets: list[float] = field(default_factory=list)
    """What may be in force: the last that was answered, and what was asked for since."""
    refused: list[str] = field(default_factory=list)
    bugs: list[str] = field(default_factory=list)
    """Answers that say themselves that they are a bug."""


class User:
    """Asks the service, once each, and writes down what was answered."""

    def __init__(self, client: Client, said: Acknowledged) -> None:
        self.client, self.said = client, said

    def submit(self, document: Mapping[str, Any]) -> None:
        name = document["name"]
        if (answer := self._asked(lambda: self.client.submit(document))) is not None:
            self.said.jobs[name] = answer["id"]
        else:
            self.said.maybe.add(name)

    def stop(self, name: str) -> None:
        job = self.said.jobs[name]
        answered = self._asked(lambda: self.client.stop(job)) is not None
        (self.said.stops if answered else self.said.maybe_stops).add(name)

    def set_budget(self, budget: float) -> None:
        self.said.budgets.append(budget)
        if self._asked(lambda: self.client.set_budget(budget)) is not None:
            self.said.budgets = [budget]

    def _asked(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except NoServer:
            return None
        except Refused as no:
            (self.said.bugs if no.status == 500 else self.said.refused).append(str(no))
            return None
        except BoaError as trouble:
            self.said.refused.append(str(trouble))
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rented:
    """A node in the cloud's own book; times are the cloud's, prices of the whole node per hour."""

    token: str
    price: float
    since: float
    until: float | None

    def cost(self) -> float:
        return self.price * ((self.until or self.since) - self.since) / 3600


class Book:
    """Of the local cloud, read from its file many times a second: nodes leave it after an hour."""

    def __init__(self, path: Path) -> None:
        self._path, self._known = path, dict[str, Rented]()
        self._over = threading.Event()
        self._stamp: tuple[int, ...] = ()
        self._one = threading.Lock()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def rented(self) -> dict[str, Rented]:
        self._look()
        return dict(self._known)

    def close(self) -> None:
        self._over.set()
        self._thread.join(10)

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        with self._one, suppress(OSError, ValueError):
            found = self._path.stat()
            stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
            if stamp != self._stamp:
                for node in json.loads(self._path.read_text())["nodes"]:
                    self._known[node["token"]] = _rented(node)
                self._stamp = stamp


def _rented(node: Mapping[str, Any]) -> Rented:
    return Rented(
        token=node["token"],
        price=node["gpus"] * node["price"],
        since=node["rented_at"],
        until=node["gone_at"],
    )


def dearest_moment(rented: Mapping[str, Rented]) -> float:
    """The highest price per hour of all nodes that were there at once."""
    moments: list[tuple[float, float]] = []
    for node in rented.values():
        moments.append((node.since, node.price))
        if node.until is not None:
            moments.append((node.until, -node.price))
    rate = most = 0.0
    for _, change in sorted(moments):  # who leaves at a moment makes room for who comes
        rate += change
        most = max(most, rate)
    return most


def waited(seconds: float) -> Iterator[None]:
    """Again and again, until so much time has passed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(LOOK_S)
