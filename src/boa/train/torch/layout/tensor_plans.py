"""How a model says that its layers can be split: a plan of torch's, or Hugging Face's.

The first is what `torch.distributed.tensor.parallel.parallelize_module` takes: styles by names of
layers, with `*` for any one part of a name. The second, `tp_plan` of models of transformers, has
words in the place of styles.
"""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import TypeAlias

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
    """None: it says nothing of it, or something that is unknown here."""
    if given is not None:
        return given
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


def can_split(model: nn.Module, plan: TensorPlan, ways: int) -> bool:
    """Whether the layers are of sizes that go into so many equal parts."""
    layers = split_layers(model, plan)
    sizes = [size for layer in layers.values() for size in _split_sizes(layer)]
    return bool(sizes) and all(size % ways == 0 for size in sizes)


def _split_sizes(layer: nn.Module) -> tuple[int, ...]:
    if isinstance(layer, nn.Linear):
        return layer.in_features, layer.out_features
    if isinstance(layer, nn.Embedding):
        return layer.num_embeddings, layer.embedding_dim
    return ()
