"""Answers that take long to work out: once for all who ask the same, and kept for a while."""

import math
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

from boa.units import Seconds

CHEAP_S = 0.05
"""Seconds of the wall: an answer that takes no longer is worked out anew for whoever asks later."""
TIMES = 20
"""Anything else is kept so many times as long as it took: no question takes more than a twentieth
of a processor, however often it is asked."""
LONGEST_S = 300.0
AT_ONCE = 4
"""Answers of a kind that are worked out at the same time; others wait for their turn."""
SHARE = 1000
"""Parts of a time that ends now, by one of which its beginning may be off …"""
COARSEST_S: Seconds = 3600.0
"""… and how much at most."""
_T = TypeVar("_T")


def for_a_while(took: float) -> float:
    return min(TIMES * took, LONGEST_S) if took > CHEAP_S else 0.0


def for_ever(took: float) -> float:
    return math.inf


@dataclass(slots=True)
class _Kept(Generic[_T]):
    future: "Future[_T]"
    until: float = math.inf
    """While it is being worked out nobody knows."""


class Shared(Generic[_T]):
    """`most`: answers that are kept. One that is an error is told to those who wait, not kept."""

    def __init__(
        self,
        most: int = 32,
        keep: Callable[[float], float] = for_a_while,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most, self._keep, self._clock = most, keep, clock
        self._lock = threading.Lock()
        self._turn = threading.Semaphore(AT_ONCE)
        self._known: dict[Hashable, _Kept[_T]] = {}

    def of(self, key: Hashable, work: Callable[[], _T]) -> "Future[_T]":
        """Returns at once; `work` is done by another thread, unless its result is known."""
        with self._lock:
            known = self._known.pop(key, None)
            if known is None or self._clock() > known.until:
                known = _Kept(Future())
                known.future.set_running_or_notify_cancel()  # who goes away ends it for no other
                # A thread of its own: it may take long, and those of the pool answer everybody.
                name = type(self).__name__.lower()
                arguments = (key, known, work)
                threading.Thread(target=self._do, args=arguments, name=name, daemon=True).start()
            self._known[key] = known  # the last asked for is the last to go
            while len(self._known) > self._most:
                del self._known[next(iter(self._known))]
        return known.future

    def _do(self, key: Hashable, kept: _Kept[_T], work: Callable[[], _T]) -> None:
        with self._turn:
            began = self._clock()
            try:
                found = work()
            except BaseException as problem:  # whoever waits is told
                self._settle(key, kept, 0.0)
                kept.future.set_exception(problem)
                return
            ended = self._clock()
            self._settle(key, kept, self._keep(ended - began))
        kept.future.set_result(found)

    def _settle(self, key: Hashable, kept: _Kept[_T], seconds: float) -> None:
        with self._lock:
            kept.until = self._clock() + seconds
            if seconds <= 0 and self._known.get(key) is kept:
                del self._known[key]


def nearly(since: Seconds, until: Seconds, now: Seconds) -> Hashable:
    """The same for times that may share an answer: those that end now and began at about the same
    moment, since pages ask for the last day or month, each by its own clock. One that ends before
    is asked for by somebody who means exactly that."""
    if until < now:
        return since, until
    grain = min(max((until - since) / SHARE, 1.0), COARSEST_S)
    grain = 2.0 ** math.floor(math.log2(grain))  # so that it stays the same while time goes on
    return grain, since // grain
