"""The elastic loop: a plain PyTorch training that goes on at any width, from where it was."""

from collections.abc import Callable, Iterator
from typing import Any, get_args

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from boa.goodput.tuning import Limits, Setting, first_setting
from boa.train import session
from boa.train.torch import random, rates
from boa.train.torch.batches import Batches
from boa.train.torch.companion import SAVE_EVERY_S, Companion, More
from boa.train.torch.data import Cell
from boa.train.torch.noise import NoiseMeter, Statistics
from boa.train.torch.pace import Pace
from boa.train.torch.ranks import Ranks, join
from boa.train.torch.tuner import Tuner
from boa.train.torch.wrapping import built, sparse, synchronise, wrapped

ORDER = "expected wrap, loader, resume, epochs"


class Elastic(More):
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
        if learning_rate not in get_args(rates.Rule):
            rules = ", ".join(get_args(rates.Rule))
            raise ValueError(f"learning_rate: got {learning_rate!r}; expected one of {rules}")
        self._rule, self._clip, self._seed = learning_rate, clip_norm, seed
        self._shard, self._exact, self._measures_noise = shard, exact, noise
        self._beside = Companion(
            self.ranks, batch_size=batch_size, seed=seed, save_every_s=save_every_s, more=self
        )
        self._pace: Pace | None = None
        if max_batch is not None:
            first = first_setting(self._limits, self.ranks.world_size)
            self._pace = Pace(self.ranks, _tuner(self._limits), first)
        self._keeps: dict[str, Any] = {}
        self._noise: NoiseMeter | None = None
        self._model: nn.Module | None = None
        self._optimizer: torch.optim.Optimizer | None = None
        self._samples = 0  # of this rank, in this iteration
        self._epoch, self._over = 0, False
        torch.manual_seed(seed)  # the same first weights on every rank

    # What a script calls, in this order

    def wrap(
        self, model: nn.Module | Callable[[], nn.Module], *, find_unused_parameters: bool = False
    ) -> nn.Module:
        """The model on the device and on all ranks. Best given as a callable that builds it.

        `find_unused_parameters` is DDP's: for models of which a step does not use every part.
        """
        plain = built(model, self.device)
        unused = self._exact or find_unused_parameters
        self._model = wrapped(plain, self.ranks, shard=self._shard, find_unused=unused)
        if self._measures_noise or self._pace is not None:
            parameters = [p for p in self._model.parameters() if p.requires_grad]
            self._noise = NoiseMeter(self.ranks, parameters, base_batch=self._limits.base_batch)
            if isinstance(self._model, DistributedDataParallel):
                hooked = self._exact or sparse(plain)
                (self._noise.attach if hooked else self._noise.watch)(self._model)
        return self._model

    def loader(self, dataset: Any, *, shuffle: bool = True, **options: Any) -> Batches:
        """Batches on the device, every sample once in a pass. `options` are DataLoader's."""
        setting = first_setting(self._limits, self.ranks.world_size)
        batch = self._limits.base_batch  # rigid: to the sample
        if self._pace is not None:
            batch = setting.total(self.ranks.world_size)
        passes = setting.passes
        self._beside.attach(dataset, batch=batch, passes=passes, shuffle=shuffle, **options)
        return Batches(self._next, self._left)

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
        if self._model is None or not self._beside.attached:
            missing = "wrap" if self._model is None else "loader"
            raise RuntimeError(f"resume() before {missing}(); {ORDER}")
        _check_kept(optimizer, {"scheduler": scheduler, "scaler": scaler, **keeps})
        self._optimizer, self._scaler = optimizer, scaler
        own = {"noise": self._noise, "pace": self._pace}
        named = {"scheduler": scheduler, "scaler": scaler, **keeps, **own}
        self._keeps = {name: kept for name, kept in named.items() if kept is not None}
        found = self._beside.load(model, [optimizer])
        if found is None:
            random.restore(random.fresh(self._seed, 0, self.ranks.rank))
            return False
        self._epoch, self._over = session.session().at.epoch, found["over"]
        for name, kept in self._keeps.items():
            if name in found["keeps"]:
                kept.load_state_dict(found["keeps"][name])
        if self._pace is not None:
            self._adopt(self._pace.first(self.statistics))
        return True

    def epochs(self, total: int | None = None) -> Iterator[int]:
        """The epochs that are left, from the one that was interrupted on.

        Without `total`, as many as the job's spec says. An epoch is a pass over the data; where the
        batch size may change, it is as much progress as one pass at `batch_size` makes.
        """
        if self._optimizer is None:
            raise RuntimeError(f"epochs() before resume(); {ORDER}")
        last = session.context().epochs if total is None else total
        while self._epoch < last:
            session.epoch(self._epoch)
            if self._pace is not None:
                self._pace.interrupted()
            yield self._epoch
            self._epoch, self._over = self._epoch + 1, False
        self._beside.finish(self._epoch, self._kept())

    def step(self, loss: torch.Tensor) -> bool:
        """Backward and, once all passes of an iteration are done (True), the optimiser's step.

        Whether to save or stop is agreed on here, and done before the next batch: then all of the
        script's own lines that belong to this step have run, too.
        """
        cell = self._beside.cell
        if cell is None:
            raise RuntimeError("step() without a batch; expected one call for every batch")
        weighted = loss * cell.weight
        (weighted if self._scaler is None else self._scaler.scale(weighted)).backward()
        self._samples += cell.samples
        if not cell.last:
            if self._noise is not None:
                self._noise.accumulated(self._samples)
            self._beside.stepped(loss)
            return False
        factor = self._optimise(cell)
        self._samples, worth = 0, 1.0
        if self._pace is not None:
            worth = rates.gain(cell.total, self._limits.base_batch, self.statistics)
            self._pace.stepped(full=cell.total == self._beside.data.batch)
            self._over = self._is_over(worth)
        known = self.statistics
        noise = None if known is None else known.noise_scale
        pass_over = self._beside.stepped(
            loss, worth, gain=worth, lr_factor=factor, noise_scale=noise
        )
        self._over = pass_over if self._pace is None else self._over
        return True

    @property
    def statistics(self) -> Statistics | None:
        """Statistics of the gradient, as far as they are known."""
        return None if self._noise is None else self._noise.statistics

    @property
    def steps(self) -> int:
        """Steps of the optimiser, over all attempts."""
        return session.session().at.step

    @property
    def loss(self) -> float | None:
        """Mean over all ranks, of a step or two ago: nobody waited for it."""
        return self._beside.loss

    @property
    def stall_s(self) -> float:
        """How long the last save kept training waiting."""
        return self._beside.stall_s

    def state(self) -> dict[str, Any]:
        """Model and optimiser as checkpoints have them: {"model": …, "optimizer": …}.

        All ranks must ask; sharded tensors stay sharded.
        """
        return self._beside.tensors()

    # A step

    def _next(self) -> tuple[bool, Any]:
        """Whether there is another batch in this epoch, and which; first what was agreed on."""
        if self._optimizer is None or self._model is None:
            raise RuntimeError(f"a batch before resume(); {ORDER}")
        if self._beside.cell is None:
            self._beside.act(self._kept)
        if self._over:
            return False, None
        batch = self._beside.batch()
        cell = self._beside.cell
        assert cell is not None
        aside = self._noise is not None and self._noise.aside
        synchronise(self._model, cell.last and not aside)
        return True, batch

    def _left(self) -> int:
        data = self._beside.data
        left = data.samples - data.position.cursor
        return -(-left * (data.passes + 1) // data.batch)

    def _optimise(self, cell: Cell) -> float:
        """Gives the factor that the learning rate had."""
        scaler, optimizer, model = self._scaler, self._optimizer, self._model
        assert optimizer is not None
        assert model is not None
        if self._noise is not None:
            scale = getattr(scaler, "_scale", None)  # get_scale() would wait for the GPU
            self._noise.measure(self._samples, cell.total, self.steps, scale=scale)
        if self._clip is not None:
            if scaler is not None:
                scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), self._clip)
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

    def _is_over(self, worth: float) -> bool:
        """Whether the epoch is, with an iteration that is worth so much."""
        work = self._beside.data.samples / self._limits.base_batch
        return session.session().at.progress + worth >= work

    # What all ranks agree on, beside when to save and to stop

    def offers(self) -> list[float]:
        """For the exchange; not for scripts."""
        proposal = None if self._pace is None else self._pace.proposal(self.statistics)
        sizes = [0.0, 0.0] if proposal is None else [proposal.local_batch, proposal.passes]
        return [*map(float, sizes), *([] if self._noise is None else self._noise.pop())]

    def hear(self, sums: list[float]) -> None:
        """From the exchange; not for scripts."""
        local, passes, *noise = sums
        if self._noise is not None:
            self._noise.push(noise)
        if local and self._pace is not None:
            self._pace.adopt(Setting(int(local), int(passes)))
            self._adopt(self._pace.setting)

    def _adopt(self, setting: Setting) -> None:
        self._beside.data.set_batch(setting.total(self.ranks.world_size), setting.passes)

    def _kept(self) -> dict[str, Any]:
        keeps = {name: kept.state_dict() for name, kept in self._keeps.items()}
        return {"over": self._over, "keeps": keeps}


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
    return Limits(
        base_batch=batch_size,
        max_batch=max_batch,
        min_local=least,
        max_local=most,
        split_alone=False,
    )


def _check_kept(optimizer: object, keeps: dict[str, Any]) -> None:
    """Now, rather than when the first checkpoint is saved."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        kind = type(optimizer).__name__
        raise TypeError(f"optimizer: got a {kind}; expected one torch.optim.Optimizer")
    for name, kept in keeps.items():
        has = callable(getattr(kept, "state_dict", None))
        if kept is not None and not (has and callable(getattr(kept, "load_state_dict", None))):
            raise TypeError(
                f"{name}: got a {type(kept).__name__}; expected something with state_dict() and "
                "load_state_dict()"
            )


def _tuner(limits: Limits) -> Tuner:
    return Tuner(
        base_batch=limits.base_batch,
        max_batch=limits.max_batch,
        local_batch=(limits.min_local, limits.max_local),
        gpu_type=session.context().gpu_type,
    )
