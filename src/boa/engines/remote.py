"""Engines whose runs are on a cluster, as far as they are alike: what the service asks of them."""

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Generic, Protocol, TypeVar

from boa.engines.base import NotOver
from boa.engines.gang import Ending
from boa.engines.last_words import last_words_of
from boa.engines.remote_folders import RemoteFolders
from boa.model.cluster import JobId
from boa.model.runs import Launch, LogFile, RunEvent, RunKey
from boa.units import Seconds


class RemoteRun(Protocol):
    """One run: what is heard of it → what happens next. Nothing of it waits."""

    key: RunKey
    ending: Ending | None
    up: bool
    up_told: bool
    hindrance: str
    """Something of it that cannot be ended, in words …"""
    hindrance_told: str
    """… and what of that was told."""
    saved_at: Seconds
    """When its newest checkpoint was written (real time), as far as its node has seen; 0: never."""
    saved_told: Seconds
    """The newest checkpoint that was reported."""
    in_cluster: bool
    """Whether there may be something of it there: GPUs that nobody else can have."""
    awaits: str
    """Something that it waits for before it can begin, in words …"""
    awaits_told: str
    """… and what of that was told."""
    timings: dict[str, Seconds]

    def begin(self, launch: Launch) -> None: ...

    def stop(self, grace_s: Seconds) -> None: ...

    def tick(self) -> None:
        """See to what was heard, and to what does not come."""
        ...

    def abandon(self) -> None:
        """Nothing of it may stay in the cluster."""
        ...


R = TypeVar("R", bound=RemoteRun)


class RemoteEngine(ABC, Generic[R]):
    """All that it knows is in its folder and in the cluster: another one goes on from there. A run
    that was not started yet is dropped: the service asks for it again."""

    def __init__(self, folders: RemoteFolders[Any]) -> None:
        self._folders = folders
        self._runs: dict[RunKey, R] = {}
        self._debris: list[R] = []
        """Runs that nobody asks for any more, and whose GPUs could not be freed yet."""
        self._unbegun: set[RunKey] = set()
        """Those of them that never began: their folders go when nothing else is left."""
        self._over: dict[RunKey, RunEvent] = {}
        """Runs asked for that had ended and been forgotten: they are told of as lost."""

    @abstractmethod
    def _new(self, key: RunKey) -> R:
        """A run of the present marker; one without a marker is not begun yet."""

    @abstractmethod
    def _listen(self) -> None:
        """Pass on to runs what the cluster says of them."""

    def start(self, launch: Launch) -> None:
        """Begin a run. If the cluster refuses, nothing was started: to be asked again."""
        key = launch.key
        if key in self._runs:
            return
        if key in self._unbegun:
            self._clear()
        if key in self._unbegun:
            raise NotOver("what an earlier start has left in the cluster cannot be removed yet")
        if self._folders.exists(key):  # ended and forgotten: an old database is back
            self._was_before(key)
            return
        run = self._new(key)
        try:
            run.begin(launch)
        except Exception:
            self._give_up(run)
            raise
        self._runs[key] = run

    def stop(self, key: RunKey, grace_s: Seconds, then: Launch | None = None) -> None:
        run = self._runs.get(key)
        if key in self._unbegun:
            reason = "stopped before it began"
            self._over[key] = RunEvent(
                key=key, ended=True, exit_code=0, stopped=True, reason=reason
            )
            return
        if run is None and self._folders.exists(key):
            self._was_before(key)
            return
        if run is None:  # decided on, and taken back before its start
            self._folders.begin(key)
            ending = Ending(exit_code=0, stopped=True, reason="stopped before it began")
            self._folders.end(key, ending, time.time())
            run = self._runs[key] = self._new(key)
            run.ending = ending
        run.stop(grace_s)

    def poll(self) -> Sequence[RunEvent]:
        troubles: list[Exception] = []
        try:
            self._listen()
        except Exception as problem:
            troubles.append(problem)
        events = list(self._over.values())
        troubles += self._clear()
        for run in self._runs.values():
            try:
                run.tick()
            except Exception as problem:  # nobody could be asked: nothing is known, so wait
                troubles.append(problem)
            events += self._news(run)
        if troubles and not events:
            raise troubles[0]
        return events

    def runs(self) -> Collection[RunKey]:
        return list(self._runs)

    def forget(self, key: RunKey) -> None:
        self._over.pop(key, None)
        run = self._runs.get(key)
        if run is not None and run.ending is not None:
            self._folders.unmark(key)
            del self._runs[key]
            self._debris.append(run)
            self._folders.tidy(key, self._runs)

    def logs(self, job: JobId) -> Sequence[LogFile]:
        return self._folders.logs(job)

    def close(self) -> None:
        self._runs.clear()

    def timings(self, key: RunKey) -> Mapping[str, Seconds]:
        """Seconds from `start` until the run had its GPUs (place), its parts answered (prepare),
        and its processes were up (start): as far as it is."""
        run = self._runs.get(key)
        return {} if run is None else dict(run.timings)

    def _news(self, run: R) -> Iterator[RunEvent]:
        if run.up and not run.up_told:
            run.up_told = True
            yield RunEvent(key=run.key, ended=False)
        if run.saved_at != run.saved_told:
            run.saved_told = run.saved_at
            age_s = max(time.time() - run.saved_at, 0.0)
            yield RunEvent(key=run.key, ended=False, saved=True, saved_age_s=age_s)
        if run.hindrance != run.hindrance_told and run.ending is None:
            run.hindrance_told = run.hindrance
            yield RunEvent(key=run.key, ended=False, hindrance=run.hindrance)
        if run.awaits != run.awaits_told and run.awaits and not run.up and run.ending is None:
            run.awaits_told = run.awaits
            yield RunEvent(key=run.key, ended=False, awaits=run.awaits)
        if run.ending is not None:
            age_s, ending = self._folders.age(run.key), run.ending
            folder, said = self._folders.folder(run.key), ""
            if not ending.stopped:
                said = last_words_of(folder, ending.exit_code, ending.reason)
            yield RunEvent(key=run.key, ended=True, age_s=age_s, said=said, **asdict(ending))

    def _clear(self) -> list[Exception]:
        """Ask again to have them freed; what went wrong is returned."""
        troubles: list[Exception] = []
        for run in self._debris:
            try:
                run.abandon()
            except Exception as problem:
                troubles.append(problem)
        for run in self._debris:
            if not run.in_cluster and run.key in self._unbegun:
                self._unbegun.remove(run.key)
                self._folders.drop(run.key)
        self._debris = [run for run in self._debris if run.in_cluster]
        return troubles

    def _give_up(self, run: R) -> None:
        """One that has not begun: as if it had never been asked for."""
        self._debris.append(run)
        self._unbegun.add(run.key)
        self._clear()

    def _was_before(self, key: RunKey) -> None:
        reason = "such a run was there before"
        self._over[key] = RunEvent(key=key, ended=True, reason=reason)
