"""How long iterations take, and what follows from it: the batch size for this width.

Only rank 0 measures and chooses, beside the training; the others hear of it by the exchange.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import torch
import torch.distributed as dist

from boa.goodput.tuning import Setting
from boa.train.torch.noise import Statistics
from boa.train.torch.ranks import Ranks
from boa.train.torch.tuner import Tuner

SKIPPED = 3
"""Iterations after a start or a change that say nothing of the usual pace."""
WINDOW = 20
"""Iterations that are measured at least, and"""
WINDOW_S = 5.0
"""seconds, before a batch size is judged."""


class Pace:
    """The tuner is touched by one thread at a time: nothing new is told to it while it chooses."""

    def __init__(self, ranks: Ranks, tuner: Tuner, setting: Setting) -> None:
        self._ranks, self.tuner, self.setting = ranks, tuner, setting
        self._last: float | None = None
        self._skip, self._count, self._seconds = SKIPPED, 0, 0.0
        self._choosing: tuple[Setting, Future[Setting]] | None = None  # instead of what

    def first(self, statistics: Statistics | None) -> Setting:
        """The setting to begin with, by what was measured before: as rank 0 sees it."""
        chosen = self._choose(statistics) if self._ranks.rank == 0 else self.setting
        if not self._ranks.alone:
            # where the group is another library's, it may be for tensors on GPUs alone
            sizes = torch.tensor([chosen.local_batch, chosen.passes], device=self._ranks.device)
            dist.broadcast(sizes, src=0)
            chosen = Setting(*sizes.tolist())
        self.adopt(chosen)
        return chosen

    def interrupted(self) -> None:
        """Leave out whatever comes next (an evaluation, say): it is no part of an iteration."""
        self._last = None

    def stepped(self, *, full: bool) -> None:
        """An iteration has ended; `full`: with a whole batch, not the rest of a pass."""
        now = time.perf_counter()
        # beside a fit, which takes turns with it, an iteration may be slower than usual
        if self._last is not None and full and self._choosing is None:
            if self._skip:
                self._skip -= 1
            else:
                self._count, self._seconds = self._count + 1, self._seconds + now - self._last
        self._last = now

    def proposal(self, statistics: Statistics | None) -> Setting | None:
        """A better setting than the current one, once enough was measured and thought about.

        It never waits: fitting goes on in a thread, and a later call gives what came of it.
        """
        if self._choosing is not None:
            return self._chosen(*self._choosing)
        if self._ranks.rank == 0 and self._count >= WINDOW and self._seconds >= WINDOW_S:
            self._observe()
            self._choosing = self.setting, _aside(lambda: self._choose(statistics))
        return None

    def _chosen(self, instead_of: Setting, choosing: Future[Setting]) -> Setting | None:
        if not choosing.done():
            return None
        self._choosing, chosen = None, choosing.result()
        news = chosen != self.setting and instead_of == self.setting
        return chosen if news else None

    def _choose(self, statistics: Statistics | None) -> Setting:
        nodes, gpus = self._ranks.nodes, self._ranks.world_size
        return self.tuner.choose(nodes=nodes, gpus=gpus, statistics=statistics)

    def _observe(self) -> None:
        self.tuner.observe(
            nodes=self._ranks.nodes,
            gpus=self._ranks.world_size,
            local_batch=self.setting.local_batch,
            passes=self.setting.passes,
            iteration_s=self._seconds / self._count,
        )
        self._count, self._seconds = 0, 0.0

    def adopt(self, setting: Setting) -> None:
        self.setting = setting
        self._skip, self._count, self._seconds = SKIPPED, 0, 0.0

    def state_dict(self) -> dict[str, Any]:
        return self.tuner.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.tuner.load_state_dict(state)


def _aside(choose: Callable[[], Setting]) -> Future[Setting]:
    """In a thread that the end of the process does not wait for."""
    future: Future[Setting] = Future()

    def run() -> None:
        try:
            future.set_result(choose())
        except Exception as problem:  # for the training's thread to raise
            future.set_exception(problem)

    threading.Thread(target=run, name="boa-tuner", daemon=True).start()
    return future
