"""A process of its own that is asked questions, and cannot harm who asks: standard library alone.

It ends with its parent, however that ends; it can be killed from any thread, limited in time,
begun anew and asked again.
"""

import atexit
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeAlias, TypeVar

from boa.units import Seconds

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
    and answer things that can be sent. `helpers`: it may begin processes, which see to it that
    they end with it (`end_with_parent`).
    """

    def __init__(
        self,
        work: Callable[[_Question, Tell], _Answer],
        name: str,
        *,
        niceness: int = 0,
        helpers: bool = False,
    ) -> None:
        self._work, self._name, self._niceness, self._helpers = work, name, niceness, helpers
        self._lock = threading.Lock()
        self._process: BaseProcess | None = None
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
            process.join()
            process.close()
        if self._pipe is not None:
            self._pipe.close()  # only now: it might have been writing
            self._pipe = None
        atexit.unregister(self.kill)

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
            spawn = multiprocessing.get_context("spawn")
            self._pipe, theirs = spawn.Pipe()
            arguments = (theirs, self._work, self._niceness)
            daemon = not self._helpers  # a daemon may not have children; the rest is our own doing
            process = spawn.Process(target=_serve, args=arguments, name=self._name, daemon=daemon)
            try:
                process.start()  # not under the lock: nobody else is to wait for it
            finally:
                theirs.close()
            atexit.register(self.kill)  # or leaving would wait for it: it does not hear SIGTERM
            with self._lock:
                self._process = process
                if self._doomed:
                    process.kill()
        return self._pipe


def _serve(pipe: Connection, work: Callable[[Any, Tell], Any], niceness: int) -> None:
    """The process: answers until its parent hangs up."""
    for signalled in (signal.SIGINT, signal.SIGTERM):  # meant for the parent, which kills us
        signal.signal(signalled, signal.SIG_IGN)
    os.nice(niceness)
    threading.Thread(target=end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):
        while True:
            answer = work(pipe.recv(), lambda news: pipe.send((_NEWS, news)))
            pipe.send((_ANSWER, answer))


def end_with_parent() -> None:
    """For a thread: a parent that is killed says nothing, and its child would go on for good."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
