"""How long iterations take, and what follows from it: the batch size for this width.

Only rank 0 measures and chooses; the others hear of it by the exchange.
"""

import time
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
    def __init__(self, ranks: Ranks, tuner: Tuner, setting: Setting) -> None:
        self._ranks, self.tuner, self.setting = ranks, tuner, setting
        self._last: float | None = None
        self._skip, self._count, self._seconds = SKIPPED, 0, 0.0

    def first(self, statistics: Statistics | None) -> Setting:
        """What to begin with, by what was measured before: as rank 0 sees it."""
        nodes, gpus = self._ranks.nodes, self._ranks.world_size
        chosen = self.tuner.choose(nodes=nodes, gpus=gpus, statistics=statistics)
        if not self._ranks.alone:
            sizes = torch.tensor([chosen.local_batch, chosen.passes])
            dist.broadcast(sizes, src=0)
            chosen = Setting(*sizes.tolist())
        self.adopt(chosen)
        return chosen

    def interrupted(self) -> None:
        """What comes next (an evaluation, say) is no part of an iteration."""
        self._last = None

    def stepped(self, *, full: bool) -> None:
        """An iteration has ended; `full`: with a whole batch, not the rest of a pass."""
        now = time.perf_counter()
        if self._last is not None and full:
            if self._skip:
                self._skip -= 1
            else:
                self._count, self._seconds = self._count + 1, self._seconds + now - self._last
        self._last = now

    def proposal(self, statistics: Statistics | None) -> Setting | None:
        """A better setting than the current one, when enough was measured to tell."""
        if self._ranks.rank or self._count < WINDOW or self._seconds < WINDOW_S:
            return None
        nodes, gpus = self._ranks.nodes, self._ranks.world_size
        self.tuner.observe(
            nodes=nodes,
            gpus=gpus,
            local_batch=self.setting.local_batch,
            passes=self.setting.passes,
            iteration_s=self._seconds / self._count,
        )
        self._count, self._seconds = 0, 0.0
        chosen = self.tuner.choose(nodes=nodes, gpus=gpus, statistics=statistics)
        return None if chosen == self.setting else chosen

    def adopt(self, setting: Setting) -> None:
        self.setting = setting
        self._skip, self._count, self._seconds = SKIPPED, 0, 0.0

    def state_dict(self) -> dict[str, Any]:
        return self.tuner.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.tuner.load_state_dict(state)
