"""Solving in the background: the loop asks, goes on, and looks later whether there is an answer."""

import threading

from boa.scheduler.plan.calculator import PlanAnswer, PlanQuestion, bug_words, solved
from boa.worker_process import Tell, WorkerClosed, WorkerKilled, WorkerProcess, WorkerTooSlow

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
        self._question: PlanQuestion | None = None
        self._answer: PlanAnswer | None = None
        self._working = self._closing = False
        self._thread: threading.Thread | None = None
        self._worker: WorkerProcess[PlanQuestion, PlanAnswer] = WorkerProcess(_solve, "boa-solver")

    @property
    def busy(self) -> bool:
        with self._changed:
            return self._working or self._question is not None or self._answer is not None

    @property
    def pid(self) -> int | None:
        """The id of the process, while there is one."""
        return self._worker.pid

    def request(self, question: PlanQuestion) -> None:
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

    def poll(self) -> PlanAnswer | None:
        with self._changed:
            answer, self._answer = self._answer, None
            return answer

    def close(self) -> None:
        """Whatever is being solved is given up."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._worker.close()
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        while (question := self._next()) is not None:
            answer = self._asked(question)
            with self._changed:
                self._working = False
                if self._question is None and not self._closing:  # or nobody asks any more
                    self._answer = answer
        self._worker.let_go()

    def _next(self) -> PlanQuestion | None:
        with self._changed:
            self._changed.wait_for(lambda: self._question is not None or self._closing)
            question, self._question = self._question, None
            self._working = question is not None and not self._closing
            return question if self._working else None

    def _asked(self, question: PlanQuestion) -> PlanAnswer:
        """Whatever goes wrong on the way is an answer too: the thread lives on."""
        try:
            return self._worker.ask(question, limit_s=self._limit_s, tries=2)
        except WorkerKilled:
            error = "the process that plans was killed while it was at it"
        except WorkerTooSlow:
            error = f"given up after {self._limit_s:g} s"
        except WorkerClosed:
            error = "the service is shutting down"
        except Exception as problem:
            error = bug_words(problem)
        return PlanAnswer(number=question.number, solution=None, error=error)


def _solve(question: PlanQuestion, tell: Tell) -> PlanAnswer:
    return solved(question)
