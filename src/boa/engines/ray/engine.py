"""The engine as the service knows it."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from boa.engines.last_words import last_words_of
from boa.engines.ray.cluster import Cluster
from boa.engines.ray.folders import Folders, Marker
from boa.engines.ray.gang import Ending
from boa.engines.ray.run import RayRun
from boa.model.cluster import JobId
from boa.model.runs import Launch, LogFile, RunEvent, RunKey
from boa.units import Seconds


class RayEngine:
    """All that it knows is in `root` and in the cluster, under `namespace`: another one goes on
    from there. A run that was not started yet is dropped: the service asks for it again."""

    def __init__(
        self,
        root: Path,
        *,
        address: str,
        namespace: str,
        log_bytes: int,
        pass_env: Sequence[str] = (),
    ) -> None:
        self._folders, self._log_bytes = Folders(root), log_bytes
        self._pass_env = tuple(pass_env)
        self._cluster = Cluster(address, namespace)
        self._runs: dict[RunKey, RayRun] = {}
        self._debris: list[RayRun] = []
        """Runs that nobody asks for any more, and whose GPUs Ray could not be told to free yet."""
        self._over: dict[RunKey, RunEvent] = {}
        """Runs asked for that had ended and been forgotten: they are told of as lost."""
        for key in self._folders.known():
            self._find_again(key)
        going = [run.name for run in self._runs.values() if run.ending is None]
        self._cluster.sweep(going)

    def start(self, launch: Launch) -> None:
        """Begin a run. If Ray refuses, nothing was started: to be asked again."""
        key = launch.key
        if key in self._runs:
            return
        if self._folders.exists(key):  # ended and forgotten: an old database is back
            self._was_before(key)
            return
        run = self._new(key, Marker())
        try:
            run.begin(launch)
        except Exception:
            self._folders.drop(key)
            self._debris.append(run)
            raise
        self._runs[key] = run

    def stop(self, key: RunKey, grace_s: Seconds) -> None:
        run = self._runs.get(key)
        if run is None and self._folders.exists(key):
            self._was_before(key)
            return
        if run is None:  # decided on, and taken back before its start
            self._folders.begin(key, Marker())
            ending = Ending(exit_code=0, stopped=True, reason="stopped before it began")
            self._folders.end(key, ending, time.time())
            run = self._runs[key] = self._new(key, Marker())
            run.ending = ending
        run.stop(grace_s)

    def poll(self) -> Sequence[RunEvent]:
        refs = {ref: (run, n) for run in self._runs.values() for ref, n in run.refs().items()}
        for ref, answer in self._cluster.answers(refs):
            run, number = refs[ref]
            if run.ending is None:
                run.heard(number, answer)
        events, troubles = list(self._over.values()), self._clear()
        for run in self._runs.values():
            try:
                run.tick()
            except Exception as problem:  # Ray could not be asked: nothing is known, so wait
                troubles.append(problem)
            if run.up and not run.up_told:
                run.up_told = True
                events.append(RunEvent(key=run.key, ended=False))
            if run.ending is not None:
                age_s, ending = self._folders.age(run.key), run.ending
                folder, said = f"{self._folders.folder(run.key)}", ""
                if not ending.stopped:
                    said = last_words_of(folder, ending.exit_code, ending.reason)
                events.append(
                    RunEvent(key=run.key, ended=True, age_s=age_s, said=said, **asdict(ending))
                )
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
        """Seconds from `start` until the run had its GPUs (place), its actors answered (prepare),
        and its processes were up (start): as far as it is."""
        run = self._runs.get(key)
        return {} if run is None else dict(run.timings)

    def _clear(self) -> list[Exception]:
        """Ray is asked again to free them; what went wrong is returned."""
        troubles: list[Exception] = []
        for run in self._debris:
            try:
                run.abandon()
            except Exception as problem:
                troubles.append(problem)
        self._debris = [run for run in self._debris if run.in_cluster]
        return troubles

    def _new(self, key: RunKey, marker: Marker) -> RayRun:
        return RayRun(key, self._cluster, self._folders, self._log_bytes, marker, self._pass_env)

    def _find_again(self, key: RunKey) -> None:
        run = self._new(key, self._folders.marker(key))
        if run.ending is None and not self._folders.marker(key).launched:
            run.withdraw_token()
            self._folders.drop(key)  # the sweep kills what there is of it
            return
        self._runs[key] = run
        if run.ending is None:
            run.adopt()

    def _was_before(self, key: RunKey) -> None:
        reason = "such a run was there before"
        self._over[key] = RunEvent(key=key, ended=True, reason=reason)
