"""A process of its own that is asked questions, and cannot harm who asks: standard library alone.

It ends with its parent, however that ends; it can be killed from any thread, limited in time,
begun anew and asked again.

`multiprocessing` would start it, and a resource tracker next to it, with the whole environment of
the parent. Every process of the same user can read that environment in /proc for as long as they
run. So the process is started here, with the few variables that it needs.
"""

import atexit
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import Any, Generic, TypeAlias, TypeVar

from boa.own_process import close_to_others
from boa.units import Seconds

NEEDED = (
    *("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP", "VIRTUAL_ENV"),
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "BOA_PURE_PYTHON"),
)
"""Variables that a worker process is started with."""
NEEDED_BEGINNINGS = ("LC_", "OMP_", "OPENBLAS_", "MKL_", "BLIS_", "COVERAGE_")
"""Beginnings of the names of further ones. Also needed: PYTHON and a single word, such as
PYTHONPATH (PYTHON_KEYRING_TOKEN is not)."""
BEGIN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[3]); "
    "from boa.worker_process import serve; serve(int(sys.argv[2]))"
)

_Question = TypeVar("_Question")
_Answer = TypeVar("_Answer")
Tell: TypeAlias = Callable[[Any], None]
"""Says how far it is, on the way to the answer."""
_NEWS, _ANSWER = "news", "answer"


class WorkerKilled(Exception):
    """The process was killed while it was at it."""


class WorkerTooSlow(Exception):
    """It took longer than it was given, and was killed for that."""


class WorkerClosed(Exception):
    """Nothing is asked any more."""


class WorkerProcess(Generic[_Question, _Answer]):
    """Begun when it is first asked; asked by one thread, killed or closed by any.

    `work` runs in the process, for every question. It is a function of a module, as are question
    and answer things that can be sent.
    """

    def __init__(
        self,
        work: Callable[[_Question, Tell], _Answer],
        name: str,
        *,
        niceness: int = 0,
    ) -> None:
        self._work, self._name, self._niceness = work, name, niceness
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._doomed = self._closed = False
        """Doomed: killed before it was up."""

    @property
    def pid(self) -> int | None:
        """The id of the process, while there is one."""
        process = self._process
        return None if process is None else process.pid

    def ask(
        self,
        question: _Question,
        *,
        limit_s: Seconds | None = None,
        tries: int = 1,
        heard: Tell | None = None,
    ) -> _Answer:
        """Its answer; `heard` is told how far it is. Killed, it is begun and asked again.

        `limit_s`: of the wall, for each of the tries, beginning the process included. Raises
        WorkerKilled, WorkerTooSlow or WorkerClosed, or what beginning or sending raises.
        """
        for left in reversed(range(tries)):
            began = time.monotonic()
            try:
                return self._asked(question, limit_s, heard)
            except WorkerKilled:
                self.let_go()
                if limit_s is not None and time.monotonic() - began >= limit_s:
                    raise WorkerTooSlow from None
                if not left:
                    raise
            except Exception:
                self.let_go()  # half a question may be under way
                raise
        raise ValueError("tries: expected at least one")

    def kill(self) -> None:
        """End the process and give up what it was asked, also if it is only coming up."""
        with self._lock:
            self._doomed = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """Killed, and not to come back. Who asks is the one to let go."""
        self._closed = True
        self.kill()

    def let_go(self) -> None:
        """Killed and buried, by who asks; asked again, there is another."""
        with self._lock:
            process, self._process, self._doomed = self._process, None, False
        if process is not None:
            process.kill()
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
        if self._pipe is not None:
            self._pipe.close()  # only now: it might have been writing
            self._pipe = None
        atexit.unregister(self._leave)

    def _leave(self) -> None:
        self.close()
        process = self._process
        if process is not None:
            process.wait()

    def _asked(self, question: _Question, limit_s: Seconds | None, heard: Tell | None) -> _Answer:
        limit = None if limit_s is None else threading.Timer(limit_s, self.kill)
        if limit is not None:
            limit.daemon = True
            limit.start()  # whatever it is that takes so long
        try:
            return self._heard_out(self._connected(), question, heard)
        finally:
            if limit is not None:
                limit.cancel()

    def _heard_out(self, pipe: Connection, question: _Question, heard: Tell | None) -> _Answer:
        try:
            pipe.send(question)
            while True:
                kind, value = pipe.recv()
                if kind == _ANSWER:
                    answer: _Answer = value
                    return answer
                if heard is not None:
                    heard(value)
        except (EOFError, OSError):
            raise WorkerKilled from None

    def _connected(self) -> Connection:
        if self._closed:
            raise WorkerClosed
        if self._pipe is None:
            self._pipe, theirs = Pipe()
            with theirs:
                process = _started(self._name, theirs.fileno())  # not under the lock: it may last
            atexit.register(self._leave)
            with self._lock:
                self._process = process
                if self._doomed:
                    process.kill()
            with suppress(OSError):  # it was killed before it was up: so the question hears
                self._pipe.send((self._work, self._niceness))
        return self._pipe


def needed(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a worker process needs: no secret is among them."""
    return {
        name: value
        for name, value in environment.items()
        if name in NEEDED
        or name.startswith(NEEDED_BEGINNINGS)
        or (name.startswith("PYTHON") and "_" not in name)
    }


def _started(name: str, pipe: int) -> "subprocess.Popen[bytes]":
    """Start a process that is asked through this descriptor. It ends when its standard input does,
    which is open for as long as its parent lives."""
    words = [sys.executable, "-c", BEGIN, name, str(pipe), json.dumps(sys.path)]
    return subprocess.Popen(
        words, env=needed(os.environ), stdin=subprocess.PIPE, pass_fds=(pipe,), bufsize=0
    )


def serve(descriptor: int) -> None:
    """Answer questions until the parent hangs up: the main function of the process."""
    for signalled in (signal.SIGINT, signal.SIGTERM):  # meant for the parent, which kills us
        signal.signal(signalled, signal.SIG_IGN)
    close_to_others(lambda name: True)  # the parent unpickles what this process answers
    threading.Thread(target=_end_with_input, daemon=True).start()
    with suppress(EOFError, OSError), Connection(descriptor) as pipe:
        work, niceness = pipe.recv()
        os.nice(niceness)
        while True:
            answer = work(pipe.recv(), lambda news: pipe.send((_NEWS, news)))
            pipe.send((_ANSWER, answer))


def _end_with_input() -> None:
    """For a thread: a parent that is killed says nothing, and its child would go on for good."""
    with suppress(OSError):
        while os.read(0, 1):
            pass
    os._exit(1)


def end_with_parent() -> None:
    """For a thread of a process of `multiprocessing`, which it ends when its parent is gone."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
