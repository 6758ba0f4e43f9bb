"""The loop: observe → view → policy → decision → placement → write down → act.

One thread owns the state. A step works on a draft; the draft becomes the state when the store has
it, and only then is anything done about it. What is to be done is read off the state (a run that
is requested, a node that is to go), so a service that was killed finds the same things to do when
it comes back, and engine and cloud take no harm from being told twice.
"""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from boa.api.classes import ClassDocument
from boa.clock import Clock
from boa.model.access import NOBODY, Caller, TokenRecord
from boa.model.job import JobSpec
from boa.model.profile import ClassProfile
from boa.model.records import Cell, ClassRecord, Report
from boa.model.service import ServiceConfig
from boa.model.sweep import Sweep
from boa.runtime.actor import Actor
from boa.runtime.estimating import Estimator, JobEstimate
from boa.runtime.inbox import AwaitedCommand, Message, Reply
from boa.runtime.requests import Requests
from boa.runtime.snapshot import Snapshot
from boa.runtime.submit_keys import SubmitKeys
from boa.runtime.vault import Vault
from boa.scheduler.check_reasons import Checker
from boa.scheduler.learn.profiler import Profiler
from boa.scheduler.money.contents import Contents
from boa.scheduler.notices import Notices
from boa.scheduler.observe.messages import CloudRefused, EngineSaid, Said
from boa.scheduler.plan.job_estimate import LAST, past_of
from boa.scheduler.refusals import NotNow
from boa.scheduler.scheduler import Scheduler
from boa.scheduler.state import Draft, State
from boa.store.base import Store, StoreTrouble
from boa.store.errors import Overtaken
from boa.units import Seconds

_T = TypeVar("_T")
LATE_S = 1.0
"""A step that takes longer than this, in seconds of the wall, is counted as late."""
LEAST_PAUSE_S = 0.02
"""Between two steps: what arrives meanwhile is decided together."""
MOST_PAUSE_S = 0.5
"""A pause is as long as the step before it, within these: the other half of the time is for
requests and reports, which run in the same process, and for storing what users ask for."""
FLOOD = 4.0
MOST_FLOOD_S = 3.0
"""Pauses in which users go on asking last so many times as long as the step, and so long at most:
a decision would keep all of them waiting, and the next one decides it all at once."""
GROUP_S = 0.005
"""Between two transactions in a pause: whoever asks meanwhile shares the next one."""
TROUBLE_PAUSE_S = 1.0
ANSWER_S = 10.0
CLOCK_JUMP_S = 5.0
"""How far the machine's clock may be moved before it is worth an event."""


class ControlLoop(Requests):
    """The promises of `snapshot.Control`, and `step`, which a test may call by itself."""

    def __init__(
        self,
        *,
        config: ServiceConfig,
        clock: Clock,
        store: Store,
        state: State,
        scheduler: Scheduler,
        profiler: Profiler,
        actor: Actor,
        vault: Vault,
        keys: SubmitKeys,
        sweeps: Mapping[str, Sweep],
        notices: Notices | None = None,
    ) -> None:
        self.keys, self.sweeps = keys, sweeps
        self.config, self.clock, self.store = config, clock, store
        self.scheduler, self.profiler, self.actor = scheduler, profiler, actor
        self.state, self.vault = state, vault
        self.notices = notices or Notices((), None)
        self._estimator = Estimator(scheduler=scheduler, profiler=profiler, config=config)
        self.inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.counters: dict[str, float] = {}
        self._incoming: deque[Report] = deque(maxlen=100_000)
        self._wake = threading.Event()
        self._closing = False
        newest = store.events(limit=1, newest=True)
        self._last_event = newest[-1].number if newest else 0
        self._tokens: Mapping[str, TokenRecord] = {one.name: one for one in store.tokens()}
        self._failing = False
        self._undecided = True
        """Something is stored that no decision has looked at: in the beginning, everything; limits
        may have changed since then."""
        self._unstored: list[Said] = []
        self._drained: tuple[list[Cell], list[ClassRecord]] = ([], [])
        self.on_overtaken: Callable[[], None] = lambda: None
        """Called when another service has taken the store over: this one has to end."""
        self.checker: Checker | None = None
        """Holds every reason against the state, where it is told to (`BOA_CHECK`)."""
        self._clock_moved: Seconds = 0.0
        self._thread: threading.Thread | None = None
        self._snapshot = self._look(clock.now())
        actor.attach(self.tell)

    # What others may ask, from any thread

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    def now(self) -> Seconds:
        return self.clock.now()

    def report(self, report: Report) -> None:
        self._incoming.append(report)
        self._wake.set()

    def class_document(self, job_class: str) -> ClassDocument | None:
        found: ClassDocument | None = self._learned(
            lambda draft: self.profiler.document(job_class, draft.now)
        )
        return found

    def classes(self) -> list[str]:
        found: list[str] = self._learned(lambda draft: self.profiler.classes())
        return found

    def profiles(self) -> Mapping[str, ClassProfile]:
        found: Mapping[str, ClassProfile] = self._learned(lambda draft: self.profiler.profiles())
        return found

    def estimate(self, spec: JobSpec, by: Caller = NOBODY) -> JobEstimate:
        jobs = self.store.jobs(ended=True, job_class=spec.job_class, limit=2 * LAST)
        past = past_of(jobs)
        found: JobEstimate = self._learned(
            lambda draft: self._estimator.estimated(spec, by, past, draft)
        )
        return found

    def _learned(self, look: Callable[[Draft], Any]) -> Any:
        """An answer from what was learned, which only the loop's own thread may look at: it changes
        all the time."""
        if self._thread is None:
            return look(Draft(self.state, self.clock.now()))
        return self._ask(look).result(ANSWER_S)

    def tell(self, message: Message) -> None:
        """From engine and cloud."""
        self.inbox.put(message)
        self._wake.set()

    def _ask(self, apply: Callable[[Draft], _T]) -> "Future[_T]":
        future: Future[_T] = Future()
        if self._closing:
            future.set_exception(NotNow("the service is shutting down; nothing was changed"))
        else:
            self.tell(AwaitedCommand(apply, future))
        return future

    # Running

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="boa-control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Finish the step, let go of engine and cloud. Jobs go on; nodes stay rented."""
        self._closing = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self.actor.close()
        self.scheduler.planner.close()

    def _run(self) -> None:
        tick = 0.5 if self.config.speed <= 1 else 0.05
        while not self._closing:
            self._wake.wait(tick)
            self._wake.clear()
            self._turn(self.step)
            self._rest(TROUBLE_PAUSE_S if self._failing else pause_after(self.counters["step_s"]))

    def _rest(self, pause_s: float) -> None:
        """Let others work; only whoever waits for an answer is not kept waiting."""
        began, woken = time.monotonic(), False
        until, latest = began + pause_s, began + longest_pause_after(pause_s)
        while not self._closing and (left := until - time.monotonic()) > 0:
            if self._failing or not self._wake.wait(left):
                time.sleep(max(until - time.monotonic(), 0.0))
                break
            self._wake.clear()
            woken = True
            if self._turn(self.accept):
                until = max(until, min(time.monotonic() + pause_s, latest))
            time.sleep(min(GROUP_S, max(until - time.monotonic(), 0.0)))
        if woken:
            self._wake.set()  # the next step follows at once

    def _turn(self, turn: Callable[[], bool | None]) -> bool:
        try:
            return bool(turn())
        except Exception as bug:  # after it was stored: it is so, but not all is done
            self._failing = True
            self.actor.log("error", f"acting failed: {type(bug).__name__}: {bug}")
            self.actor.say_all_again()
            return False

    def step(self) -> None:
        """One turn. Everything in it is stored in one transaction, or has not happened."""
        self._take_turn(*self._messages(), decides=True)

    def accept(self) -> bool:
        """One turn in which nothing is decided: all that users ask for is stored in one
        transaction, and they are answered. The next step sees what follows from it. Whether
        anybody asked."""
        self._unstored, asked = self._messages()
        if asked:
            self._take_turn([], asked, decides=False)
        return bool(asked)

    def _take_turn(
        self, said: list[Said], asked: Sequence[AwaitedCommand], *, decides: bool
    ) -> None:
        began = time.perf_counter()
        draft = Draft(self.state, self.clock.now())
        draft.replan = self._undecided
        purse = self.scheduler.purse.remembered()
        replies: list[Reply] = [message.refuse for message in asked]
        try:
            for message in said:
                self._take_in(draft, message)
            replies = [message.take(draft) for message in asked]
            if decides:
                self._watch_clock(draft)
                self.scheduler.decide(draft, self._incoming)
            else:
                self.scheduler.settle(draft)
            purse_now = self.scheduler.purse
            self.notices.write(draft, purse_now.budget, purse_now.max_spend if decides else None)
            refused = self._store(draft)
        except Exception as bug:
            refused = NotNow(f"nothing was changed: unexpected {type(bug).__name__}: {bug}")
            self.actor.log("error", f"step failed: {type(bug).__name__}: {bug}")
            draft.count(crashes=1)
        if refused is None:
            self._adopt(draft, decided=decides)
        else:
            self._undo(said, purse)
        self._failing = refused is not None
        self._count(draft, began if decides else None)
        self._snapshot = self._look(draft.now)
        for reply in replies:  # last: who is answered finds what he asked for in the snapshot
            reply(refused)

    def _adopt(self, draft: Draft, decided: bool) -> None:
        """It is stored: from here on it is so, and is acted upon."""
        if self.checker is not None:
            for problem in self.checker.violations(self.state, draft.state, draft.changes.events):
                self.actor.log("error", f"check: {problem}")
        self.state, self._drained = draft.state, ([], [])
        self._undecided = not decided and (draft.replan or bool(draft.arrived))
        if draft.changes.tokens:
            self._tokens = {**self._tokens, **draft.changes.tokens}
        self.keys.adopt(draft.changes.meta)
        if draft.changed_sweeps:
            self.sweeps = {**self.sweeps, **draft.changed_sweeps}
        self.scheduler.adopt(draft)
        self.notices.adopt(draft)
        if draft.arrived:
            self._wake.set()  # a class that nobody knew is planned for at once
        self.actor.act(draft)

    def _messages(self) -> tuple[list[Said], list[AwaitedCommand]]:
        """Messages since then, also of a step that was not stored, and commands."""
        said, self._unstored = self._unstored, []
        asked: list[AwaitedCommand] = []
        while True:
            try:
                message = self.inbox.get_nowait()
            except queue.Empty:
                return said, asked
            if isinstance(message, AwaitedCommand):
                asked.append(message)
            else:
                said.append(message)

    def _take_in(self, draft: Draft, message: Said) -> None:
        to_do = self.scheduler.observe(draft, message)
        for key in to_do.forget:
            self.actor.ended(key)
        self.actor.ask_again(to_do.ask_again)
        if isinstance(message, CloudRefused):
            self.actor.log("warning", f"node {message.node}: {message.reason}")

    def _undo(self, said: list[Said], purse: Contents) -> None:
        """The step was not stored, so it has not happened. Who asked is told; what was said is
        looked at again, unless it will be said again: ends of runs, and lists of nodes."""
        for message in said:
            if isinstance(message, EngineSaid):
                began = [event for event in message.events if not event.ended]
                self._unstored += [EngineSaid(began)] if began else []
            elif isinstance(message, CloudRefused):
                self._unstored.append(message)
        self.profiler.keep(*self._drained)
        self._drained = ([], [])
        self.scheduler.undo(purse)
        self.actor.undo()

    def _watch_clock(self, draft: Draft) -> None:
        """Our own time goes on evenly; who reads both should know."""
        moved = self.clock.jump()
        if abs(moved - self._clock_moved) > CLOCK_JUMP_S:
            by = moved - self._clock_moved
            self._clock_moved = moved
            draft.tell("clock", by_s=by)

    def _store(self, draft: Draft) -> NotNow | None:
        """None, or why nothing of this step has happened."""
        self._drained = self.profiler.drain()
        draft.changes.cells, draft.changes.classes = self._drained
        if not draft.changes:
            return None
        draft.put_meta("clock", [draft.now, time.time()])
        try:
            self._last_event = self.store.commit(draft.changes)
        except Overtaken as problem:
            self.actor.log("error", f"{problem}")
            self._closing = True
            self.on_overtaken()
            return NotNow(f"nothing was changed: {problem}")
        except StoreTrouble as problem:
            draft.counted.clear()
            draft.count(store_trouble=1)
            self.actor.log("error", f"store: {problem}")
            return NotNow(f"nothing was changed: {problem}. Try again")
        return None

    def _count(self, draft: Draft, began: float | None) -> None:
        """`began`: when the step did, by the wall; None: it was none."""
        for name, amount in draft.counted.items():
            self.counters[name] = self.counters.get(name, 0.0) + amount
        if began is None:
            return
        took = time.perf_counter() - began
        for name, amount in {"steps": 1.0, "late_steps": float(took > LATE_S)}.items():
            self.counters[name] = self.counters.get(name, 0.0) + amount
        self.counters["step_s"] = took
        self.counters["slowest_step_s"] = max(self.counters.get("slowest_step_s", 0.0), took)

    def _look(self, now: Seconds) -> Snapshot:
        return Snapshot(
            now=now,
            jobs=self.state.jobs,
            nodes=self.state.nodes,
            holds=self.state.holds,
            charged=self.scheduler.purse.state_of(self.state, now),
            plan=self.scheduler.planner.plan,
            last_event=self._last_event,
            weighed=self.scheduler.decider.newest,
            draining=self.scheduler.decider.unwanted,
            counters=dict(self.counters),
            gpu_types=self.scheduler.decider.gpu_types,
            tokens=self._tokens,
            sweeps=self.sweeps,
        )


def pause_after(step_s: float) -> float:
    return min(max(step_s, LEAST_PAUSE_S), MOST_PAUSE_S)


def longest_pause_after(pause_s: float) -> float:
    """The same while users go on asking."""
    return max(pause_s, min(FLOOD * pause_s, MOST_FLOOD_S))
