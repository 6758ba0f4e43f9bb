"""Simulations beside the live service: one at a time, in processes of their own that give way."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boa.api.what_if import Simulation
from boa.errors import BoaError, InputError
from boa.model.calendar import Calendar
from boa.model.workload import Billing, GpuType
from boa.scheduler.learn.node_times import NodeTimes
from boa.server.what_if.shelf import Shelf
from boa.sim.comparison import compared
from boa.sim.run import World
from boa.sim.sweep import Asked, SweepGrid, points_of, run_points, usual_jobs
from boa.units import GpuName
from boa.worker_process import Tell, WorkerKilled, WorkerProcess

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
class SimulationQuestion:
    """Everything that a process needs to answer; all of it was checked."""

    trace: str
    """The trace's name."""
    world: World
    policies: tuple[str, ...]
    grid: SweepGrid
    asked: Asked
    points: int


class Simulations:
    """Thread-safe. Nothing is started before the first question.

    `folder`: where they are kept; None: in memory. `gpu_types`: what the service itself can rent,
    at its prices. `clock`: the wall's. `billing`: what the service's budget counts, and
    `node_times` how long its nodes take; None: they come and go at once. `calendar`: what its
    budget follows; None: it is the same at all hours.
    """

    def __init__(
        self,
        folder: Path | None = None,
        gpu_types: Mapping[GpuName, GpuType] | None = None,
        clock: Callable[[], float] = time.time,
        billing: Billing = "gpu",
        node_times: NodeTimes | None = None,
        calendar: Calendar | None = None,
    ) -> None:
        self.gpu_types = dict(gpu_types or {})
        self.calendar = calendar
        self.billing: Billing = billing
        self._node_times = node_times or NodeTimes()
        self._clock = clock
        self._shelf = Shelf(folder)
        self._changed = threading.Condition()
        self._known: dict[str, Simulation] = {}
        """Oldest first."""
        self._waiting: deque[tuple[str, SimulationQuestion]] = deque()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._worker: WorkerProcess[SimulationQuestion, tuple[str, dict[str, Any]]] = WorkerProcess(
            _work, "boa-what-if", niceness=NICENESS
        )
        for found in self._shelf.load():
            self._known[found["id"]] = found
            if found["state"] not in OVER:  # the service ended before it did
                self._change(found["id"], state="stopped")

    @property
    def pid(self) -> int | None:
        """The id of the process that simulates, while there is one."""
        return self._worker.pid

    def asked(
        self,
        seed: int,
        billing: Billing,
        types: Iterable[GpuName],
        calendar: Calendar | None = None,
    ) -> Asked:
        """Physics of a question. Where nodes are billed they boot, as slowly as the slowest of
        the service's own on these types."""
        if billing == "gpu":
            return Asked(seed=seed, calendar=calendar)
        rented = [gpu for gpu in types if gpu in self.gpu_types]
        boots, reclaims = self._node_times.boots(rented), self._node_times.reclaims(rented)
        return Asked(
            seed=seed,
            billing=billing,
            calendar=calendar,
            provision_s=max(boots.values(), default=0.0),
            reclaim_s=max(reclaims.values(), default=0.0),
        )

    def ask(self, question: SimulationQuestion) -> Simulation:
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
                "billing": question.asked.billing,
                "boot_s": question.asked.provision_s,
                "calendar": names_of(question.asked.calendar),
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
                self._worker.kill()
        return self.get(number)

    def close(self) -> None:
        """Give up everything that runs or waits."""
        with self._changed:
            self._closing = True
            self._waiting.clear()
            for number, known in list(self._known.items()):
                if known["state"] not in OVER:
                    self._change(number, state="stopped")
            self._worker.close()
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

    # In the thread

    def _serve(self) -> None:
        while (following := self._next()) is not None:
            number, question = following
            try:
                self._run(number, question)
            except WorkerKilled:
                self._end(number, "failed", error=KILLED)
            except Exception as problem:  # no process to be had, say: the thread lives on
                self._end(number, "failed", error=f"it could not be started: {problem}")
            self._worker.let_go()  # only now: nobody stops this one any more, or kills the next

    def _next(self) -> tuple[str, SimulationQuestion] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            if self._closing:
                return None
            number, question = self._waiting.popleft()
            self._change(number, state="running")
            return number, question

    def _run(self, number: str, question: SimulationQuestion) -> None:
        def heard(news: tuple[str, int]) -> None:
            told, value = news
            with self._changed:
                self._known[number] = {**self._known[number], told: value}  # type: ignore[misc]

        state, said = self._worker.ask(question, heard=heard)
        self._end(number, state, **said)

    def _end(self, number: str, state: str, **fields: Any) -> None:
        with self._changed:
            if self._known[number]["state"] == "running":  # or it was stopped
                self._change(number, state=state, **fields)


def names_of(calendar: Calendar | None) -> list[str]:
    return [] if calendar is None else [period.name for period in calendar.periods]


def _work(question: SimulationQuestion, tell: Tell) -> tuple[str, dict[str, Any]]:
    """In the process: tells how far it is; the state it ends in, with a result or an error."""
    world = question.world
    try:
        points = points_of(world, question.policies, question.grid, question.asked.seed)
        tell(("points", len(points)))
        outcomes = run_points(
            world,
            points,
            question.asked,
            jobs=usual_jobs(),
            progress=lambda done, _: tell(("points_done", done)),
        )
        return "done", {"result": compared(world, outcomes, question.asked.billing)[0]}
    except BoaError as problem:
        return "failed", {"error": str(problem)}
    except BrokenProcessPool:
        return "failed", {"error": KILLED}
    except Exception as bug:
        said = f"unexpected {type(bug).__name__} ({bug}); this is a bug in boa"
        return "failed", {"error": said[:500]}
