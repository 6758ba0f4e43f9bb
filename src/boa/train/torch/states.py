"""Model and optimisers as checkpoints have them: by the names of one process, at every width."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)

Optimizers = Sequence[torch.optim.Optimizer]
# reading is strict about the model; parameters may have no optimiser state yet
_LENIENT = StateDictOptions(strict=False)


def taken(model: nn.Module, optimizers: Optimizers) -> dict[str, Any]:
    """{"model": …, "optimizer": …}, to be saved. All ranks must ask."""
    with _as_they_are(optimizers):
        return asked(model, optimizers)


def asked(model: nn.Module, optimizers: Optimizers) -> dict[str, Any]:
    """The same to be read into: an optimiser that has not stepped is given a state for that."""
    found: dict[str, Any] = {"model": get_model_state_dict(model)}
    for name, group in _groups(optimizers):
        found[name] = get_optimizer_state_dict(model, group)
    return found


def give(model: nn.Module, optimizers: Optimizers, state: dict[str, Any]) -> None:
    """Back to model and optimisers."""
    set_model_state_dict(model, state["model"], options=_LENIENT)
    for name, group in _groups(optimizers):
        set_optimizer_state_dict(model, group, optim_state_dict=state[name], options=_LENIENT)


def _groups(optimizers: Optimizers) -> Iterator[tuple[str, list[torch.optim.Optimizer]]]:
    """Optimisers whose parameters are all different are kept together, by these; one that shares
    some with an earlier one is kept apart."""
    groups: list[tuple[list[torch.optim.Optimizer], set[int]]] = [([], set())]
    for optimizer in optimizers:
        own = {id(p) for group in optimizer.param_groups for p in group["params"]}
        free = next((each for each in groups if not each[1] & own), None)
        if free is None:
            groups.append(free := ([], set()))
        free[0].append(optimizer)
        free[1].update(own)
    for number, (found, _) in enumerate(groups, 1):
        yield "optimizer" if number == 1 else f"optimizer_{number}", found


@contextmanager
def _as_they_are(optimizers: Optimizers) -> Iterator[None]:
    """While it lasts, asking for the state of an optimiser that has not stepped yet makes it none.

    torch has it step by nothing, but for where there are gradients; and that would count.
    """
    lent = []
    for optimizer in optimizers:
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        ours = [p for p in parameters if p.requires_grad]
        if not optimizer.state and ours and all(p.grad is None for p in parameters):
            ours[0].grad = torch.zeros_like(ours[0])
            lent.append(ours[0])
    try:
        yield
    finally:
        for parameter in lent:
            parameter.grad = None
