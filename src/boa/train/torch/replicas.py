"""A model on all ranks, with the class and the names that it has on one.

What a script holds is its own model at every width. DDP works beside it, by hooks: wrapped around
it, the names of all that holds the model (averages of it, files, wrappers of the script's own)
would begin with `module.` on two ranks and not on one.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch._compile import _disable_dynamo
from torch.distributed.fsdp import FSDPModule
from torch.nn.parallel import DistributedDataParallel

from boa.train.torch.averaging import average, reduced_by
from boa.train.torch.layout.applying import laid_out
from boa.train.torch.layout.layouts import Layout
from boa.train.torch.layout.tensor_plans import TensorPlan
from boa.train.torch.noise import NoiseMeter, Scale
from boa.train.torch.ranks import Ranks
from boa.train.torch.wrapping import (
    forget_wrappers,
    plain,
    replicated,
    sparse,
    synchronise,
)

PLAIN = Layout()


class Replica:
    """A model that was given to `wrap`. All ranks make them in the same order."""

    def __init__(
        self,
        model: nn.Module,
        ranks: Ranks,
        *,
        layout: Layout,
        tensor_plan: TensorPlan | None = None,
        find_unused: bool,
        exact: bool,
    ) -> None:
        self.model = model
        self._exact = exact
        self._ddp: DistributedDataParallel | None = None
        self._called = False  # DDP waits for gradients
        self._new = True  # no forward yet in this iteration
        self.sharded = layout.shards != "ddp" and layout.data_ranks(ranks.world_size) > 1
        self._reshards = layout.shards == "fsdp"
        self.by_hand = False
        """Whether its gradients do not come together: parts of it have optimisers of their own."""
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.meter: NoiseMeter | None = None
        plain(model).register_load_state_dict_pre_hook(forget_wrappers)
        if layout != PLAIN and self.parameters:
            laid_out(model, layout, ranks, tensor_plan)
            self.parameters = [p for p in model.parameters() if p.requires_grad]
        if layout.data_ranks(ranks.world_size) == 1 or self.sharded or not self.parameters:
            return
        self._ddp = replicated(model, ranks, find_unused=find_unused)
        self._reduced = reduced_by(self._ddp)
        hooks = _Hooks(self)
        model.register_forward_pre_hook(hooks.before, with_kwargs=True)
        model.register_forward_hook(hooks.after)

    def measure_with(self, meter: NoiseMeter) -> None:
        """Have the gradient's noise measured."""
        self.meter = meter
        if self._ddp is not None:
            hooked = self._exact or sparse(self.model)
            (meter.attach if hooked else meter.watch)(self._ddp)

    def synchronise(self, on: bool, *, first: bool) -> None:
        """Whether the backward of the batch that comes ends in a sum over ranks.

        `first`: it begins an iteration. Then the next forward takes over rank 0's buffers, and no
        other one: it would change what the backward of the one before needs.
        """
        self._new = self._new or first
        aside = self.meter is not None and self.meter.aside
        synchronise(self._ddp or self.model, on and not aside and not self.by_hand)

    def settle(
        self,
        moved: Sequence[torch.Tensor],
        local: int,
        total: int,
        step: int,
        scale: Scale,
        *,
        measured: bool,
    ) -> None:
        """After the last backward of an iteration: from here on all ranks have its mean.

        `moved`: the parameters that it was for. Where DDP was told to leave the gradients alone, or
        has not seen the forward (a method other than `forward`, or a second backward over one
        graph), they are averaged here.
        """
        ddp, meter = self._ddp, self.meter if measured else None
        done = ddp is None or (ddp.require_backward_grad_sync and self._called)
        self._called = False
        if done:
            if meter is not None:
                meter.measure(local, total, step, scale=scale)
            return
        assert ddp is not None
        before, ddp.require_backward_grad_sync = ddp.require_backward_grad_sync, False
        if meter is not None and meter.averages:
            meter.measure(local, total, step, scale=scale)
        else:
            ours = {id(parameter) for parameter in moved}
            average(ddp, [p for p in self._reduced if id(p) in ours])
        ddp.require_backward_grad_sync = before

    def share_buffers(self) -> None:
        """Take over rank 0's buffers now, on all ranks."""
        if self._ddp is not None and self._ddp.modules_buffers:
            self._ddp._sync_buffers()
        for buffer in self.model.buffers() if self.sharded else ():
            dist.broadcast(buffer, src=0)

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """All weights on every rank: each may call the model as often as it likes, and alone."""
        parts = [part for part in self.model.modules() if isinstance(part, FSDPModule)]
        for part in parts:
            part.unshard()
            part.set_reshard_after_forward(False, recurse=False)
        try:
            yield
        finally:
            for part in parts:
                part.set_reshard_after_forward(self._reshards, recurse=False)
                part.reshard()

    # Around every forward of the model

    def enter(self, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
        ddp = self._ddp
        if ddp is None or not torch.is_grad_enabled():
            return None  # nothing to synchronise, and ranks may differ in how much they evaluate
        ddp.require_forward_param_sync, self._new = self._new, False
        self._called = self._called or ddp.require_backward_grad_sync
        entered: tuple[Any, Any] = ddp._pre_forward(*args, **kwargs)
        DistributedDataParallel._active_ddp_module = ddp  # torch.compile cuts by its buckets
        return entered

    def leave(self, output: Any) -> Any:
        ddp = self._ddp
        if ddp is None or not torch.is_grad_enabled():
            return None
        DistributedDataParallel._active_ddp_module = None
        return ddp._post_forward(output)


class _Hooks:
    """Hooks around `forward`. A copy of the model, an average of it say, is nobody's replica:
    in a copy or a pickle they do nothing."""

    def __init__(self, replica: Replica | None = None) -> None:
        self._replica = replica

    @_disable_dynamo
    def before(self, _model: nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
        return None if self._replica is None else self._replica.enter(args, kwargs)

    @_disable_dynamo
    def after(self, _model: nn.Module, _args: Any, output: Any) -> Any:
        return None if self._replica is None else self._replica.leave(output)

    def __deepcopy__(self, memo: Any) -> "_Hooks":
        return _Hooks()

    def __reduce__(self) -> tuple[Any, ...]:
        return _Hooks, ()
