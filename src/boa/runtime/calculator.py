"""Solving in the background: the loop asks, goes on, and looks later whether there is an answer."""

import multiprocessing
import os
import signal
import threading
import time
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from boa.scheduler.plan.calculator import Answer, Question, bug_words, solved

LIMIT_S = 300.0
"""How long a plan may take, in seconds of the wall."""


class BackgroundCalculator:
    """One process of its own, started when it is first needed, spoken to by one thread.

    A process that is killed is started again and asked again, once. One that takes longer than
    the limit is killed, and that is the answer. It ends with its parent, however that ends.
    """

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self._limit_s = limit_s
        self._changed = threading.Condition()
        self._question: Question | None = None
        self._answer: Answer | None = None
        self._working = self._closing = False
        self._thread: threading.Thread | None = None
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    @property
    def busy(self) -> bool:
        with self._changed:
            return self._working or self._question is not None or self._answer is not None

    @property
    def pid(self) -> int | None:
        """The id of the process, while there is one."""
        process = self._process
        return None if process is None else process.pid

    def request(self, question: Question) -> None:
        with self._changed:
            if self._closing:
                return
            self._question, self._answer = question, None
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._serve, name="boa-calculator", daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def poll(self) -> Answer | None:
        with self._changed:
            answer, self._answer = self._answer, None
            return answer

    def close(self) -> None:
        """Whatever is being solved is given up."""
        with self._changed:
            self._closing = True
            self._changed.notify()
            self._kill()
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        while (question := self._next()) is not None:
            answer = self._asked(question)
            with self._changed:
                self._working = False
                if self._question is None and not self._closing:  # or nobody asks any more
                    self._answer = answer
        self._let_go()

    def _next(self) -> Question | None:
        with self._changed:
            self._changed.wait_for(lambda: self._question is not None or self._closing)
            question, self._question = self._question, None
            self._working = question is not None and not self._closing
            return question if self._working else None

    def _asked(self, question: Question) -> Answer:
        """Whatever goes wrong on the way is an answer too: the thread lives on."""
        for _ in range(2):
            answer = self._tried(question)
            if answer is not None:
                return answer
            self._let_go()
        return _no_plan(question, "the process that plans was killed while it was at it")

    def _tried(self, question: Question) -> Answer | None:
        """None: the process was killed."""
        began = time.monotonic()
        limit = threading.Timer(self._limit_s, self._kill)  # whatever it is that takes so long
        limit.daemon = True
        try:
            limit.start()
            pipe = self._connected()
            if pipe is None:
                return _no_plan(question, "the service is shutting down")
            pipe.send(question)
            answer: Answer = pipe.recv()
            return answer
        except (EOFError, OSError):
            if time.monotonic() - began < self._limit_s:
                return None
            error = f"given up after {self._limit_s:g} s"
        except Exception as problem:
            error = bug_words(problem)
        finally:
            limit.cancel()
        self._let_go()  # half a question may be under way
        return _no_plan(question, error)

    def _connected(self) -> Connection | None:
        """None while closing: what was killed on purpose is not to come back."""
        with self._changed:
            if self._closing:
                return None
        if self._pipe is None:
            spawn = multiprocessing.get_context("spawn")
            self._pipe, theirs = spawn.Pipe()
            process = spawn.Process(target=_work, args=(theirs,), name="boa-solver", daemon=True)
            try:
                process.start()  # not under the lock: nobody else is to wait for it
            finally:
                theirs.close()
            with self._changed:
                self._process = process
                if self._closing:
                    return None
        return self._pipe

    def _kill(self) -> None:
        with self._changed:
            if self._process is not None:
                self._process.kill()

    def _let_go(self) -> None:
        with self._changed:
            process, self._process = self._process, None
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if process is not None:
            process.kill()
            process.join()
            process.close()


def _no_plan(question: Question, error: str) -> Answer:
    return Answer(number=question.number, solution=None, error=error)


def _work(pipe: Connection) -> None:
    """The process: answers until its parent hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the service, which closes us
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        while True:
            pipe.send(solved(pipe.recv()))
    except (EOFError, OSError):
        return


def _end_with_parent() -> None:
    """Also in the middle of solving, and though the parent was killed and could tell nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)
