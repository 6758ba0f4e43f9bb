"""How much memory of a GPU a layout takes: what is known before it runs, and what was seen."""

from collections.abc import Iterable
from dataclasses import dataclass

from boa.model.layouts import Trial
from boa.train.torch.layout.layouts import Layout, layout_named

MOMENTS = 2
"""Values beside each parameter that the optimiser is taken to keep: AdamW's."""
ROOM = 0.92
"""Part of the memory that a layout may take by what was measured,"""
ROOM_UNSEEN = 0.7
"""and before anything was: the rest is for activations, which nobody knows yet."""
RECOMPUTED = 0.25
"""Part of activations that is left where blocks are recomputed, until it was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Bytes of a model."""

    weights: int
    trained: int
    """Bytes of weights that have gradients."""
    block: int
    """Bytes of the largest part that is gathered at a time."""
    split: float = 0.0
    """Part of the weights whose layers can be split."""


def fixed_bytes(sizes: Sizes, layout: Layout, world: int) -> float:
    """Weights, gradients and the optimiser's state on one GPU: all but activations."""
    held = sizes.split / layout.tensor + 1 - sizes.split
    weights, state = sizes.weights * held, sizes.trained * held * (1 + MOMENTS)
    if layout.shards == "ddp":
        return weights + state
    gathered = weights if layout.shards == "fsdp-keep" else 2 * sizes.block * held
    return (weights + state) / layout.data_ranks(world) + gathered


@dataclass(frozen=True, slots=True)
class Activations:
    """Bytes of activations for one sample on one GPU, with and without recomputing."""

    kept: float | None = None
    recomputed: float | None = None

    def of(self, layout: Layout) -> float | None:
        """None: unknown. Split layers have a part of their own; which one, only trials tell."""
        if layout.recompute:
            if self.recomputed is not None or self.kept is None:
                return self.recomputed
            return self.kept * RECOMPUTED
        return self.kept


def seen(trials: Iterable[Trial], sizes: Sizes, memory: int) -> Activations:
    """By what was held, or, where nothing went well, by what there was no room for."""
    held: dict[bool, list[float]] = {False: [], True: []}
    missed: dict[bool, list[float]] = {False: [], True: []}
    for trial in trials:
        try:
            layout = layout_named(trial.layout)
        except ValueError:  # of another version
            continue
        if not layout.runs_on(trial.width, max(trial.width // trial.nodes, 1)):
            continue  # nobody can have tried it
        rest = fixed_bytes(sizes, layout, trial.width)
        if trial.out_of_memory:
            missed[layout.recompute].append((memory - rest) / trial.local_batch)
        elif trial.peak_bytes:
            held[layout.recompute].append((trial.peak_bytes - rest) / trial.local_batch)
    kept, recomputed = (
        max([0.0, *(held[which] or missed[which])]) if held[which] or missed[which] else None
        for which in (False, True)
    )
    return Activations(kept, recomputed)


def most_samples(
    sizes: Sizes, layout: Layout, world: int, memory: int, known: Activations
) -> float:
    """Samples that a GPU has room for in one pass; less than 1: it cannot run so. Where nobody
    knows of activations, any number, if enough is left for them."""
    rest, each = fixed_bytes(sizes, layout, world), known.of(layout)
    if each is None:
        return float("inf") if rest <= ROOM_UNSEEN * memory else 0.0
    left = ROOM * memory - rest
    if each <= 0:
        return float("inf") if left > 0 else 0.0
    return left / each
