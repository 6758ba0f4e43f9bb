"""What ranks agree on: a small vector, summed over all of them while the next step runs."""

from collections.abc import Sequence

import torch
import torch.distributed as dist

from boa.train.torch.ranks import Ranks


class Exchange:
    """One all-reduce per step that nobody waits for: asked after a step, read after the next.

    Every rank reads the same sums after the same step, so what follows from them (stop here, save
    here, another batch size from here on) happens on all ranks at once.
    """

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._sum: torch.Tensor | None = None
        self._work: dist.Work | None = None

    def swap(self, values: Sequence[float]) -> list[float] | None:
        """Offer this rank's values; gives the sums of what was offered last time (alone: of now).

        None the first time.
        """
        if self._ranks.alone:
            return list(values)
        before = self.settle()
        self._sum = torch.tensor(values, dtype=torch.float64)
        self._work = dist.all_reduce(self._sum, async_op=True)
        return before

    def settle(self) -> list[float] | None:
        """The sums of what was offered last; after this nothing is under way."""
        if self._sum is None or self._work is None:
            return None
        self._work.wait()
        found: list[float] = self._sum.tolist()
        self._sum = self._work = None
        return found
