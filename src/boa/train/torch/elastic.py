"""The elastic loop: a plain PyTorch training that goes on at any width, from where it was."""

import atexit
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.nn.parallel import DistributedDataParallel

from boa.goodput.tuning import Limits, Setting, first_setting
from boa.train import session, stopping
from boa.train.checkpoints import Progress
from boa.train.torch import random, rates
from boa.train.torch.arriving import Sums
from boa.train.torch.batches import Batches
from boa.train.torch.checkpoint import Checkpointer, Loaded
from boa.train.torch.data import Cell, ElasticLoader, Position
from boa.train.torch.exchange import Exchange
from boa.train.torch.noise import NoiseMeter, Statistics
from boa.train.torch.pace import Pace
from boa.train.torch.parts import Parts, Patience
from boa.train.torch.ranks import Ranks, join
from boa.train.torch.tuner import Tuner
from boa.train.torch.wrapping import built, sparse, synchronise, wrapped

SAVE_EVERY_S = 300.0


class Stopped(SystemExit):
    """Asked to stop, and everything is saved. Not caught, the process ends with code 0."""


class Elastic:
    """Everything that changes with the width of a job, so that the script does not.

    `batch_size` counts the samples of one step over all ranks. It stays the same at every width
    unless `max_batch` allows more: then the batch size, and how many passes it is accumulated in,
    follow from measured step times and gradient noise. `local_batch`: how many samples (at least,
    at most) one GPU takes in one pass. `learning_rate`: how the optimiser's rate follows the batch
    size ("none", "linear", "sqrt", "adascale"). `noise`: whether the gradient's noise is measured.
    `shard`: FSDP2 instead of DDP. `exact`: a restart at the same width changes no bit, on three and
    more ranks too, for a little time in every step.
    """

    def __init__(
        self,
        *,
        batch_size: int,
        max_batch: int | None = None,
        local_batch: tuple[int, int] | None = None,
        learning_rate: rates.Rule = "none",
        clip_norm: float | None = None,
        seed: int = 0,
        save_every_s: float = SAVE_EVERY_S,
        noise: bool = True,
        shard: bool = False,
        exact: bool = False,
    ) -> None:
        self.ranks: Ranks = join()
        self.device = self.ranks.device
        self._limits = _limits(batch_size, max_batch, local_batch, self.ranks.world_size)
        self._rule, self._clip, self._seed, self._shard = learning_rate, clip_norm, seed, shard
        self._exact = exact
        self._measures_noise = noise
        self._parts = Parts()
        self._saves = Patience(save_every_s)
        self._exchange, self._losses = Exchange(self.ranks), Sums()
        self._checkpoints = Checkpointer(session.context().checkpoint_dir, self.ranks)
        self._pace: Pace | None = None
        if max_batch is not None:
            self._pace = Pace(self.ranks, _tuner(self._limits), self._first_setting())
        self._keeps: dict[str, Any] = {}
        self._noise: NoiseMeter | None = None
        self._cell: Cell | None = None
        self._samples = 0  # of this rank, in this iteration
        self._loss: float | None = None
        self._epoch, self._over, self._ready = 0, False, False
        torch.manual_seed(seed)  # the same first weights on every rank
        atexit.register(_leave)

    # What a script calls, in this order

    def wrap(self, model: nn.Module | Callable[[], nn.Module]) -> nn.Module:
        """The model on the device and on all ranks. Best given as a callable that builds it."""
        plain = built(model, self.device)
        self._model = wrapped(plain, self.ranks, shard=self._shard, exact=self._exact)
        self._wrapped = self._model  # resume() may get it compiled
        if self._measures_noise or self._pace is not None:
            parameters = [p for p in self._model.parameters() if p.requires_grad]
            self._noise = NoiseMeter(self.ranks, parameters, base_batch=self._limits.base_batch)
            if isinstance(self._model, DistributedDataParallel):
                hooked = self._exact or sparse(plain)
                (self._noise.attach if hooked else self._noise.watch)(self._model)
        return self._model

    def loader(self, dataset: Any, *, shuffle: bool = True, **options: Any) -> Batches:
        """Batches on the device, every sample once in a pass. `options` are DataLoader's."""
        setting = self._first_setting()
        self._data = ElasticLoader(
            dataset,
            self.ranks,
            batch=self._total(setting),
            passes=setting.passes,
            seed=self._seed,
            shuffle=shuffle,
            **options,
        )
        return Batches(self._data, self._check, self._begin, lambda: self._over)

    def resume(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        scheduler: Any = None,
        *,
        scaler: Any = None,
        **keeps: Any,
    ) -> bool:
        """Go on from the newest checkpoint; False if there is none.

        `scheduler`, `scaler` and whatever else is given by name (anything with `state_dict` and
        `load_state_dict`) is kept in checkpoints as well.
        """
        if not hasattr(self, "_data"):
            raise RuntimeError("resume() before loader(); expected wrap, loader, resume, epochs")
        self._model, self._optimizer, self._scaler = model, optimizer, scaler
        own = {"noise": self._noise, "pace": self._pace}
        named = {"scheduler": scheduler, "scaler": scaler, **keeps, **own}
        self._keeps = {name: kept for name, kept in named.items() if kept is not None}
        found = self._load()
        self._ready = True
        self._parts.loaded({} if found is None else found.parts)
        return found is not None

    def epochs(self, total: int | None = None) -> Iterator[int]:
        """The epochs that are left, from the one that was interrupted on.

        Without `total`, as many as the job's spec says. An epoch is a pass over the data; where the
        batch size may change, it is as much progress as one pass at `batch_size` makes.
        """
        if not self._ready:
            raise RuntimeError("epochs() before resume(); expected wrap, loader, resume, epochs")
        last = session.context().epochs if total is None else total
        while self._epoch < last:
            session.epoch(self._epoch)
            if self._pace is not None:
                self._pace.interrupted()
            yield self._epoch
            self._epoch, self._over = self._epoch + 1, False
        self._agree(self._exchange.settle())
        at = session.session().at
        self._save(Progress(self._epoch, 0.0, at.step), wait=True)

    def step(self, loss: torch.Tensor) -> bool:
        """Backward and, once all passes of an iteration are done (True), the optimiser's step.

        Reports progress, and saves now and then. After SIGTERM on any rank, all of them save after
        the same step and raise `Stopped`.
        """
        cell, self._cell = self._cell, None
        if cell is None:
            raise RuntimeError("step() without a batch; expected one call for every batch")
        weighted = loss * cell.weight
        (weighted if self._scaler is None else self._scaler.scale(weighted)).backward()
        self._losses.add(weighted.detach() / self.ranks.world_size)
        self._samples += cell.samples
        if not cell.last:
            if self._noise is not None:
                self._noise.accumulated(self._samples)
            return False
        factor = self._optimise(cell)
        self._account(cell, factor)
        self._agree(self._exchange.swap(self._offers()))
        return True

    @property
    def statistics(self) -> Statistics | None:
        """Of the gradient, as far as they are known."""
        return None if self._noise is None else self._noise.statistics

    @property
    def steps(self) -> int:
        """Of the optimiser, over all attempts."""
        return session.session().at.step

    @property
    def loss(self) -> float | None:
        """Mean over all ranks, of a step or two ago: nobody waited for it."""
        return self._loss

    @property
    def stall_s(self) -> float:
        """How long the last save kept training waiting."""
        return self._checkpoints.stall_s

    def state(self) -> dict[str, Any]:
        """Model and optimiser as checkpoints have them: {"model": …, "optimizer": …}.

        All ranks must ask; sharded tensors stay sharded.
        """
        model, optimizer = get_state_dict(self._model, self._optimizer)
        return {"model": model, "optimizer": optimizer}

    # A step

    def _check(self) -> None:
        if not self._ready:
            raise RuntimeError("a batch before resume(); expected wrap, loader, resume, epochs")
        if self._cell is not None:
            raise RuntimeError("a batch was left out; expected one step() for every batch")

    def _begin(self, cell: Cell) -> None:
        self._cell = cell
        aside = self._noise is not None and self._noise.aside
        synchronise(self._wrapped, cell.last and not aside)

    def _optimise(self, cell: Cell) -> float:
        """Gives the factor that the learning rate had."""
        step = session.session().at.step
        scaler, optimizer = self._scaler, self._optimizer
        if self._noise is not None:
            scale = getattr(scaler, "_scale", None)  # get_scale() would wait for the GPU
            self._noise.measure(self._samples, cell.total, step, scale=scale)
        if self._clip is not None:
            if scaler is not None:
                scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(self._model.parameters(), self._clip)
        base = self._limits.base_batch
        factor = rates.factor(self._rule, cell.total, base, self.statistics)
        with rates.scaled(optimizer, factor):
            if scaler is None:
                optimizer.step()
            else:
                scaler.step(optimizer)
                scaler.update()
        optimizer.zero_grad(set_to_none=True)
        return factor

    def _account(self, cell: Cell, factor: float) -> None:
        """What the iteration was worth, and whether the epoch is over."""
        self._samples = 0
        self._losses.send()
        worth, base = 1.0, self._limits.base_batch
        if self._pace is not None:
            worth = rates.gain(cell.total, base, self.statistics)
            self._pace.stepped(full=cell.total == self._data.batch)
        now = session.session().at
        pass_over = self._data.advance()
        if self._pace is None:
            self._over = pass_over
        else:
            self._over = now.progress + worth >= self._data.samples / base
        session.report(
            progress=worth,
            step=now.step + 1,
            loss=self._loss,
            batch_size=cell.total,
            accumulation=self._data.passes,
            gain=worth,
            lr_factor=factor,
            noise_scale=None if self.statistics is None else self.statistics.noise_scale,
        )
        self._parts.stepped()

    # What all ranks agree on

    def _offers(self) -> list[float]:
        proposal = None if self._pace is None else self._pace.proposal(self.statistics)
        loss = self._losses.newest()
        return [
            float(stopping.stop_requested()),
            float(self.ranks.rank == 0 and self._saves.over()),
            0.0 if proposal is None else float(proposal.local_batch),
            0.0 if proposal is None else float(proposal.passes),
            0.0 if loss is None else 1.0,
            loss or 0.0,
            *([] if self._noise is None else self._noise.pop()),
        ]

    def _agree(self, sums: list[float] | None) -> None:
        if sums is None:
            return
        stop, save, local, passes, losses, loss, *noise = sums
        if self._noise is not None:
            self._noise.push(noise)
        if losses:
            # a rank whose loss has not arrived yet is left out, and the others stand for it
            self._loss = loss * self.ranks.world_size / losses
        if local and self._pace is not None:
            self._pace.adopt(Setting(int(local), int(passes)))
            self._data.set_batch(self._pace.setting.total(self.ranks.world_size), int(passes))
        if stop:
            self._stop()
        if save:
            self._saves.restart()
            self._save(session.session().at)

    def _stop(self) -> None:
        self._parts.stopping()
        self._exchange.settle()
        if self._ready and session.session().at.step:
            self._save(session.session().at, wait=True)
        _leave()
        raise Stopped(0)

    # Checkpoints

    def _save(self, progress: Progress, *, wait: bool = False) -> None:
        at = self._data.position
        self._checkpoints.save(
            tensors=self.state(),
            shared={
                "position": (at.number, at.cursor),
                "over": self._over,
                "keeps": {name: kept.state_dict() for name, kept in self._keeps.items()},
            },
            own=random.state(),
            progress=progress,
            parts=self._parts.so_far,
            wait=wait,
        )

    def _load(self) -> Loaded | None:
        # asking an optimiser for its state makes it one, so only if there is one to load
        state = self.state() if self._checkpoints.exists() else {}
        found = self._checkpoints.load(state)
        if found is None:
            random.restore(random.fresh(self._seed, 0, self.ranks.rank))
            return None
        set_state_dict(
            self._model,
            self._optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )
        for name, kept in self._keeps.items():
            if name in found.shared["keeps"]:
                kept.load_state_dict(found.shared["keeps"][name])
        self._data.position = Position(*found.shared["position"])
        self._epoch, self._over = found.progress.epoch, found.shared["over"]
        fresh = random.fresh(self._seed, found.progress.step, self.ranks.rank)
        random.restore(fresh if found.own is None else found.own)
        session.resume_at(found.progress)
        if self._pace is not None:
            chosen = self._pace.first(self.statistics)
            self._data.set_batch(chosen.total(self.ranks.world_size), chosen.passes)
        return found

    def _first_setting(self) -> Setting:
        return first_setting(self._limits, self.ranks.world_size)

    def _total(self, setting: Setting) -> int:
        """Rigid: to the sample; otherwise as much as the setting makes."""
        if self._pace is None:
            return self._limits.base_batch
        return setting.total(self.ranks.world_size)


def _limits(
    batch_size: int, max_batch: int | None, local: tuple[int, int] | None, world: int
) -> Limits:
    if batch_size < 1:
        raise ValueError(f"batch_size: got {batch_size}; expected at least 1")
    if max_batch is not None and max_batch < batch_size:
        raise ValueError(f"max_batch: got {max_batch}; expected at least batch_size, {batch_size}")
    least, most = local or (1, batch_size)
    if not 1 <= least <= most:
        raise ValueError(
            f"local_batch: got {local}; expected (least, most) with 1 <= least <= most"
        )
    if (max_batch or batch_size) < world:
        raise ValueError(
            f"batch_size: got {batch_size} on {world} processes; expected a sample for each, "
            f"or `gpus: {{max: {batch_size}}}` in the job's file"
        )
    if max_batch is None:
        return Limits(base_batch=batch_size, max_batch=batch_size, min_local=1, max_local=most)
    return Limits(base_batch=batch_size, max_batch=max_batch, min_local=least, max_local=most)


def _tuner(limits: Limits) -> Tuner:
    return Tuner(
        base_batch=limits.base_batch,
        max_batch=limits.max_batch,
        local_batch=(limits.min_local, limits.max_local),
        gpu_type=session.context().gpu_type,
    )


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
