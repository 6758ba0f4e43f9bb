"""Who carries out what was decided: engine and cloud, each on a thread of its own.

Calls to them may block; the loop never does. What they say goes into the loop's inbox.
"""

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Protocol

from boa.units import Seconds

Task = Callable[[], None]
PATIENCE_S: Seconds = 10.0


class Hands(Protocol):
    def do(self, task: Task) -> None:
        """Carry it out soon, in the order given."""
        ...

    def close(self) -> None: ...


class ThreadHands:
    """Carries out tasks, and looks (`watch`) after each burst of them and every so often."""

    def __init__(self, name: str, watch: Task, every_s: Seconds, trouble: Callable[[str], None]):
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._watch, self._every, self._trouble = watch, every_s, trouble
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def do(self, task: Task) -> None:
        self._tasks.put(task)

    def close(self) -> None:
        """A call that hangs is left hanging: it may be repeated by the next service."""
        self._tasks.put(None)
        self._thread.join(PATIENCE_S)

    def _work(self) -> None:
        while True:
            with contextlib.suppress(queue.Empty):
                task = self._tasks.get(timeout=self._every)
                if task is None:
                    return
                self._try(task)
                if not self._tasks.empty():
                    continue
            self._try(self._watch)

    def _try(self, task: Task) -> None:
        try:
            task()
        except Exception as problem:
            self._trouble(f"{type(problem).__name__}: {problem}")


class InlineHands:
    """Carries out a task before `do` returns: for tests that step a virtual clock."""

    def __init__(self, watch: Task) -> None:
        self._watch = watch

    def do(self, task: Task) -> None:
        task()
        self._watch()

    def close(self) -> None:
        return
