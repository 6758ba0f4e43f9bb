"""A service in memory: what the server talks to, told by a test what to do; and ways to ask it."""

import asyncio
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import httpx
from fastapi import FastAPI

from boa.api.classes import ClassDocument
from boa.errors import BoaError, InputError
from boa.model.access import NOBODY, Caller, TokenRecord
from boa.model.calendar import Calendar
from boa.model.cluster import Allocation, JobId, NodeId
from boa.model.events import EventKind
from boa.model.job import JobRecord, JobSpec, Run, State
from boa.model.notices import MonthSpent, Notice, NotifyTarget
from boa.model.placements import FailedPlacement
from boa.model.profile import ClassProfile
from boa.model.records import Event, Hold, NodeRecord, Report
from boa.model.sweep import Sweep
from boa.model.workload import Billing, GpuType
from boa.runtime.audit import entry
from boa.runtime.estimating import JobEstimate
from boa.runtime.snapshot import Snapshot
from boa.runtime.vault import Vault
from boa.scheduler.learn.node_times import NodeTimes
from boa.scheduler.money.money_state import MoneyState
from boa.scheduler.money.purse import AS_CONFIGURED
from boa.scheduler.notices import Notices
from boa.scheduler.plan.plan_in_force import PlanState
from boa.scheduler.refusals import NoSuchJob, NotNow
from boa.server.app import create_app
from boa.server.files import JobFiles
from boa.server.http.access import TrustedProxy
from boa.server.http.limits import Limits
from boa.server.http.run import listen, server_for, url_of
from boa.server.http.tls import Tls
from boa.server.notify.couriers import Sender
from boa.server.what_if.runner import Simulations
from boa.units import Seconds, UsdPerHour
from fake_access import FakeAccess, done, failed
from fake_terms import FakeTerms
from reading import FakeEngine, FakeStore

NOW = 1_790_000_000.0
"""21 September 2026, 14:13:20 UTC."""
SECRET = b"a secret of the tests"
_T = TypeVar("_T")


MONEY = MoneyState(
    at=NOW,
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
class FakeControl(FakeAccess, FakeTerms):
    store: FakeStore = field(default_factory=FakeStore)
    clock: float = NOW
    money: MoneyState = MONEY
    active: dict[JobId, JobRecord] = field(default_factory=dict)
    nodes: dict[NodeId, NodeRecord] = field(default_factory=dict)
    holds: dict[tuple[JobId, NodeId, Seconds], Hold] = field(default_factory=dict)
    plan: PlanState | None = None
    documents: dict[str, ClassDocument] = field(default_factory=dict)
    profiled: dict[str, ClassProfile] = field(default_factory=dict)
    counters: dict[str, float] = field(default_factory=dict)
    tokens: Mapping[str, TokenRecord] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)
    estimated: JobEstimate = field(default_factory=lambda: JobEstimate(job_class="", now=NOW))
    """What any job is estimated to be."""
    sweeps: dict[str, Sweep] = field(default_factory=dict)
    failed: list[FailedPlacement] = field(default_factory=list)
    """Placements that jobs failed at, of whatever class."""
    busy: BoaError | None = None
    """What every change is refused with."""
    stuck: bool = False
    """Whether changes are never answered."""
    notices: Notices = field(default_factory=lambda: Notices((), None))
    """Whom notices go to."""
    vault: Vault = field(default_factory=lambda: Vault(Path("/nonexistent"), {}))
    whole: threading.RLock = field(default_factory=threading.RLock)
    """Held while something changes: a snapshot shows all of it or nothing."""

    @property
    def snapshot(self) -> Snapshot:
        with self.whole:
            return Snapshot(
                now=self.clock,
                jobs=dict(self.active),
                nodes=dict(self.nodes),
                holds=dict(self.holds),
                charged=lambda money=self.money: money,  # type: ignore[misc]
                plan=self.plan,
                last_event=len(self.store.told),
                counters=dict(self.counters),
                tokens=self.tokens,
                sweeps=dict(self.sweeps),
            )

    def now(self) -> Seconds:
        return self.clock

    def submit(
        self, spec: JobSpec, *, owner: str = "", team: str = "", by: Caller | None = None
    ) -> "Future[JobRecord]":
        if self.busy is not None or self.stuck:
            return self._refuse()
        with self.whole:
            number = len(self.store.kept) + 1
            record = JobRecord(
                id=str(number),
                spec=spec,
                serial=0,
                owner=owner,
                team=team,
                submitted_at=self.clock,
            )
            self._write_down(by, "submit", record.id)
            self.put(record)
            self.tell("submitted", f"job {record.id} ({record.name})", job=record.id)
        return done(record)

    def submit_many(
        self,
        specs: Sequence[JobSpec],
        *,
        owner: str = "",
        team: str = "",
        by: Caller | None = None,
    ) -> "Future[list[JobRecord]]":
        if self.busy is not None or self.stuck:
            return self._refuse()
        return done([self.submit(spec, owner=owner, team=team, by=by).result() for spec in specs])

    def stop(self, job: JobId, *, by: Caller | None = None) -> "Future[JobRecord]":
        if self.busy is not None or self.stuck:
            return self._refuse()
        record = self.active.get(job) or self.store.kept.get(job)
        if record is None:
            return failed(NoSuchJob(job))
        self._write_down(by, "stop", job)
        return done(record if record.ended else self.end(job, "stopped", exit_code=0))

    def settle_notices(self, notices: Sequence[Notice]) -> "Future[None]":
        if self.busy is not None or self.stuck:
            return self._refuse()
        known = {notice.number: notice for notice in (*self.store.noticed, *notices)}
        self.store.noticed = [known[number] for number in sorted(known)]
        return done(None)

    def foretell_month(self, forecast: float) -> "Future[None]":
        return done(None)

    def tell_spent(self, spent: Sequence[MonthSpent]) -> "Future[None]":
        return done(None)

    def _write_down(self, by: Caller | None, what: str, subject: str = "") -> None:
        if by is not None:
            self.store.audited.append(entry(by, what, subject))

    def set_budget(
        self,
        budget: UsdPerHour | None,
        max_spend: UsdPerHour | None = None,
        *,
        by: Caller | None = None,
    ) -> "Future[MoneyState]":
        if self.busy is not None or self.stuck:
            return self._refuse()
        self._write_down(by, "budget")
        cap = self.money.max_spend if max_spend is None else max_spend
        cap = None if cap == math.inf else cap
        self.money = replace(self.money, max_spend=cap)
        if budget is not None:
            budget = 8.0 if budget == AS_CONFIGURED else budget
            self.money = replace(
                self.money, budget=budget, effective=budget, since=self.clock, spent=0.0
            )
        return done(self.money)

    def _refuse(self) -> "Future[Any]":
        return Future() if self.busy is None else failed(self.busy)

    def report(self, report: Report) -> None:
        self.reports.append(report)

    def retry_class(
        self,
        job_class: str,
        gpu: str | None = None,
        width: int | None = None,
        *,
        by: Caller | None = None,
    ) -> "Future[list[FailedPlacement]]":
        if self.busy is not None or self.stuck:
            return self._refuse()
        if gpu not in (None, "T4"):
            return failed(InputError("gpu_type", gpu, "a GPU type that can be rented here: T4"))
        found = [one for one in self.failed if width in (None, one.place.width)]
        self.failed = [one for one in self.failed if one not in found]
        return done(found)

    def class_document(self, job_class: str) -> ClassDocument | None:
        return self.documents.get(job_class)

    def estimate(self, spec: JobSpec, by: Caller = NOBODY) -> JobEstimate:
        return replace(self.estimated, job_class=spec.job_class)

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

    def tell(self, kind: EventKind, text: str, job: JobId | None = None, **data: Any) -> None:
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
        hold = Hold(job=job, stream=record.stream, node=node, gpus=gpus, price=1.0, since=began)
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
                rescalings=attempt - 1,
            )
        )

    def end(self, job: JobId, state: State, exit_code: int | None) -> JobRecord:
        with self.whole:
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
            self.tell(cast(EventKind, state), f"job {job} {state}", job=job)
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
    billing: Billing = "gpu"
    """What their budgets count."""
    node_times: NodeTimes = field(default_factory=NodeTimes)
    calendar: Calendar | None = None
    """What the service's own budget follows."""
    limits: Limits = field(default_factory=Limits)
    proxy: TrustedProxy | None = None
    endless_before: Seconds = 0.0
    targets: Sequence[NotifyTarget] = ()
    """Whom notices go to."""
    tls: Tls | None = None
    files: JobFiles | None = None

    def __post_init__(self) -> None:
        self.engine = FakeEngine(self.folder)
        self.simulations = Simulations(
            self.folder / "what-if",
            self.gpu_types,
            billing=self.billing,
            node_times=self.node_times,
            calendar=self.calendar,
        )
        self.control.notices = Notices(self.targets, None)
        self.app: FastAPI = create_app(
            self.control,
            self.control.store,
            self.engine,
            token=self.token,
            secret=SECRET,
            version="1.2.3",
            static=self.folder / "static",
            simulations=self.simulations,
            limits=self.limits,
            proxy=self.proxy,
            endless_before=self.endless_before,
            send=Sender(self.control.vault, "test") if self.targets else None,
            files=self.files,
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
        server = self.server = server_for(self.app, ready.set, self.tls)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            assert ready.wait(300)
            yield url_of(listening, self.tls)
        finally:
            server.end()
            thread.join(300)
        assert not thread.is_alive()
