"""How a step is taken at this width: in which layout, on how many samples, in how many passes."""

from collections.abc import Callable
from dataclasses import replace

from torch import nn

from boa.goodput.tuning import Setting, first_setting
from boa.train.torch.layout.arranging import AUTO, Arrangement, Wanted
from boa.train.torch.layout.choosing import Choice
from boa.train.torch.layout.tensor_plans import TensorPlan
from boa.train.torch.limits import limits_of, tuner_of
from boa.train.torch.noise import Statistics
from boa.train.torch.pace import Pace
from boa.train.torch.ranks import Ranks


class Sizing:
    """Called by all ranks in the same order: arrange for every model, then begin."""

    def __init__(
        self,
        ranks: Ranks,
        *,
        batch_size: int,
        max_batch: int | None,
        local_batch: tuple[int, int] | None,
        exact: bool,
    ) -> None:
        self._ranks, self._exact, self._adapts = ranks, exact, max_batch is not None
        self.limits = limits_of(batch_size, max_batch, local_batch, ranks.world_size)
        self.dealt = ranks
        """Ranks as far as samples are dealt out: those that split layers among them are one."""
        self.copies = 1
        """Ranks that work on the same samples."""
        self._dealt_out = False
        self._arrangement = Arrangement(ranks)
        self.pace = self._new_pace()
        """None: the batch size never changes."""

    def arrange(
        self,
        model: nn.Module | Callable[[], nn.Module],
        parallel: str,
        tensor_plan: TensorPlan | None,
    ) -> tuple[Choice, TensorPlan | None]:
        """The model's layout, and how its layers are split if they are."""
        if parallel == AUTO and self._exact:
            raise ValueError("parallel: got 'auto' with exact=True; expected one of the two")
        limits = self.limits
        wanted = Wanted(parallel, tensor_plan, limits.max_batch, limits.max_local, self._adapts)
        choice, plan = self._arrangement.choose(model, wanted)
        self._deal(choice.layout.tensor, choice.layout.name)
        if choice.local_batch < limits.max_local:
            least = min(limits.min_local, choice.local_batch)
            self.limits = replace(limits, min_local=least, max_local=choice.local_batch)
            self.pace = self._new_pace()
        return choice, plan

    def _deal(self, copies: int, name: str) -> None:
        if self._dealt_out and copies != self.copies:
            raise ValueError(
                f"parallel: got {name} after a model with {self.copies} GPUs to a sample; expected "
                "as many for all models"
            )
        self._dealt_out, self.copies, self.dealt = True, copies, self._ranks.dealt(copies)

    @property
    def may_split(self) -> bool:
        """Whether a step is taken in several batches, at this width or another."""
        split = self.limits.max_local < self.limits.base_batch
        return self.pace is not None or split or self._arrangement.chooses

    def begin(self) -> tuple[int, int]:
        """(Samples of all ranks, passes beside the last) of the first step."""
        first = first_setting(self.limits, self.dealt.world_size)
        rigid = self.pace is None  # to the sample
        batch = self.limits.base_batch if rigid else first.total(self.dealt.world_size)
        self._arrangement.running(batch, first.passes)
        return batch, first.passes

    def resumed(self, statistics: Statistics | None) -> tuple[int, int] | None:
        """The same by what earlier runs have measured; None: as it began."""
        return None if self.pace is None else self._adopted(self.pace.first(statistics))

    def adopt(self, setting: Setting) -> tuple[int, int]:
        """The sizes of a setting that all ranks have agreed on."""
        assert self.pace is not None
        self.pace.adopt(setting)
        return self._adopted(self.pace.setting)

    def stepped(self, total: int, *, full: bool) -> None:
        """A step of so many samples has ended; `full`: as many as it should have."""
        self._arrangement.stepped(total)
        if self.pace is not None:
            self.pace.stepped(full=full)

    def interrupted(self) -> None:
        """Time that comes now is no part of a step."""
        self._arrangement.interrupted()
        if self.pace is not None:
            self.pace.interrupted()

    def _adopted(self, setting: Setting) -> tuple[int, int]:
        batch = setting.total(self.dealt.world_size)
        self._arrangement.running(batch, setting.passes)
        return batch, setting.passes

    def _new_pace(self) -> Pace | None:
        if not self._adapts:
            return None
        first = first_setting(self.limits, self._ranks.world_size)
        return Pace(self._ranks, tuner_of(self.limits), first)
