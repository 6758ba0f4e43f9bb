"""The elastic loop: a plain PyTorch training that goes on at any width, from where it was."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, get_args

import torch
from torch import nn

from boa.goodput.tuning import Setting
from boa.train import session
from boa.train.torch import evaluating, random, rates
from boa.train.torch.batches import Batches
from boa.train.torch.companion import SAVE_EVERY_S, Companion, More
from boa.train.torch.evaluating import Evaluation
from boa.train.torch.given import Given, numbered, sorted_by_type
from boa.train.torch.kept import Kept
from boa.train.torch.layout.tensor_plans import TensorPlan
from boa.train.torch.noise import NoiseMeter, Statistics
from boa.train.torch.ranks import Ranks, join
from boa.train.torch.replicas import Replica
from boa.train.torch.sides import Side
from boa.train.torch.sizing import Sizing
from boa.train.torch.stepping import Optimizer, Stepping
from boa.train.torch.wrapping import built

ORDER = "expected wrap, loader, resume, epochs"


class Elastic(More):
    """Everything that changes with the width of a job, so that the script does not.

    `batch_size` counts the samples of one step over all ranks. It stays the same at every width
    unless `max_batch` allows more: then the batch size, and how many passes it is accumulated in,
    follow from measured step times and gradient noise. `local_batch`: how many samples (at least,
    at most) one GPU takes in one pass. `learning_rate`: how the optimiser's rate follows the batch
    size ("none", "linear", "sqrt", "adascale"). `noise`: whether the gradient's noise is measured.
    `shard`: FSDP2 instead of DDP, unless `wrap` says otherwise. `exact`: a restart at the same
    width changes no bit, on three and more ranks too, for a little time in every step.
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
        self._sizing = Sizing(
            self.ranks,
            batch_size=batch_size,
            max_batch=max_batch,
            local_batch=local_batch,
            exact=exact,
        )
        if learning_rate not in get_args(rates.Rule):
            rules = ", ".join(get_args(rates.Rule))
            raise ValueError(f"learning_rate: got {learning_rate!r}; expected one of {rules}")
        self._seed, self._shard, self._exact, self._measures_noise = seed, shard, exact, noise
        self._beside = Companion(
            self.ranks, batch_size=batch_size, seed=seed, save_every_s=save_every_s, more=self
        )
        self._replicas: list[Replica] = []
        self._stepping = Stepping(
            self._replicas, base_batch=batch_size, rule=learning_rate, clip=clip_norm
        )
        self._given: Given | None = None
        self._keeps: dict[str, Any] = {}
        self.kept = Kept({})
        """Plain values that were given to `resume` by name, to be read and set: `run.kept.best`."""
        self._loss: torch.Tensor | None = None  # of this batch
        self._epoch, self._over = 0, False
        torch.manual_seed(seed)  # the same first weights on every rank

    # What a script calls, in this order

    def wrap(
        self,
        model: nn.Module | Callable[[], nn.Module],
        *,
        find_unused_parameters: bool = False,
        parallel: str | None = None,
        tensor_plan: TensorPlan | None = None,
    ) -> nn.Module:
        """The model on the device and on all ranks. Best given as a callable that builds it.

        It is the model itself at every width: its class, its attributes and its names stay. Call it
        for every model that is trained. `find_unused_parameters` is DDP's: for models of which a
        step does not use every part. `parallel`: "ddp", "fsdp", "fsdp-keep", "tp2", "fsdp+tp2",
        each with "+recompute" or without, as near as the width allows; or "auto". `tensor_plan`:
        how layers are split, as `parallelize_module` takes it, unless the model says it itself.
        """
        if self._given is not None:
            raise RuntimeError(f"wrap() after resume(); {ORDER}")
        asked = parallel or ("fsdp" if self._shard else "ddp")
        choice, plan = self._sizing.arrange(model, asked, tensor_plan)
        self._beside.dealt = self._sizing.dealt
        replica = Replica(
            built(model, self.device, cut=choice.layout.cuts),
            self.ranks,
            layout=choice.layout,
            tensor_plan=plan,
            find_unused=self._exact or find_unused_parameters,
            exact=self._exact,
        )
        self._replicas.append(replica)
        noisy = self._measures_noise or self._sizing.pace is not None
        if replica.parameters and noisy and choice.layout.tensor == 1:
            base = self._sizing.limits.base_batch
            replica.measure_with(NoiseMeter(self.ranks, replica.parameters, base_batch=base))
        return replica.model

    def loader(self, dataset: Any, *, shuffle: bool | None = None, **options: Any) -> Batches:
        """Batches on the device, every sample once in a pass. `options` are DataLoader's.

        The first loader makes the epochs. Further ones go round beside it, a batch with each of its
        batches; they may have a `batch_size` of their own, which counts all ranks, too.
        """
        batch, passes = self._sizing.begin()
        if self._beside.attached:
            size = options.pop("batch_size", self._sizing.limits.base_batch)
            part = max(size // (passes + 1), 1)
            side = self._beside.attach_side(dataset, batch=part, shuffle=shuffle, **options)
            return Batches(lambda: (True, self._beside_next(side)), lambda: side.data.length)
        self._beside.attach(
            dataset, batch=batch, passes=passes, shuffle=shuffle, streams=True, **options
        )
        if self._sizing.pace is not None and self._beside.data.samples is None:
            raise TypeError(
                f"max_batch: an epoch is counted in samples, and {type(dataset).__name__} has no "
                "__len__; expected one, or no max_batch"
            )
        return Batches(self._next, self._left)

    def resume(self, *parts: Any, **named: Any) -> bool:
        """Go on from the newest checkpoint; False if there is none.

        Takes the models, their optimisers and schedulers, and a GradScaler, as many as there are
        and in the same order every time. Whatever else is given by name (anything with `state_dict`
        and `load_state_dict`) is kept in checkpoints as well; plain values, too, which are then
        attributes of `kept`.
        """
        if not self._replicas or not self._beside.attached:
            missing = "loader" if self._replicas else "wrap"
            raise RuntimeError(f"resume() before {missing}(); {ORDER}")
        given = sorted_by_type(parts, named, self._replicas)
        self._given, self.kept = given, Kept(given.values)
        self._stepping.take(given.optimizers, given.scaler)
        noise = zip(numbered("noise"), self._meters, strict=False)
        own = {"pace": self._sizing.pace, **dict(noise)}
        self._keeps = given.keeps | {name: kept for name, kept in own.items() if kept is not None}
        found = self._beside.load(given.root, given.optimizers)
        if found is None:
            random.restore(random.fresh(self._seed, 0, self._sizing.dealt.rank))
            return False
        self._epoch, self._over = session.session().at.epoch, found["over"]
        for name, kept in self._keeps.items():
            if name in found["keeps"]:
                kept.load_state_dict(found["keeps"][name])
        self.kept.load_state_dict(found.get("values", {}))
        self._take_batches_of(self._sizing.resumed(self.statistics))
        return True

    def epochs(self, total: int | None = None) -> Iterator[int]:
        """The epochs that are left, from the one that was interrupted on.

        Without `total`, as many as the job's spec says. An epoch is a pass over the data; where the
        batch size may change, it is as much progress as one pass at `batch_size` makes.
        """
        if self._given is None:
            raise RuntimeError(f"epochs() before resume(); {ORDER}")
        last = session.context().epochs if total is None else total
        self._beside.plan(last, self._per_epoch())
        while self._epoch < last:
            session.epoch(self._epoch)
            self._sizing.interrupted()
            yield self._epoch
            self._close()
            self._epoch, self._over = self._epoch + 1, False
        self._beside.finish(self._epoch, self._state())

    def backward(
        self,
        loss: torch.Tensor,
        *,
        optimizer: Optimizer | Sequence[Optimizer] | None = None,
        retain_graph: bool = False,
    ) -> bool:
        """The first half of `step`, for what is to happen before the second, `step()`: clipping by
        hand, say, or losses of further batches.

        True if the gradients are whole: then the next `step()` uses them. They are scaled if there
        is a scaler, whose `unscale_` may be called here.
        """
        optimizers = self._chosen(optimizer, "backward()")
        cell = self._beside.cell
        if cell is None:
            raise RuntimeError("backward() without a batch; expected it within a loop over batches")
        assert self._given is not None
        if any(each is self._given.optimizers[0] for each in optimizers):
            mean = loss.detach()
            self._loss = mean if self._loss is None else self._loss + mean
        step = self.steps
        return self._stepping.backward(loss, optimizers, cell, step, retain_graph=retain_graph)

    def step(
        self,
        loss: torch.Tensor | None = None,
        *,
        optimizer: Optimizer | Sequence[Optimizer] | None = None,
    ) -> bool:
        """Backward and, once all passes of an iteration are done (True), the optimiser's step.

        Of several optimisers, `optimizer` says which one the loss is for: it moves the parameters
        of that one alone. Without a loss: the step after `backward`. Whether to save or stop is
        agreed on here, and done before the next batch: then all of the script's own lines that
        belong to this step have run, too.
        """
        optimizers = self._chosen(optimizer, "step()")
        cell = self._beside.cell
        if cell is None:
            raise RuntimeError("step() without a batch; expected one call for every batch")
        if loss is not None:
            self.backward(loss, optimizer=optimizers)
        elif not self._stepping.has_gradients(optimizers):
            raise RuntimeError(
                "step() without a loss; expected step(loss), or backward(loss) first"
            )
        if cell.last:
            self._stepping.step(optimizers, cell)
        assert self._given is not None
        if len(self._given.optimizers) == 1:
            self._close()  # of several, nobody knows which is the last
        return cell.last

    # Between the epochs, or wherever all ranks are

    def evaluation(
        self, dataset: Any, *, batch_size: int | None = None, **options: Any
    ) -> Evaluation:
        """This rank's part of a data set to evaluate on, in order: over all ranks, every sample
        once. `batch_size` is that of one rank; `options` are DataLoader's."""
        size = self._sizing.limits.max_local if batch_size is None else batch_size
        dealt = self._sizing.dealt
        return Evaluation(dataset, dealt, self._replicas, batch_size=size, **options)

    def total(self, value: Any) -> Any:
        """The sum over all ranks of a number or a tensor, in 64 bits. All ranks must ask."""
        return evaluating.total(value, self.ranks, self._sizing.copies)

    def gather(self, value: Any) -> Any:
        """The tensors, or lists, of all ranks one after the other: in the order of the data set, if
        they are of an `evaluation`. All ranks must ask."""
        return evaluating.gathered(value, self.ranks, self._sizing.copies)

    @property
    def statistics(self) -> Statistics | None:
        """Statistics of the gradient, as far as they are known: of several optimisers, of the one
        that gains least from a larger batch."""
        return self._stepping.statistics

    @property
    def steps(self) -> int:
        """Iterations, over all attempts."""
        return session.session().at.step

    @property
    def loss(self) -> float | None:
        """Mean over all ranks, of a step or two ago: nobody waited for it. Of several optimisers,
        the first one's."""
        return self._beside.loss

    @property
    def has_memory(self) -> bool:
        """Whether a stop would leave this rank's state in memory for the next run."""
        return self._beside.has_memory

    @property
    def stall_s(self) -> float:
        """How long the last save kept training waiting."""
        return self._beside.stall_s

    def state(self) -> dict[str, Any]:
        """Model and optimiser as checkpoints have them: {"model": …, "optimizer": …}.

        All ranks must ask; sharded tensors stay sharded.
        """
        return self._beside.tensors()

    # A batch

    def _next(self) -> tuple[bool, Any]:
        """Whether there is another batch in this epoch, and which; first what was agreed on."""
        if self._given is None:
            raise RuntimeError(f"a batch before resume(); {ORDER}")
        self._close()
        if self._beside.cell is None and not self._stepping.waiting:
            self._beside.act(self._state)
        if self._over:
            return False, None
        batch = self._beside.batch()
        if self._beside.cell is None and self._sizing.pace is None:  # the end of a stream
            self._over = True
            return False, None
        cell = self._beside.cell
        if cell is None:  # an epoch may go on in the next pass
            batch, cell = self._beside.batch(), self._beside.cell
        assert cell is not None
        self._stepping.begin(cell)
        return True, batch

    def _beside_next(self, side: Side) -> Any:
        if self._given is None:
            raise RuntimeError(f"a batch before resume(); {ORDER}")
        return side.draw(during=self._beside.cell is not None)

    def _close(self) -> None:
        """The batch in progress is done, if it was used at all."""
        cell = self._beside.cell
        if cell is None or not self._stepping.used:
            return
        if self._stepping.waiting and cell.last and self._sizing.may_split:
            raise RuntimeError(
                "backward() without step(), where batches may be accumulated already (max_batch, "
                "local_batch, parallel='auto'); expected a step() for every batch, or none of them"
            )
        loss, self._loss = self._loss, None
        self._stepping.end(cell)
        if not cell.last:
            self._beside.stepped(loss)
            return
        worth, known, adapts = 1.0, self.statistics, self._sizing.pace is not None
        self._sizing.stepped(cell.total, full=cell.total == self._beside.data.batch)
        if adapts:
            worth = rates.gain(cell.total, self._sizing.limits.base_batch, known)
            self._over = self._is_over(worth)
        noise = None if known is None else known.noise_scale
        pass_over = self._beside.stepped(
            loss, worth, gain=worth, lr_factor=self._stepping.factor, noise_scale=noise
        )
        self._over = self._over if adapts else pass_over

    def _chosen(self, given: Optimizer | Sequence[Optimizer] | None, call: str) -> list[Optimizer]:
        if self._given is None:
            raise RuntimeError(f"{call} before resume(); {ORDER}")
        return self._stepping.chosen(given, call)

    def _left(self) -> int:
        data = self._beside.data
        if data.samples is None:
            return data.length  # which says that nobody knows
        left = data.samples - data.position.cursor
        return -(-left * (data.passes + 1) // data.batch)

    def _per_epoch(self) -> float | None:
        """Progress that an epoch is, where that is known."""
        if self._sizing.pace is None:
            return self._beside.iterations
        return (self._beside.data.samples or 0) / self._sizing.limits.base_batch

    def _is_over(self, worth: float) -> bool:
        """Whether the epoch is, with an iteration that is worth so much."""
        work = (self._beside.data.samples or 0) / self._sizing.limits.base_batch
        return session.session().at.progress + worth >= work

    # What all ranks agree on, beside when to save and to stop

    @property
    def _meters(self) -> list[NoiseMeter]:
        return [replica.meter for replica in self._replicas if replica.meter is not None]

    def offers(self) -> list[float]:
        """For the exchange; not for scripts."""
        pace = self._sizing.pace
        proposal = None if pace is None else pace.proposal(self.statistics)
        sizes = [0.0, 0.0] if proposal is None else [proposal.local_batch, proposal.passes]
        return [*map(float, sizes), *(value for meter in self._meters for value in meter.pop())]

    def hear(self, sums: list[float]) -> None:
        """From the exchange; not for scripts."""
        local, passes, *noise = sums
        for n, meter in enumerate(self._meters):
            meter.push(noise[n * meter.LENGTH : (n + 1) * meter.LENGTH])
        if local and self._sizing.pace is not None:
            self._take_batches_of(self._sizing.adopt(Setting(int(local), int(passes))))

    def _take_batches_of(self, sizes: tuple[int, int] | None) -> None:
        if sizes is not None:
            self._beside.data.set_batch(*sizes)

    def _state(self) -> dict[str, Any]:
        keeps = {name: kept.state_dict() for name, kept in self._keeps.items()}
        return {"over": self._over, "keeps": keeps, "values": self.kept.state_dict()}
