"""A service in memory: what the server talks to, told by a test what to do; and ways to ask it."""

import asyncio
import math
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import httpx
import numpy as np
from fastapi import FastAPI

from boa.control.snapshot import MoneyState, NoSuchJob, NotNow, PlanState, Snapshot
from boa.engines.base import Launch, LogFile, RunEvent, RunKey
from boa.errors import BoaError
from boa.model.cluster import Allocation, JobId, NodeId
from boa.model.job import JobRecord, JobSpec, Run, State
from boa.model.live import Event, Hold, NodeRecord, Point, Report, Sample
from boa.model.profile import ClassProfile
from boa.model.workload import GpuType
from boa.server.app import create_app
from boa.server.run import listen, server_for, url_of
from boa.server.what_if import Simulations
from boa.store.base import Changes, Held, Saved, StoredEvent, StoreTrouble
from boa.units import Seconds, UsdPerHour

NOW = 1_790_000_000.0
"""21 September 2026, 14:13:20 UTC."""
SECRET = b"a secret of the tests"
_T = TypeVar("_T")


def done(value: _T) -> "Future[_T]":
    future: Future[_T] = Future()
    future.set_result(value)
    return future


def failed(problem: BoaError) -> "Future[Any]":
    future: Future[Any] = Future()
    future.set_exception(problem)
    return future


def held(holds: Sequence[Hold]) -> Held:
    """Holds by column, as a store gives them."""
    return Held(
        job_class=[hold.job_class for hold in holds],
        node=np.array([hold.node for hold in holds], dtype=np.int64),
        gpus=np.array([hold.gpus for hold in holds], dtype=float),
        since=np.array([hold.since for hold in holds], dtype=float),
        until=np.array([math.inf if h.until is None else h.until for h in holds], dtype=float),
    )


class FakeStore:
    """Keeps what it is given; `trouble` makes every reading fail."""

    def __init__(self) -> None:
        self.kept: dict[JobId, JobRecord] = {}
        self.kept_nodes: dict[NodeId, NodeRecord] = {}
        self.kept_holds: list[Hold] = []
        self.kept_samples: list[Sample] = []
        self.kept_points: list[Point] = []
        self.told: list[Event] = []
        self.trouble: StoreTrouble | None = None

    def _check(self) -> None:
        if self.trouble is not None:
            raise self.trouble

    def load(self) -> Saved:
        raise AssertionError("the server reads; only the control loop loads")

    def commit(self, changes: Changes) -> int:
        raise AssertionError("the server reads; only the control loop writes")

    def job(self, job: JobId) -> JobRecord | None:
        self._check()
        return self.kept.get(job)

    def jobs(
        self,
        *,
        ended: bool | None = None,
        job_class: str | None = None,
        since: Seconds | None = None,
        limit: int = 1000,
        before: int | None = None,
    ) -> Sequence[JobRecord]:
        self._check()
        found = [
            record
            for record in self.kept.values()
            if (ended is None or record.ended == ended)
            and (job_class is None or record.job_class == job_class)
            and (before is None or int(record.id) < before)
        ]
        return sorted(found, key=lambda record: -int(record.id))[:limit]

    def events(
        self, *, after: int = 0, job: JobId | None = None, limit: int = 1000, newest: bool = False
    ) -> Sequence[StoredEvent]:
        self._check()
        found = [
            StoredEvent(number, event)
            for number, event in enumerate(list(self.told), start=1)
            if number > after and job in (None, event.job)
        ]
        return found[-limit:] if newest else found[:limit]

    def nodes_between(self, since: Seconds, until: Seconds) -> Sequence[NodeRecord]:
        self._check()
        return list(self.kept_nodes.values())

    def holds_between(
        self, since: Seconds, until: Seconds, *, job: JobId | None = None
    ) -> Sequence[Hold]:
        self._check()
        return [hold for hold in self.kept_holds if job in (None, hold.job)]

    def held_between(self, since: Seconds, until: Seconds) -> Held:
        self._check()
        return held(self.kept_holds)

    def nodes(self, ids: Collection[NodeId]) -> Sequence[NodeRecord]:
        self._check()
        return [node for number, node in sorted(self.kept_nodes.items()) if number in ids]

    def samples_between(self, since: Seconds, until: Seconds) -> Sequence[Sample]:
        self._check()
        return [sample for sample in self.kept_samples if since <= sample.at <= until]

    def points(self, job: JobId) -> Sequence[Point]:
        self._check()
        return [point for point in self.kept_points if point.job == job]

    def close(self) -> None: ...


@dataclass
class FakeEngine:
    """Logs are what a test has written into a folder: ATTEMPT-RANK-PART.log, part 0 the older."""

    folder: Path

    def logs(self, job: JobId) -> Sequence[LogFile]:
        found = []
        for path in (self.folder / job).glob("*.log"):
            attempt, rank, part = map(int, path.stem.split("-"))
            found.append((attempt, rank, part, path))
        return [LogFile(attempt, rank, path) for attempt, rank, _, path in sorted(found)]

    def write(self, job: JobId, text: str, *, attempt: int = 1, rank: int = 0) -> None:
        path = self.folder / job / f"{attempt}-{rank}-1.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as log:
            log.write(text)

    def turn_over(self, job: JobId) -> None:
        """As the local engine does with a log that has grown long."""
        (self.folder / job / "1-0-1.log").rename(self.folder / job / "1-0-0.log")

    def start(self, launch: Launch) -> None:
        raise AssertionError("the server reads logs; only the control loop starts runs")

    def stop(self, key: RunKey, grace_s: Seconds) -> None:
        raise AssertionError("the server reads logs; only the control loop stops runs")

    def poll(self) -> Sequence[RunEvent]:
        return ()

    def runs(self) -> Collection[RunKey]:
        return ()

    def forget(self, key: RunKey) -> None:
        raise AssertionError("the server reads logs; only the control loop forgets runs")

    def close(self) -> None: ...


MONEY = MoneyState(
    budget=14.0,
    max_spend=None,
    effective=13.5,
    since=NOW - 7200,
    spent=20.0,
    total=26.0,
    jobs=20.0,
    idle=4.0,
    provisioning=2.0,
    now_per_hour=8.0,
)


@dataclass
class FakeControl:
    store: FakeStore = field(default_factory=FakeStore)
    clock: float = NOW
    money: MoneyState = MONEY
    active: dict[JobId, JobRecord] = field(default_factory=dict)
    nodes: dict[NodeId, NodeRecord] = field(default_factory=dict)
    holds: dict[tuple[JobId, NodeId, Seconds], Hold] = field(default_factory=dict)
    plan: PlanState | None = None
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    profiled: dict[str, ClassProfile] = field(default_factory=dict)
    counters: dict[str, float] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)
    busy: BoaError | None = None
    """What every change is refused with."""
    stuck: bool = False
    """Whether changes are never answered."""

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot(
            now=self.clock,
            jobs=dict(self.active),
            nodes=dict(self.nodes),
            holds=dict(self.holds),
            charged=lambda money=self.money: money,  # type: ignore[misc]
            plan=self.plan,
            last_event=len(self.store.told),
            counters=dict(self.counters),
        )

    def now(self) -> Seconds:
        return self.clock

    def submit(self, spec: JobSpec) -> "Future[JobRecord]":
        if self.busy is not None or self.stuck:
            return self._refuse()
        number = len(self.store.kept) + 1
        record = JobRecord(id=str(number), spec=spec, serial=0, submitted_at=self.clock)
        self.put(record)
        self.tell("submitted", f"job {record.id} ({record.name})", job=record.id)
        return done(record)

    def stop(self, job: JobId) -> "Future[JobRecord]":
        if self.busy is not None or self.stuck:
            return self._refuse()
        record = self.active.get(job) or self.store.kept.get(job)
        if record is None:
            return failed(NoSuchJob(job))
        return done(record if record.ended else self.end(job, "stopped", exit_code=0))

    def set_budget(
        self, budget: UsdPerHour, max_spend: UsdPerHour | None = None
    ) -> "Future[MoneyState]":
        if self.busy is not None or self.stuck:
            return self._refuse()
        cap = self.money.max_spend if max_spend is None else max_spend
        cap = None if cap == math.inf else cap
        self.money = replace(
            self.money,
            budget=budget,
            effective=budget,
            max_spend=cap,
            since=self.clock,
            spent=0.0,
        )
        return done(self.money)

    def _refuse(self) -> "Future[Any]":
        return Future() if self.busy is None else failed(self.busy)

    def report(self, report: Report) -> None:
        self.reports.append(report)

    def class_document(self, job_class: str) -> Mapping[str, Any] | None:
        return self.documents.get(job_class)

    def classes(self) -> list[str]:
        return sorted(self.documents)

    def profiles(self) -> Mapping[str, ClassProfile]:
        return dict(self.profiled)

    # What a test makes happen

    def put(self, record: JobRecord) -> JobRecord:
        self.store.kept[record.id] = record
        if record.ended:
            self.active.pop(record.id, None)
        else:
            self.active[record.id] = record
        return record

    def tell(self, kind: str, text: str, job: JobId | None = None, **data: Any) -> None:
        self.store.told.append(Event(at=self.clock, kind=kind, text=text, job=job, data=data))

    def rent(self, node: NodeId, gpu: str = "T4", gpus: int = 4) -> None:
        record = NodeRecord(
            id=node,
            token=f"test-{node}",
            gpu=gpu,
            gpus=gpus,
            price=1.0,
            state="ready",
            requested_at=self.clock - 3700,
            billed_from=self.clock - 3600,
            ready_at=self.clock - 3500,
        )
        self.nodes[node] = self.store.kept_nodes[node] = record

    def run(self, job: JobId, gpus: int = 2, *, node: NodeId = 1, attempt: int = 1) -> JobRecord:
        """It runs since an hour, on GPUs of one node."""
        if node not in self.nodes:
            self.rent(node)
        began = self.clock - 3600
        allocation = Allocation(self.nodes[node].gpu, ((node, gpus),))
        record = self.active[job]
        run = Run(
            attempt=attempt,
            allocation=allocation,
            slots={node: tuple(range(gpus))},
            state="running",
            requested_at=began,
            decided_at=began,
            started_at=began,
        )
        hold = Hold(
            job=job, job_class=record.job_class, node=node, gpus=gpus, price=1.0, since=began
        )
        self.holds[(job, node, began)] = hold
        self.store.kept_holds.append(hold)
        return self.put(
            replace(
                record,
                state="running",
                started_at=began,
                allocation=allocation,
                run=run,
                attempts=attempt,
                rescalings=1,
            )
        )

    def end(self, job: JobId, state: State, exit_code: int | None) -> JobRecord:
        self.holds = {key: hold for key, hold in self.holds.items() if hold.job != job}
        record = replace(
            self.active[job],
            state=state,
            exit_code=exit_code,
            ended_at=self.clock,
            run=None,
            allocation=None,
            reason=f"ended with exit code {exit_code}",
        )
        self.tell("ended", f"job {job} {state}", job=job)
        return self.put(record)


def locked() -> NotNow:
    return NotNow("nothing was changed: the database is locked. Try again")


@dataclass
class FakeService:
    """All of it, and the application over it."""

    folder: Path
    token: str | None = None
    control: FakeControl = field(default_factory=FakeControl)
    gpu_types: Mapping[str, GpuType] = field(default_factory=dict)
    """What simulations take the service to rent."""

    def __post_init__(self) -> None:
        self.engine = FakeEngine(self.folder)
        self.simulations = Simulations(self.folder / "what-if", self.gpu_types)
        self.app: FastAPI = create_app(
            self.control,
            self.control.store,
            self.engine,
            token=self.token,
            secret=SECRET,
            version="1.2.3",
            static=self.folder / "static",
            simulations=self.simulations,
        )

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """One request, without a network."""
        return asyncio.run(self._ask(method, path, options))

    async def _ask(self, method: str, path: str, options: dict[str, Any]) -> httpx.Response:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        base = "http://127.0.0.1:8420"
        async with httpx.AsyncClient(transport=transport, base_url=base) as client:
            return await client.request(method, path, **options)

    def get(self, path: str, **options: Any) -> Any:
        """The JSON of an answer that is none of an error."""
        answer = self.ask("GET", f"/api/v1/{path}", **options)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def submit(self, job_class: str = "resnet18", **fields: Any) -> str:
        """The id of a new job."""
        body = {"class": job_class, "run": "true", **fields}
        answer = self.ask("POST", "/api/v1/jobs", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["job"]["id"])

    @contextmanager
    def serving(self, port: int = 0) -> Iterator[str]:
        """Over a real socket, from a thread: gives the address."""
        listening, ready = listen("127.0.0.1", port), threading.Event()
        self.app.state.stopping.clear()
        server = server_for(self.app, ready.set)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            assert ready.wait(10)
            yield url_of(listening)
        finally:
            server.end()
            thread.join(10)
        assert not thread.is_alive()
