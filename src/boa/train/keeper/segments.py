"""Memory that a keeper lends to ranks, and holds for them when they have left state in it.

A segment is there as long as the keeper, or a rank that was given it, lives. Its pages are had from
the system before anybody needs them, which takes as long as a copy ten times its size.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

if __package__:
    from boa.train.keeper.large_pages import PAGE
    from boa.train.keeper.stripes import GRAIN, Stripes
else:
    from large_pages import PAGE  # type: ignore[import-not-found, no-redef]
    from stripes import GRAIN, Stripes  # type: ignore[import-not-found, no-redef]

FILLING = 4
"""Threads that have pages from the system."""


@dataclass(eq=False)
class Segment:
    number: int
    memory: Stripes
    lent_to: object | None = None
    """Whose it is while he writes."""
    generation: str = ""
    """The state that it holds; empty: none."""
    filled: int = 0
    """Bytes of it that are had from the system, about."""
    is_ready: bool = False
    problem: str = ""
    """Why there are no more of them."""
    dropped: bool = False

    @property
    def size(self) -> int:
        return self.memory.size

    @property
    def is_free(self) -> bool:
        return self.lent_to is None and not self.generation


@dataclass(eq=False)
class Segments:
    when_filled: Callable[[], None]
    """Called, from any thread, when one is ready or failed."""
    all: dict[int, Segment] = field(default_factory=dict)
    _next: int = 0

    @property
    def bytes(self) -> int:
        return sum(segment.size for segment in self.all.values())

    def free(self, size: int) -> Segment | None:
        """The smallest that has room."""
        found = [s for s in self.all.values() if s.is_free and s.size >= size and not s.problem]
        return min(found, key=lambda s: (not s.is_ready, s.size), default=None)

    def made(self, size: int) -> Segment:
        """A new one, whose pages come in the background."""
        segment = Segment(self._next, Stripes.made(size))
        self.all[self._next] = segment
        self._next += 1
        threading.Thread(target=self._fill, args=[segment], daemon=True).start()
        return segment

    def drop(self, segment: Segment) -> None:
        del self.all[segment.number]
        segment.dropped = True  # whoever fills it stops, and lets go of it
        if segment.is_ready or segment.problem:
            segment.memory.close()

    def holding(self, generation: str) -> list[Segment]:
        return [s for s in self.all.values() if s.generation == generation]

    def _fill(self, segment: Segment) -> None:
        def fill(at: int) -> None:
            if not segment.dropped and not segment.problem:
                segment.memory.fill(at, min(GRAIN, segment.size - at))
                segment.filled += GRAIN

        try:
            with ThreadPoolExecutor(FILLING) as pool:
                for _ in pool.map(fill, range(0, segment.size, GRAIN)):
                    pass
        except OSError as problem:
            segment.problem = problem.strerror or str(problem)
        segment.is_ready = not segment.problem and not segment.dropped
        if segment.dropped:
            segment.memory.close()
        self.when_filled()


def rounded(size: int) -> int:
    return -(-max(size, 1) // PAGE) * PAGE
