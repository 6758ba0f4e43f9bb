"""Gradient noise, and the batch size that follows from it, in a loop that is another library's.

`Elastic` does the same in a loop of its own. Here the library runs the backward and the optimiser;
it is told when the one is over, and hooks of torch's do the rest.
"""

from dataclasses import replace
from typing import Any, get_args

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from boa.goodput.tuning import Setting, first_setting
from boa.train import session
from boa.train.torch import rates
from boa.train.torch.companion import Companion, More
from boa.train.torch.data import Cell
from boa.train.torch.limits import limits_of, tuner_of
from boa.train.torch.noise import NoiseMeter, Scale, Statistics
from boa.train.torch.pace import Pace
from boa.train.torch.ranks import Ranks


class Measuring(More):
    """Beside a `Companion`, which is made with it. Called by all ranks in the same order: take,
    then propagated after every backward, and stepped after every batch."""

    def __init__(
        self,
        ranks: Ranks,
        *,
        batch_size: int,
        max_batch: int | None = None,
        local_batch: tuple[int, int] | None = None,
        learning_rate: rates.Rule = "none",
        noise: bool = True,
        one_pass: bool = False,
    ) -> None:
        """`one_pass`: the loop cannot change in how many batches a step is taken."""
        if learning_rate not in get_args(rates.Rule):
            rules = ", ".join(get_args(rates.Rule))
            raise ValueError(f"learning_rate: got {learning_rate!r}; expected one of {rules}")
        self._ranks, self._rule, self._noise = ranks, learning_rate, noise
        world, self._one_pass = ranks.world_size, one_pass
        self._limits = limits_of(batch_size, max_batch, local_batch, world)
        if one_pass and max_batch is not None:
            most = min(max_batch, world * self._limits.max_local)
            if world * self._limits.max_local < batch_size:
                raise ValueError(
                    f"local_batch: got {local_batch} on {world} process(es); expected room for all "
                    f"of batch_size, {batch_size}: a step is one batch here"
                )
            self._limits = replace(self._limits, max_batch=max(most, batch_size))
        self._setting = self._possible(first_setting(self._limits, world))
        self._pace: Pace | None = None
        if max_batch is not None:
            self._pace = Pace(ranks, tuner_of(self._limits), self._setting)
        self._meter: NoiseMeter | None = None
        self._companion: Companion | None = None
        self._samples = 0
        self._cell: Cell | None = None
        self._rates: list[tuple[Any, Any]] = []
        self.factor = 1.0
        """The factor of the learning rates in the last step."""

    # What is decided before the first batch

    @property
    def adapts(self) -> bool:
        """Whether the batch size may change."""
        return self._pace is not None

    def sizes(self) -> tuple[int, int]:
        """(batch of all ranks, passes) to begin with."""
        world = self._ranks.world_size
        batch = self._setting.total(world) if self.adapts else self._limits.base_batch
        return batch, self._setting.passes

    def take(self, companion: Companion, model: nn.Module, *optimizers: Any) -> None:
        """The model and its optimisers, as the library has wrapped them."""
        self._companion = companion
        wrapped = _replicated(model)
        parameters = [p for p in model.parameters() if p.requires_grad]
        # sharded by the library, or summed over ranks in a way of its own: nothing can be told
        seen = wrapped is not None or self._ranks.alone
        if seen and parameters and (self._noise or self.adapts):
            base = self._limits.base_batch
            meter = NoiseMeter(self._ranks, parameters, base_batch=base)
            try:
                if wrapped is not None and not self._ranks.alone:
                    meter.attach(wrapped)
                self._meter = meter
            except RuntimeError:  # somebody else's hook is there, and there can be one only
                self._meter = None
        for optimizer in optimizers if self._rule != "none" else ():
            optimizer.register_step_pre_hook(self._scale_rates)
            optimizer.register_step_post_hook(self._restore_rates)

    def resume(self) -> None:
        """After the checkpoint is loaded: with the batch size that suits this width."""
        if self._pace is not None:
            self._pace.adopt(self._possible(self._pace.first(self.statistics)))
            self._adopt(self._pace.setting)

    def interrupted(self) -> None:
        """Time that comes now is no part of an iteration."""
        if self._pace is not None:
            self._pace.interrupted()

    # What is told of every batch

    def propagated(self, cell: Cell, scale: Scale = None) -> None:
        """After a backward, before gradients are unscaled or clipped."""
        meter, step = self._meter, session.session().at.step
        if meter is None:
            return
        if cell is self._cell:  # a second loss of the same batch: there is more to the gradient
            meter.drop(step)
            return
        self._cell, self._samples = cell, self._samples + cell.samples
        if cell.last:
            meter.measure(self._samples, cell.total, step, scale=scale)
            self._samples = 0
        else:
            meter.accumulated(self._samples)

    def stepped(self, cell: Cell) -> tuple[float, dict[str, float | None]]:
        """After an iteration: (what it was worth, in iterations at the base batch; metrics)."""
        known, self._samples = self.statistics, 0
        worth = self.worth(cell.total)
        if self._pace is not None and self._companion is not None:
            self._pace.stepped(full=cell.total == self._companion.data.batch)
        noise = None if known is None else known.noise_scale
        metrics = {"gain": worth, "lr_factor": self.factor, "noise_scale": noise}
        return worth, metrics

    def worth(self, batch: int) -> float:
        """Worth of an iteration with so many samples; 1 where the batch size does not change."""
        if self._pace is None:
            return 1.0
        return rates.gain(batch, self._limits.base_batch, self.statistics)

    def per_epoch(self) -> float | None:
        """Progress that an epoch is, where that is known."""
        assert self._companion is not None
        if not self.adapts:
            return self._companion.iterations
        return (self._companion.data.samples or 0) / self._limits.base_batch

    def ends_epoch(self, worth: float) -> bool:
        """Whether an iteration of that worth is the last of its epoch."""
        assert self._companion is not None
        work = (self._companion.data.samples or 0) / self._limits.base_batch
        return session.session().at.progress + worth >= work

    @property
    def statistics(self) -> Statistics | None:
        return None if self._meter is None else self._meter.statistics

    # What all ranks agree on

    def offers(self) -> list[float]:
        proposal = None if self._pace is None else self._pace.proposal(self.statistics)
        sizes = [0.0, 0.0] if proposal is None else [proposal.local_batch, proposal.passes]
        return [*map(float, sizes), *([] if self._meter is None else self._meter.pop())]

    def hear(self, sums: list[float]) -> None:
        local, passes, *noise = sums
        if self._meter is not None:
            self._meter.push(noise)
        if local and self._pace is not None:
            self._pace.adopt(self._possible(Setting(int(local), int(passes))))
            self._adopt(self._pace.setting)

    def _adopt(self, setting: Setting) -> None:
        assert self._companion is not None
        found = self._possible(setting)
        self._companion.data.set_batch(found.total(self._ranks.world_size), found.passes)

    def _possible(self, setting: Setting) -> Setting:
        """As many samples, in one pass if the loop cannot do with several."""
        if not self._one_pass or not setting.passes:
            return setting
        return Setting(setting.local_batch * (setting.passes + 1), 0)

    def state_dict(self) -> dict[str, Any]:
        parts = {"noise": self._meter, "pace": self._pace}
        return {name: part.state_dict() for name, part in parts.items() if part is not None}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, part in (("noise", self._meter), ("pace", self._pace)):
            if part is not None and name in state:
                part.load_state_dict(state[name])

    # Around the optimiser's step

    def _scale_rates(self, optimizer: Any, *_: object) -> None:
        cell = None if self._companion is None else self._companion.cell
        if cell is None:
            return
        base = self._limits.base_batch
        self.factor = rates.factor(self._rule, cell.total, base, self.statistics)
        self._rates = [(group, group["lr"]) for group in optimizer.param_groups]
        for group, rate in self._rates:
            group["lr"] = rate * self.factor  # not in place: it may be a tensor

    def _restore_rates(self, *_: object) -> None:
        for group, rate in self._rates:
            group["lr"] = rate
        self._rates = []


def scale_of(scaler: Any) -> Scale:
    """By how much a scaler has multiplied the loss; on the device, nobody waits for it."""
    if scaler is None or not scaler.is_enabled():
        return None
    found: torch.Tensor | None = getattr(scaler, "_scale", None)
    return found


def _replicated(model: nn.Module) -> DistributedDataParallel | None:
    """DDP around the model, under whatever else is."""
    inner: Any = model
    while inner is not None:
        if isinstance(inner, DistributedDataParallel):
            return inner
        inner = getattr(inner, "_orig_mod", None)
    return None
