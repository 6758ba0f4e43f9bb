"""Acting on what is stored: starts and stops for the engine, rents and releases for the cloud.

Everything here is read off the state, and every call may be repeated, so a service that comes back
after a crash simply says it all again.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from boa.clock import Clock
from boa.clouds.base import Cloud, CloudTrouble, NoCapacity
from boa.engines.base import Engine, NotOver
from boa.model.cluster import JobId, NodeId
from boa.model.job import JobRecord, Run
from boa.model.layouts import OF_CLASS, Trial, told
from boa.model.records import NodeRecord
from boa.model.runs import Launch, NodeSlots, RunEvent, RunKey
from boa.runtime.draining import Draining
from boa.runtime.inbox import Message
from boa.runtime.packages import artifacts_of, package_of
from boa.runtime.report_tokens import report_token
from boa.runtime.vault import NotReady, Vault
from boa.runtime.worker_threads import Hands, InlineHands, Task, ThreadHands
from boa.scheduler.moving import next_slots
from boa.scheduler.observe.messages import CloudListed, CloudRefused, EdgeTrouble, EngineSaid
from boa.scheduler.observe.reconcile import Release, Rent
from boa.scheduler.state import Draft, State
from boa.scheduler.wishes import RentNode, StartRun, StopRun, Wish, wishes
from boa.units import GpuName, Seconds

EVERY = "BOA_REPORT_EVERY_S"
RECONCILE_S: Seconds = 5.0
"""Seconds of the wall between two comparisons of the engine's runs with what is stored."""
UNKNOWN = "the engine knows nothing of it: what was written of the run is gone"
Log = Callable[[str, str], None]
"""(level, text)"""
OVERDUE_S: Seconds = 60.0
"""Seconds of the wall that a cloud may take to do what it was asked."""
REPORTS_PER_S = 200.0
"""Reports a second that all jobs together may send: where there are more jobs than that, each is
told to report less often than the once a second that it would by itself."""
RETRY_S: Seconds = 5.0
"""Seconds of the wall after an engine or a cloud failed, until it is asked again."""


class Actor:
    def __init__(
        self,
        engine: Engine,
        cloud: Cloud,
        clock: Clock,
        *,
        data_dir: Path,
        url: str,
        secret: bytes,
        vault: Vault,
        speed: float,
        log: Log,
        layouts: Callable[[str, GpuName], list[Trial]],
        report_ca: str = "",
        inline: bool = False,
    ) -> None:
        self._engine, self._cloud, self._clock = engine, cloud, clock
        self._data_dir, self._url, self._secret, self._speed = data_dir, url, secret, speed
        self._vault, self._layouts = vault, layouts
        self._report_ca = {"BOA_REPORT_CA": report_ca} if report_ca else {}
        self.log = log
        self._inline = inline
        self._tell: Callable[[Message], None] = lambda message: None
        self._told: set[tuple[str, RunKey]] = set()
        self._asked: dict[tuple[str, str], Seconds] = {}
        """(rent or release, token) -> when, by the wall."""
        self._forget: list[RunKey] = []
        self._draining = Draining(lambda job: Path(self._checkpoints(job)))
        self._waited: set[str] = set()
        """Tokens of nodes that are given back when they are drained: to be looked at again."""
        self._later: deque[tuple[Seconds, Task]] = deque()
        self._state = State()
        self._first = True
        self._reconcile_at = math.inf
        """By the wall; not before there is a state to compare with."""

    def attach(self, tell: Callable[[Message], None]) -> None:
        """Begin to watch: what engine and cloud say goes to `tell`."""
        self._tell = tell
        if self._inline:
            self._for_engine: Hands = InlineHands(self.watch_engine)
            self._for_cloud: Hands = InlineHands(self.watch_cloud)
            return
        often = 0.1 if self._speed <= 1 else 0.03
        self._for_engine = ThreadHands("boa-engine", self.watch_engine, often, self._engine_trouble)
        seldom = 2.0 if self._speed <= 1 else 0.1
        self._for_cloud = ThreadHands("boa-cloud", self.watch_cloud, seldom, self._cloud_trouble)

    def close(self) -> None:
        self._for_engine.close()
        self._for_cloud.close()
        self._engine.close()

    def watch_engine(self) -> None:
        events = self._engine.poll()
        if events:
            self._tell(EngineSaid([self._masked(event) for event in events]))
        if time.monotonic() >= self._reconcile_at:
            self._reconcile()

    def _masked(self, event: RunEvent) -> RunEvent:
        """Without the values of its job's secrets, which a job may have named a process by."""
        job = self._state.jobs.get(event.key.job)
        if job is None or not job.spec.secrets:
            return event
        return replace(
            event,
            reason=self._vault.masked(event.reason, job.spec),
            hindrance=self._vault.masked(event.hindrance, job.spec),
            awaits=self._vault.masked(event.awaits, job.spec),
            said=self._vault.masked(event.said, job.spec),
        )

    def watch_cloud(self) -> None:
        try:
            at = self._clock.now()
            self._tell(CloudListed(self._cloud.nodes(), at, self._cloud.offers()))
        except CloudTrouble as problem:
            self._cloud_trouble(str(problem))

    def ended(self, key: RunKey) -> None:
        """To be forgotten by the engine once it is stored."""
        self._forget.append(key)

    def ask_again(self, overdue: Iterable[Rent | Release]) -> None:
        """Ask the cloud again for everything that it was asked for long ago and has not done."""
        for wish in overdue:
            kind = "rent" if isinstance(wish, Rent) else "release"
            asked = self._asked.get((kind, wish.node.token))
            if asked is not None and time.monotonic() - asked > OVERDUE_S:
                del self._asked[kind, wish.node.token]
                for again in wishes((), [wish.node]):
                    self._carry_out(again)

    def say_all_again(self) -> None:
        """Something went wrong on the way: whatever the state asks for is asked for anew."""
        self._first = True
        self._told.clear()
        self._asked.clear()

    def undo(self) -> None:
        """The step was not stored: what was learned in it will be told again."""
        self._forget.clear()

    def act(self, draft: Draft) -> None:
        """After the draft is stored: everything at first, then whatever has changed."""
        self._state = draft.state
        if self._first:
            self._for_engine.do(self._reconcile)
        jobs = draft.jobs.values() if self._first else draft.changes.jobs.values()
        nodes = draft.nodes.values() if self._first else draft.changes.nodes.values()
        self._first = False
        self._draining.seen(jobs)
        for wish in wishes(list(jobs), list(nodes)):
            self._carry_out(wish)
        for node in nodes:
            if node.state == "gone":
                self._draining.gone(node.id)
                for kind in ("rent", "release"):
                    self._asked.pop((kind, node.token), None)
        for _ in range(len(self._later)):
            due, task = self._later.popleft()
            if due <= time.monotonic():
                task()
            else:
                self._later.append((due, task))
        for key in self._forget:
            self._told -= {("start", key), ("stop", key), ("then", key)}
            self._for_engine.do(lambda key=key: self._engine.forget(key))  # type: ignore[misc]
        self._forget.clear()

    def _reconcile(self) -> None:
        """Both ways. Runs that the engine has and the store has not: nobody may be charged for
        them. Runs that the store takes for running and the engine does not know: they would stay
        so for ever, their nodes rented.

        Those that are to start or to stop the engine was told of, and knows by that.
        """
        self._reconcile_at = time.monotonic() + RECONCILE_S
        stored = {RunKey(j.id, j.run.attempt): j.run for j in self._state.jobs.values() if j.run}
        known = set(self._engine.runs())
        for key in known - stored.keys():
            self._stop(key, 0.0)
        lost = [
            RunEvent(key=key, ended=True, run_lost=True, reason=UNKNOWN)
            for key, run in stored.items()
            if run.state == "running" and key not in known
        ]
        if lost:
            self._tell(EngineSaid(lost))

    def _carry_out(self, wish: Wish) -> None:
        """Once; what engine and cloud were told already they are not told again."""
        if isinstance(wish, StartRun):
            if ("start", wish.key) not in self._told:
                self._told.add(("start", wish.key))
                launch = self._launch(wish.job, wish.run, wish.key)
                self._for_engine.do(lambda: self._start(launch))
        elif isinstance(wish, StopRun):
            if ("stop", wish.key) not in self._told:
                self._told.add(("stop", wish.key))
                then = self._then(wish.job)
                if then is not None:
                    self._told.add(("then", wish.key))
                self._for_engine.do(lambda: self._stop(wish.key, wish.job.spec.grace_s, then))
            elif wish.job.stop_requested and ("then", wish.key) in self._told:
                self._told.discard(("then", wish.key))  # no run follows after all
                self._for_engine.do(lambda: self._stop(wish.key, wish.job.spec.grace_s))
        elif isinstance(wish, RentNode):
            if ("rent", wish.node.token) not in self._asked:
                self._asked["rent", wish.node.token] = time.monotonic()
                self._for_cloud.do(lambda: self._rent(wish.node))
        elif ("release", wish.node.token) not in self._asked:
            self._asked["release", wish.node.token] = time.monotonic()
            if wish.node.token not in self._waited:
                self._for_cloud.do(lambda: self._give_back(wish.node))

    def _start(self, launch: Launch) -> None:
        job = self._state.jobs.get(launch.key.job)
        if job is None or job.run is None or job.run.attempt != launch.key.attempt:
            return  # asked again too late
        try:
            self._engine.start(replace(launch, secrets=self._vault.values(launch.spec)))
        except NotReady as missing:
            said = RunEvent(key=launch.key, ended=True, unready=True, reason=str(missing))
            self._tell(EngineSaid([said]))
            self._again(lambda: self._for_engine.do(lambda: self._start(launch)))  # if it was lost
        except NotOver as hindrance:
            said = RunEvent(key=launch.key, ended=False, hindrance=str(hindrance))
            self._tell(EngineSaid([said]))
            self._again(lambda: self._for_engine.do(lambda: self._start(launch)))
        except Exception as problem:  # a full disk, say: no folder to put the run into
            self._run_trouble(launch.key.job, "started", problem)
            self._again(lambda: self._for_engine.do(lambda: self._start(launch)))

    def _stop(self, key: RunKey, grace_s: Seconds, then: Launch | None = None) -> None:
        try:
            self._engine.stop(key, grace_s, then)
        except Exception as problem:
            self._run_trouble(key.job, "stopped", problem)
            self._again(lambda: self._for_engine.do(lambda: self._stop(key, grace_s, then)))

    def _then(self, job: JobRecord) -> Launch | None:
        """The run that follows one that is stopped, as it looks now, if any does."""
        slots = next_slots(self._state, job)
        if slots is None or job.allocation is None:
            return None
        run = Run(
            attempt=job.attempts + 1,
            allocation=job.allocation,
            slots=slots,
            requested_at=self._clock.now(),
            decided_at=self._clock.now(),
        )
        return self._launch(job, run, RunKey(job.id, run.attempt))

    def _again(self, task: Task) -> None:
        self._later.append((time.monotonic() + RETRY_S, task))

    def _launch(self, job: JobRecord, run: Run, key: RunKey) -> Launch:
        decided = time.time() - (run.requested_at - run.decided_at) / self._speed
        return Launch(
            key=key,
            spec=job.spec,
            gpu_type=run.allocation.gpu,
            slots=tuple(
                NodeSlots(node, slots, self._address(node))
                for node, slots in sorted(run.slots.items())
            ),
            checkpoint_dir=self._checkpoints(job),
            artifacts=artifacts_of(self._data_dir, job),
            package=package_of(self._data_dir, job),
            env={
                "BOA_REPORT_URL": f"{self._url}/api/v1/jobs/{job.id}/report",
                "BOA_REPORT_TOKEN": report_token(self._secret, job.id, run.attempt),
                **self._report_ca,
                "BOA_SPEED": f"{self._speed:g}",
                "BOA_NODES": str(len(run.slots)),
                "BOA_DECIDED_AT": f"{decided:.6f}",
                **self._reporting(job),
                **self._tried(job, run),
            },
            team=job.team,
        )

    def _tried(self, job: JobRecord, run: Run) -> dict[str, str]:
        """Layouts that jobs of its class have tried, for one that chooses its own."""
        trials = told(self._layouts(job.job_class, run.allocation.gpu))
        return {OF_CLASS: trials} if trials else {}

    def _checkpoints(self, job: JobRecord) -> str:
        return job.spec.checkpoint_dir or str(self._data_dir / "checkpoints" / job.id)

    def _reporting(self, job: JobRecord) -> dict[str, str]:
        every_s = len(self._state.jobs) / REPORTS_PER_S
        if every_s <= 1 or EVERY in job.spec.env:
            return {}
        return {EVERY: f"{every_s:.3g}"}

    def _address(self, node: NodeId) -> str:
        known = self._state.nodes.get(node)
        return "" if known is None else known.address

    def _rent(self, node: NodeRecord) -> None:
        now = self._state.nodes.get(node.id)
        if now is None or now.state != "requested":
            return  # asked again too late
        try:
            self._cloud.rent(node.token, node.gpu)
        except NoCapacity as no:
            self._tell(CloudRefused(node.id, str(no)))
        except CloudTrouble as problem:
            self._cloud_trouble(str(problem))
            self._again(lambda: self._for_cloud.do(lambda: self._rent(node)))

    def _give_back(self, node: NodeRecord) -> None:
        again = partial(self._for_cloud.do, lambda: self._give_back(node))
        self._waited.discard(node.token)
        if self._draining.waits(node, self._state.jobs, time.monotonic()):
            self._waited.add(node.token)
            self._again(again)
            return
        try:
            self._cloud.release(node.token)
        except CloudTrouble as problem:
            self._cloud_trouble(str(problem))
            self._again(again)

    def _engine_trouble(self, text: str) -> None:
        self._tell(EdgeTrouble("engine", text))

    def _run_trouble(self, job: JobId, done: str, problem: Exception) -> None:
        self._tell(EdgeTrouble("engine", f"job {job} cannot be {done} yet: {problem}", job))

    def _cloud_trouble(self, text: str) -> None:
        self._tell(EdgeTrouble("cloud", text))
