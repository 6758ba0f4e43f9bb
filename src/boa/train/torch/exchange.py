"""The exchange of ranks: a small vector, summed over all of them while the next step runs."""

from collections.abc import Sequence

import torch
import torch.distributed as dist

from boa.train.torch.ranks import Ranks


class Exchange:
    """One all-reduce per step that nobody waits for: asked after a step, read after the next.

    Every rank reads the same sums after the same step, so what follows from them (stop here, save
    here, another batch size from here on) happens on all ranks at once.

    All ranks make it, in the same order: it has a Gloo group of its own. The default group may be
    NCCL's alone, which takes no tensors on the CPU.
    """

    def __init__(self, ranks: Ranks) -> None:
        self._group = None if ranks.alone else dist.new_group(backend="gloo")
        self._asked: tuple[torch.Tensor, dist.Work] | None = None
        self._last: object = None

    def swap(self, values: Sequence[float]) -> list[float] | None:
        """Offer this rank's values; gives the sums of what was offered last time (alone: of now).

        None the first time.
        """
        if self._group is None:
            return list(values)
        before = self.settle()
        offered = torch.tensor(values, dtype=torch.float64)
        work = dist.all_reduce(offered, group=self._group, async_op=True)
        assert work is not None
        self._asked = offered, work
        return before

    def settle(self) -> list[float] | None:
        """The sums of what was offered last; after this nothing is under way."""
        if self._asked is None:
            return None
        # A thread of the group lets go of them a little later than we do. Whoever is the last to do
        # so needs the interpreter, and a thread that finds it ending aborts the process.
        self._last, self._asked = self._asked, None
        total, work = self._last
        work.wait()
        found: list[float] = total.tolist()
        return found
