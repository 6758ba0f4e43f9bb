"""How a model says that its layers can be split: a plan of torch's, or Hugging Face's.

The first is what `torch.distributed.tensor.parallel.parallelize_module` takes: styles by names of
layers, with `*` for any one part of a name. The second, `tp_plan` of models of transformers, has
words in the place of styles.
"""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from torch import nn
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, RowwiseParallel

TensorPlan: TypeAlias = Mapping[str, ParallelStyle]
STYLES: Mapping[str, Callable[[], ParallelStyle]] = {
    "colwise": ColwiseParallel,
    "rowwise": RowwiseParallel,
    "colwise_rep": lambda: ColwiseParallel(output_layouts=Replicate()),
    "colwise_gather_output": lambda: ColwiseParallel(output_layouts=Replicate()),
    "rowwise_rep": RowwiseParallel,
    "embedding_rowwise": lambda: RowwiseParallel(input_layouts=Replicate()),
}
"""Hugging Face's words that mean a style of torch's. A model with any other is not split."""


def plan_of(model: nn.Module, given: TensorPlan | None) -> TensorPlan | None:
    """None: it says nothing of it, or something that is unknown here. ValueError: `given` names no
    layer, or no style."""
    if given is not None:
        return _checked(model, given)
    words = getattr(model, "tp_plan", None) or getattr(model, "_tp_plan", None)
    if not isinstance(words, Mapping) or not words:
        return None
    if any(word not in STYLES for word in words.values()):
        return None
    plan = {name: STYLES[word]() for name, word in words.items()}
    tied = _tied(model, plan)
    return {name: style for name, style in plan.items() if not any(fits(t, name) for t in tied)}


def split_layers(model: nn.Module, plan: TensorPlan) -> dict[str, nn.Module]:
    """Layers that a plan names."""
    return {
        name: layer
        for name, layer in model.named_modules()
        if name and any(fits(name, pattern) for pattern in plan)
    }


def _tied(model: nn.Module, plan: TensorPlan) -> list[str]:
    """Layers that share weights with another, which may be split differently: they stay whole."""
    layers = split_layers(model, plan)
    owners: dict[int, list[str]] = {}
    for name, layer in layers.items():
        for parameter in layer.parameters(recurse=False):
            owners.setdefault(id(parameter), []).append(name)
    return [name for names in owners.values() if len(names) > 1 for name in names]


def fits(name: str, pattern: str) -> bool:
    """Part by part: `*` stands for one, whatever it is."""
    names, patterns = name.split("."), pattern.split(".")
    return len(names) == len(patterns) and all(map(fnmatchcase, names, patterns))


def _checked(model: nn.Module, given: Mapping[str, Any]) -> TensorPlan:
    names = [name for name, _ in model.named_modules() if name]
    for pattern in given:
        if not any(fits(name, pattern) for name in names):
            few = ", ".join(names[:8])
            raise ValueError(
                f"tensor_plan: got {pattern!r}, and no layer is called so; expected names such as "
                f"{few} (* for one part)"
            )
    plan = {
        name: STYLES[style]() if isinstance(style, str) and style in STYLES else style
        for name, style in given.items()
    }
    for name, style in plan.items():
        if not isinstance(style, ParallelStyle):
            raise ValueError(
                f"tensor_plan: got {style!r} for {name}; expected a style of "
                f"torch.distributed.tensor.parallel, or one of {', '.join(STYLES)}"
            )
    return plan


def not_split(model: nn.Module, plan: TensorPlan, ways: int) -> str:
    """Why its layers do not go into so many equal parts, in words; empty: they do."""
    layers = split_layers(model, plan)
    for name, layer in layers.items():
        if uneven := [size for size in _split_sizes(layer) if size % ways]:
            return f"layer {name} has a side of {uneven[0]}, which is not divisible by {ways}"
    return "" if layers else "no layer can be split"


def _split_sizes(layer: nn.Module) -> tuple[int, ...]:
    if isinstance(layer, nn.Linear):
        return layer.in_features, layer.out_features
    if isinstance(layer, nn.Embedding):
        return layer.num_embeddings, layer.embedding_dim
    return ()
