"""Simulations beside the live service: one at a time, in a process of its own that gives way."""

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from boa.api.what_if import Simulation
from boa.errors import BoaError, InputError
from boa.model.workload import GpuType
from boa.server.what_if.shelf import Shelf
from boa.sim.comparison import compared
from boa.sim.run import World
from boa.sim.sweep import Asked, Grid, end_with_parent, points_of, run_points
from boa.units import GpuName

MOST_WAITING = 10
MOST_KEPT = 50
NICENESS = 10
"""The control loop, the solver and the jobs of this machine go before."""
KILLED = "the process that simulated was killed (out of memory, perhaps)"
OVER = ("done", "failed", "stopped")


class TooManyWaiting(BoaError):
    status = 503

    def __init__(self) -> None:
        super().__init__(
            f"{MOST_WAITING} simulations wait already, and one runs at a time: wait for one of "
            "them, or stop it"
        )


class NoSuchSimulation(InputError):
    status = 404

    def __init__(self, given: str) -> None:
        super().__init__("id", given[:60], "the id of a simulation (GET /api/v1/what-if)")


class ShuttingDown(BoaError):
    status = 503

    def __init__(self) -> None:
        super().__init__("the service is shutting down; nothing was begun")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Everything that a process needs to answer; all of it was checked."""

    trace: str
    """The trace's name."""
    world: World
    policies: tuple[str, ...]
    grid: Grid
    asked: Asked
    points: int


class Simulations:
    """Thread-safe. Nothing is started before the first question.

    `folder`: where they are kept; None: in memory. `gpu_types`: what the service itself can rent,
    at its prices. `clock`: the wall's.
    """

    def __init__(
        self,
        folder: Path | None = None,
        gpu_types: Mapping[GpuName, GpuType] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.gpu_types = dict(gpu_types or {})
        self._clock = clock
        self._shelf = Shelf(folder)
        self._changed = threading.Condition()
        self._known: dict[str, Simulation] = {}
        """Oldest first."""
        self._waiting: deque[tuple[str, Question]] = deque()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._process: BaseProcess | None = None
        for found in self._shelf.load():
            self._known[found["id"]] = found
            if found["state"] not in OVER:  # the service ended before it did
                self._change(found["id"], state="stopped")

    @property
    def pid(self) -> int | None:
        """The id of the process that simulates, while there is one."""
        process = self._process
        return None if process is None else process.pid

    def ask(self, question: Question) -> Simulation:
        with self._changed:
            if self._closing:
                raise ShuttingDown
            if len(self._waiting) >= MOST_WAITING:
                raise TooManyWaiting
            number = str(max(map(int, self._known), default=0) + 1)
            asked: Simulation = {
                "id": number,
                "state": "waiting",
                "trace": question.trace,
                "policies": list(question.policies),
                "budgets": list(question.grid.budgets),
                "gpu_types": list(question.world.gpu_types),
                "asked_at": self._clock(),
                "points_done": 0,
                "points": question.points,
                "error": "",
            }
            self._known[number] = asked
            self._shelf.put(asked)
            self._waiting.append((number, question))
            self._forget_oldest()
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="boa-what-if", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            return asked

    def all(self) -> list[Simulation]:
        """Newest first, without results."""
        with self._changed:
            return list(reversed(self._known.values()))

    def get(self, number: str) -> Simulation:
        """With its result, once it is done."""
        return self._shelf.get(self._found(number))

    def stop(self, number: str) -> Simulation:
        """At once; of one that is over, nothing."""
        with self._changed:
            state = self._found(number)["state"]
            if state not in OVER:
                self._waiting = deque(w for w in self._waiting if w[0] != number)
                self._change(number, state="stopped")
            if state == "running":
                self._kill()
        return self.get(number)

    def close(self) -> None:
        """Give up everything that runs or waits."""
        with self._changed:
            self._closing = True
            self._waiting.clear()
            for number, known in list(self._known.items()):
                if known["state"] not in OVER:
                    self._change(number, state="stopped")
            self._kill()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _found(self, number: str) -> Simulation:
        with self._changed:
            if number not in self._known:
                raise NoSuchSimulation(number)
            return self._known[number]

    def _change(self, number: str, **fields: Any) -> None:
        """To be kept; a result goes straight to where it is kept."""
        result = fields.pop("result", None)
        changed: Simulation = {**self._known[number], **fields}  # type: ignore[typeddict-item]
        self._known[number] = changed
        self._shelf.put(changed, result)

    def _forget_oldest(self) -> None:
        over = [known for known in self._known.values() if known["state"] in OVER]
        for known in over[: max(len(self._known) - MOST_KEPT, 0)]:
            del self._known[known["id"]]
            self._shelf.drop(known)

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    # In the thread

    def _serve(self) -> None:
        while (following := self._next()) is not None:
            number, question = following
            try:
                self._run(number, question)
            except Exception as problem:  # no process to be had, say: the thread lives on
                self._end(number, "failed", error=f"it could not be started: {problem}")

    def _next(self) -> tuple[str, Question] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            if self._closing:
                return None
            number, question = self._waiting.popleft()
            self._change(number, state="running")
            return number, question

    def _run(self, number: str, question: Question) -> None:
        spawn = multiprocessing.get_context("spawn")
        ours, theirs = spawn.Pipe(duplex=False)
        process = spawn.Process(
            target=_work, args=(theirs, question), name="boa-what-if", daemon=True
        )
        try:
            try:
                process.start()  # not under the lock: nobody else is to wait for it
            finally:
                theirs.close()
            with self._changed:
                self._process = process
                if self._known[number]["state"] != "running":  # stopped meanwhile
                    process.kill()
            self._listen(number, ours)
        finally:
            with self._changed:
                self._process = None
            if process.pid is not None:
                process.kill()
                process.join()
                process.close()
            ours.close()  # only now: it might be writing

    def _listen(self, number: str, pipe: Connection) -> None:
        try:
            while True:
                told, value = pipe.recv()
                if told == "result":
                    return self._end(number, "done", result=value)
                if told == "error":
                    return self._end(number, "failed", error=value)
                with self._changed:
                    self._known[number] = {**self._known[number], told: value}  # type: ignore[misc]
        except (EOFError, OSError):
            self._end(number, "failed", error=KILLED)

    def _end(self, number: str, state: str, **fields: Any) -> None:
        with self._changed:
            if self._known[number]["state"] == "running":  # or it was stopped
                self._change(number, state=state, **fields)


def _work(pipe: Connection, question: Question) -> None:
    """The process: tells how far it is, then what came of it."""
    for signalled in (signal.SIGINT, signal.SIGTERM):  # meant for the service, which kills us
        signal.signal(signalled, signal.SIG_IGN)
    os.nice(NICENESS)
    threading.Thread(target=end_with_parent, daemon=True).start()
    world = question.world
    try:
        points = points_of(world, question.policies, question.grid, question.asked.seed)
        pipe.send(("points", len(points)))
        outcomes = run_points(
            world, points, question.asked, progress=lambda done, _: pipe.send(("points_done", done))
        )
        pipe.send(("result", compared(world, outcomes)[0]))
    except BoaError as problem:
        pipe.send(("error", str(problem)))
    except Exception as bug:
        said = f"unexpected {type(bug).__name__} ({bug}); this is a bug in boa"
        pipe.send(("error", said[:500]))
