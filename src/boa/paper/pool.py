"""Many runs: kept as one file each, so that what was interrupted goes on where it stopped."""

import multiprocessing
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from boa.atomic_file import replace_file
from boa.errors import BoaError, FileError
from boa.paper.data_hash import data_hash
from boa.paper.records import read_sealed, sealed
from boa.paper.runs import Document, Run, execute, fingerprint
from boa.worker_process import end_with_parent

Say = Callable[[str], None]
KILLED = (
    "a process that simulates was killed (out of memory, perhaps: fewer --jobs take less); "
    "the same command goes on from there"
)
RUNS = "runs"
"""Folder of finished runs, in that of the results."""


def write(path: Path, content: str | bytes) -> None:
    """As `replace_file`, in a folder that is made for it: nobody ever reads half a result."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            path.unlink()  # a pipe would take it, and keep us waiting for a reader
        replace_file(path, content)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise FileError(f"--output {path}", reason, "a file that can be written") from None


@dataclass(slots=True)
class ResultStore:
    """Results by run, in memory and in a folder. A run that failed is tried again next time, and so
    is one that read other data, or whose file is damaged."""

    folder: Path
    data: Path
    done: dict[Run, Document] = field(default_factory=dict)
    failed: dict[Run, str] = field(default_factory=dict)

    def get(self, run: Run) -> Document | None:
        if run not in self.done and run not in self.failed:
            self._load(run)
        return self.done.get(run)

    def missing(self, runs: Iterable[Run]) -> list[Run]:
        return [r for r in dict.fromkeys(runs) if self.get(r) is None and r not in self.failed]

    def keep(self, run: Run, found: dict[str, Any]) -> None:
        write(self._file(run), sealed(found))
        if "failed" in found:
            self.failed[run] = found["failed"]
        else:
            self.done[run] = found

    def stale(self) -> int:
        """Results in use that other code has made."""
        return sum(found.get("code") != fingerprint() for found in self.done.values())

    def check(self, runs: Iterable[Run]) -> None:
        """Refuse a folder in the place of a run's file, which could not be written later."""
        for file in map(self._file, runs):
            if file.is_dir():
                raise FileError(f"--output {self.folder}", f"{file}: is a folder", "files in there")

    def _load(self, run: Run) -> None:
        found = read_sealed(self._file(run))
        if found is None or found.get("run") != asdict(run) or "failed" in found:
            return
        if found.get("data") == data_hash(run, self.data):
            self.done[run] = found

    def _file(self, run: Run) -> Path:
        return self.folder / RUNS / f"{run.key}.json"


def run_all(store: ResultStore, runs: Sequence[Run], *, jobs: int, say: Say) -> None:
    """Simulate what is not there yet, the longest first."""
    missing = store.missing(runs)
    if not missing:
        return
    store.check(missing)
    costs = {run: run.cost(store.data) for run in missing}
    missing.sort(key=lambda run: -costs[run])
    count = _Count(say, costs, min(jobs, len(missing)))
    if jobs == 1 or len(missing) == 1:
        for run in missing:
            store.keep(run, attempt(run, store.data))
            count.ended(run, store)
        return
    _in_processes(store, missing, jobs, count)


def _in_processes(store: ResultStore, missing: Sequence[Run], jobs: int, count: "_Count") -> None:
    strangers = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        min(jobs, len(missing)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start,
    )
    try:
        futures: dict[Future[dict[str, Any]], Run] = {
            pool.submit(attempt, run, store.data): run for run in missing
        }
        for future in as_completed(futures):
            store.keep(futures[future], future.result())
            count.ended(futures[future], store)
    except BrokenProcessPool:
        raise BoaError(KILLED) from None
    except BaseException:
        for child in set(multiprocessing.active_children()) - strangers:
            child.terminate()  # or leaving would wait for what they are at
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _start() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # interrupted, it ends without a traceback
    threading.Thread(target=end_with_parent, daemon=True).start()


def attempt(run: Run, data: Path) -> dict[str, Any]:
    """The result, or why there is none: one run that cannot be does not stop the others."""
    try:
        found = execute(run, data)
    except Exception as problem:  # the one place where any error is a result
        return {"run": asdict(run), "failed": f"{type(problem).__name__}: {problem}"}
    if found["completed"] < found["jobs"]:
        ended = f"only {found['completed']:,} of {found['jobs']:,} jobs ever ended"
        return {"run": asdict(run), "failed": ended}
    return {**found, "data": data_hash(run, data)}


class _Count:
    """Lines on how far it has come, and about how long the rest will take."""

    def __init__(self, say: Say, costs: dict[Run, float], workers: int) -> None:
        self._say, self._costs, self._workers = say, costs, workers
        self._began = time.monotonic()
        self._done = 0
        self._spent = 0.0

    def ended(self, run: Run, store: ResultStore) -> None:
        self._done += 1
        self._spent += self._costs[run]
        elapsed = time.monotonic() - self._began
        left = (sum(self._costs.values()) - self._spent) * elapsed / self._spent
        what = f"FAILED ({store.failed[run]})" if run in store.failed else "done"
        rest = f", about {_span(left)} left" if self._done < len(self._costs) else ""
        self._say(f"[{self._done}/{len(self._costs)}] {run.label}: {what}{rest}")


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
