"""Models, optimisers and all else that `resume` is given, sorted by type; refused by type."""

import itertools
import numbers
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from boa.train.torch.replicas import Replica
from boa.train.torch.wrapping import plain

ACCEPTED = (
    "models that wrap() gave, optimisers, schedulers and a GradScaler; by name anything with "
    "state_dict() and load_state_dict(), or plain values"
)


@dataclass(frozen=True, slots=True)
class Given:
    models: tuple[nn.Module, ...]
    optimizers: tuple[torch.optim.Optimizer, ...]
    scaler: Any
    keeps: dict[str, Any]
    """Things with a state, by name."""
    values: dict[str, Any]
    """Plain values, by name."""

    @property
    def root(self) -> nn.Module:
        """The module with all models: its names are those of checkpoints."""
        inner = [plain(model) for model in self.models]
        if len(inner) == 1:
            return inner[0]
        return nn.ModuleDict({str(n): model for n, model in enumerate(inner, 1)})


def sorted_by_type(
    parts: Sequence[Any], named: Mapping[str, Any], replicas: Sequence[Replica]
) -> Given:
    models: list[nn.Module] = []
    optimizers: list[torch.optim.Optimizer] = []
    keeps: dict[str, Any] = {}
    values: dict[str, Any] = {}
    schedulers: list[Any] = []
    scaler = named.get("scaler")
    for part in _flat(parts):
        if isinstance(part, nn.Module):
            models.append(part)
        elif isinstance(part, torch.optim.Optimizer):
            optimizers.append(part)
        elif isinstance(part, torch.amp.GradScaler):
            scaler = part
        elif _has_state(part) and callable(getattr(part, "step", None)):
            schedulers.append(part)
        elif part is not None:
            kind = type(part).__name__
            raise TypeError(f"resume: got a {kind} without a name; expected {ACCEPTED}")
    for name, part in named.items():
        if isinstance(part, torch.optim.Optimizer):
            optimizers.append(part)
        elif isinstance(part, nn.Module) and _trained(part, replicas):
            models.append(part)
        elif name == "scheduler" and isinstance(part, list | tuple):
            schedulers += part
        elif name in ("scheduler", "scaler") and part is None:
            continue
        elif _has_state(part):
            keeps[name] = part
        elif name not in ("scheduler", "scaler") and is_plain(part):
            values[name] = part
        else:
            raise TypeError(
                f"{name}: got a {type(part).__name__}; expected something with state_dict() and "
                "load_state_dict(), or a plain value (numbers, text, tensors, lists of them)"
            )
    if scaler is not None:
        keeps["scaler"] = scaler
    for number, scheduler in enumerate(schedulers, 1):
        keeps["scheduler" if number == 1 else f"scheduler_{number}"] = scheduler
    given = Given(tuple(models), tuple(optimizers), scaler, keeps, values)
    _check(given, replicas)
    return given


def is_plain(value: object) -> bool:
    """Whether checkpoints keep it as it is."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str | int) and is_plain(each) for key, each in value.items())
    if isinstance(value, list | tuple):
        return all(map(is_plain, value))
    known = str | bytes | numbers.Number | torch.Tensor | np.ndarray | None
    return isinstance(value, known)


def _flat(parts: Sequence[Any]) -> Iterator[Any]:
    for part in parts:
        if isinstance(part, list | tuple):
            yield from _flat(part)
        else:
            yield part


def _has_state(part: object) -> bool:
    return all(callable(getattr(part, name, None)) for name in ("state_dict", "load_state_dict"))


def _trained(module: nn.Module, replicas: Sequence[Replica]) -> bool:
    """Whether it is, or holds, a model that was given to wrap()."""
    inside = {id(part) for part in module.modules()}
    return any(id(plain(replica.model)) in inside for replica in replicas)


def _check(given: Given, replicas: Sequence[Replica]) -> None:
    """Refuse what would not be trained, not on all ranks, or not saved."""
    if not given.models or not given.optimizers:
        missing = "optimiser" if given.models else "model"
        raise TypeError(f"resume: got no {missing}; expected {ACCEPTED}")
    synchronised = {id(p) for replica in replicas for p in replica.parameters}
    for model in given.models:
        kind = type(plain(model)).__name__
        if not _trained(model, replicas):
            raise TypeError(
                f"resume: got a {kind} that wrap() has not seen; expected run.wrap({kind}) to "
                "train it, or a name for it to keep it beside (ema=…)"
            )
        for name, parameter in model.named_parameters():
            if parameter.requires_grad and id(parameter) not in synchronised:
                raise TypeError(
                    f"resume: {name} of {kind} is in no model given to wrap(): every rank would "
                    "train one of its own; expected wrap() around all of it"
                )
    saved = {id(p) for model in given.models for p in model.parameters()}
    for optimizer in given.optimizers:
        held = {id(p) for group in optimizer.param_groups for p in group["params"]}
        if not held <= saved:
            raise TypeError(
                f"resume: {type(optimizer).__name__} has parameters of no model given to resume(); "
                "expected all of its models, each made by wrap()"
            )
    moved = {
        id(p) for each in given.optimizers for group in each.param_groups for p in group["params"]
    }
    for replica in replicas:
        kind = type(plain(replica.model)).__name__
        own = {id(p) for p in replica.parameters}
        if not {id(p) for p in replica.model.parameters()} <= saved:
            raise TypeError(f"resume: {kind} was given to wrap() and is missing; expected it, too")
        if own and not own & moved:
            raise TypeError(
                f"resume: no optimiser has parameters of {kind}: it would not be trained; expected "
                "its optimiser, too, or requires_grad_(False) before wrap()"
            )


def numbered(name: str) -> Iterator[str]:
    """That name, then with 2, 3 … behind it."""
    yield name
    yield from (f"{name}_{number}" for number in itertools.count(2))
