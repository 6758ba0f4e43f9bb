"""Backward passes and steps of all optimisers: weights, loss scaling, clipping, rates and noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from boa.train.torch import rates
from boa.train.torch.data import Cell
from boa.train.torch.noise import Statistics
from boa.train.torch.norms import clip
from boa.train.torch.replicas import Replica

Optimizer: TypeAlias = torch.optim.Optimizer


@dataclass(frozen=True, slots=True)
class _Reach:
    """A model as far as a loss for certain optimisers moves it."""

    replica: Replica
    shared: list[torch.Tensor]
    """Parameters that any of these optimisers has."""
    covered: bool
    """Whether no other optimiser has any of the others."""
    measured: bool
    """Whether noise is measured with this loss: with that of the first optimiser that has any."""

    @property
    def moved(self) -> list[torch.Tensor]:
        found = self.replica.parameters if self.covered else self.shared
        return [parameter for parameter in found if parameter.requires_grad]


class Stepping:
    """For every batch: `begin`, then `backward` and `step` for any of the optimisers, then `end`.

    Several optimisers are taken in any order, more than once in a batch or not in every one. A
    loss moves the parameters of those that it is given for and no others.
    """

    def __init__(
        self, replicas: Sequence[Replica], *, base_batch: int, rule: rates.Rule, clip: float | None
    ) -> None:
        self._replicas, self._base_batch, self._rule, self._clip = replicas, base_batch, rule, clip
        self._optimizers: tuple[Optimizer, ...] = ()
        self._scaler: Any = None
        self._samples = 0  # of this rank, in this iteration
        self._cells = 0  # of this iteration, so far
        self._passes: dict[Optimizer, int] = {}  # backwards since the last step
        self._stepped: set[Optimizer] = set()  # since the scale was updated
        self._known: dict[tuple[tuple[int, int], ...], list[_Reach]] = {}
        self.used = False
        """Whether the batch has had a backward."""
        self.factor = 1.0
        """The factor of the learning rates in the last step."""

    def take(self, optimizers: Sequence[Optimizer], scaler: Any) -> None:
        self._optimizers, self._scaler = tuple(optimizers), scaler
        for replica in self._replicas:
            held = [len(_shared(replica, [each])) for each in optimizers]
            together = len(_shared(replica, optimizers))
            replica.by_hand = any(0 < count < together for count in held)

    def chosen(self, given: Optimizer | Sequence[Optimizer] | None, call: str) -> list[Optimizer]:
        """Those that a loss is for; what is none of ours is refused."""
        if given is None and len(self._optimizers) == 1:
            return list(self._optimizers)
        if given is None:
            raise TypeError(
                f"{call}: resume() was given {len(self._optimizers)} optimisers; expected "
                "optimizer=… to say which of them this loss is for, or optimizer=[…] for several"
            )
        found = [given] if isinstance(given, Optimizer) else list(given)
        for each in found:
            if not any(each is own for own in self._optimizers):
                raise TypeError(
                    f"{call}: got optimizer={type(each).__name__}, which was not given to "
                    "resume(); expected one of those that were"
                )
        return found

    @property
    def waiting(self) -> bool:
        """Whether there are gradients that no step has used."""
        return bool(self._passes)

    def has_gradients(self, optimizers: Sequence[Optimizer]) -> bool:
        return all(each in self._passes for each in optimizers)

    @property
    def statistics(self) -> Statistics | None:
        """Statistics of the gradient of the optimiser that gains least from a larger batch."""
        known = [found for optimizer in self._optimizers if (found := self._of(optimizer))]
        return min(known, key=lambda found: found.noise_scale, default=None)

    def begin(self, cell: Cell) -> None:
        for replica in self._replicas:
            replica.synchronise(cell.last, first=not self._cells)
        self._samples, self._cells, self.used = self._samples + cell.samples, self._cells + 1, False

    def backward(
        self,
        loss: torch.Tensor,
        optimizers: Sequence[Optimizer],
        cell: Cell,
        step: int,
        *,
        retain_graph: bool = False,
    ) -> bool:
        """True if gradients are whole: of all samples of the iteration, and the same on all ranks.

        They are as the scaler left them.
        """
        weighted = loss * cell.weight
        scaled = weighted if self._scaler is None else self._scaler.scale(weighted)
        self._propagate(scaled, optimizers, retain_graph)
        self.used = True
        for each in optimizers:
            self._passes[each] = self._passes.get(each, 0) + 1
        for reach in self._reach(optimizers):
            self._settle(reach, optimizers, cell, step)
        return cell.last

    def step(self, optimizers: Sequence[Optimizer], cell: Cell) -> None:
        """Once gradients are whole."""
        if self._scaler is not None and not self._stepped.isdisjoint(optimizers):
            self._update_scale()
        if self._clip is not None:
            if self._scaler is not None:
                for each in optimizers:
                    self._scaler.unscale_(each)
            clip(self._moved_by(optimizers), self._clip)
        self.factor = rates.factor(self._rule, cell.total, self._base_batch, self.statistics)
        for each in optimizers:
            with rates.scaled(each, self.factor):
                each.step() if self._scaler is None else self._scaler.step(each)
            each.zero_grad(set_to_none=True)
            self._passes.pop(each, None)
            self._stepped.add(each)

    def end(self, cell: Cell) -> None:
        """The batch is done."""
        if not cell.last:
            return
        self._samples = self._cells = 0
        if self._scaler is not None and self._stepped and not self._passes:
            self._update_scale()

    def _update_scale(self) -> None:
        """Not while gradients are added up: all of them must have been scaled alike."""
        self._scaler.update()
        self._stepped.clear()

    def _propagate(
        self, loss: torch.Tensor, optimizers: Sequence[Optimizer], retain_graph: bool
    ) -> None:
        if len(optimizers) == len(self._optimizers):
            loss.backward(retain_graph=retain_graph)
            return
        moved = self._moved_by(optimizers)
        if not any(replica.sharded for replica in self._replicas):
            loss.backward(inputs=moved, retain_graph=retain_graph)
            return
        # what FSDP2 computes with is not what it holds: gradients cannot be asked for by name
        ours = {id(parameter) for parameter in moved}
        others = [p for r in self._replicas for p in r.parameters if id(p) not in ours]
        before = [parameter.grad for parameter in others]
        for parameter in others:
            parameter.grad = None
        loss.backward(retain_graph=retain_graph)
        for parameter, gradient in zip(others, before, strict=True):
            parameter.grad = gradient

    def _moved_by(self, optimizers: Sequence[Optimizer]) -> list[torch.Tensor]:
        """Parameters that a loss for these reaches: another optimiser's it does not."""
        return [parameter for reach in self._reach(optimizers) for parameter in reach.moved]

    def _reach(self, optimizers: Sequence[Optimizer]) -> list[_Reach]:
        key = tuple((id(each), len(each.param_groups)) for each in optimizers)
        if key not in self._known:
            self._known[key] = [
                _Reach(
                    replica,
                    shared,
                    len(shared) == len(_shared(replica, self._optimizers)),
                    self._owner(replica) in optimizers,
                )
                for replica in self._replicas
                if (shared := _shared(replica, optimizers))
            ]
        return self._known[key]

    def _settle(
        self, reach: _Reach, optimizers: Sequence[Optimizer], cell: Cell, step: int
    ) -> None:
        # a reading needs one backward for every batch of the step, and all of the model in it
        replica, meter = reach.replica, reach.replica.meter
        one_each = all(self._passes[each] == self._cells for each in optimizers)
        measured = one_each and reach.covered and reach.measured
        if meter is not None and not one_each:
            meter.drop(step)
        if not cell.last:
            if meter is not None and measured:
                meter.accumulated(self._samples)
            return
        scale = getattr(self._scaler, "_scale", None)  # get_scale() would wait for the GPU
        replica.settle(reach.shared, self._samples, cell.total, step, scale, measured=measured)
        replica.by_hand = replica.by_hand and not reach.covered

    def _owner(self, replica: Replica) -> Optimizer | None:
        """The optimiser with whose loss the noise of its gradient is measured."""
        return next((each for each in self._optimizers if _shared(replica, [each])), None)

    def _of(self, optimizer: Optimizer) -> Statistics | None:
        """Statistics of all its models, added up: they are parts of one gradient."""
        reaches = self._reach([optimizer])
        own = [reach.replica.meter for reach in reaches if reach.measured and reach.replica.meter]
        known = [found for meter in own if (found := meter.statistics)]
        if not known or len(known) < len(own):
            return None
        sqr, var = (sum(getattr(each, name) for each in known) for name in ("grad_sqr", "grad_var"))
        return Statistics(sqr, var, self._base_batch)


def _shared(replica: Replica, optimizers: Sequence[Optimizer]) -> list[torch.Tensor]:
    """Parameters of the model that any of the optimisers has."""
    held = {id(p) for each in optimizers for group in each.param_groups for p in group["params"]}
    return [parameter for parameter in replica.parameters if id(parameter) in held]
