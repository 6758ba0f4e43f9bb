"""The layouts there are. All pure."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

Shards: TypeAlias = Literal["ddp", "fsdp-keep", "fsdp"]
"""ddp: every GPU has all of the model. fsdp-keep: its share, and all weights from their forward to
their backward. fsdp: its share, and all weights of one block at a time."""
_NAME = re.compile(r"(?:(ddp|fsdp-keep|fsdp)(?:\+|$))?(?:tp([1-9][0-9]*)(?:\+|$))?(recompute)?")


@dataclass(frozen=True, slots=True, order=True)
class Layout:
    shards: Shards = "ddp"
    tensor: int = 1
    """GPUs of one node that split every layer among them: they work on the same samples."""
    recompute: bool = False
    """Whether activations within a block are computed again for its backward, not kept."""

    @property
    def name(self) -> str:
        """As in `wrap(parallel=…)`: "ddp", "fsdp+tp4", "tp2+recompute"."""
        split = f"tp{self.tensor}" if self.tensor > 1 else ""
        shards = "" if split and self.shards == "ddp" else self.shards
        return "+".join(filter(None, (shards, split, "recompute" if self.recompute else "")))

    @property
    def cuts(self) -> bool:
        """Whether a GPU holds a part of the model only."""
        return self.shards != "ddp" or self.tensor > 1

    def data_ranks(self, world: int) -> int:
        """Ranks, or groups of them, with samples of their own."""
        return world // self.tensor

    def runs_on(self, world: int, local_world: int) -> bool:
        """Whether so many ranks, `local_world` of them to a node, can be laid out so."""
        if self.tensor > 1 and (world % self.tensor or local_world % self.tensor):
            return False
        alone = self.data_ranks(world) == 1
        return self.shards == "ddp" if alone else self.tensor == 1 or self.shards != "ddp"


def layout_named(name: str) -> Layout:
    """Raises ValueError."""
    found = _NAME.fullmatch(name)
    if found is None or not name or name.endswith("+") or found[2] == "1":
        raise ValueError(
            f"parallel: got {name!r}; expected auto, {', '.join(get_args(Shards))}, tp2, fsdp+tp2 "
            "or the like, each with or without +recompute"
        )
    shards: Shards = found[1] or "ddp"  # type: ignore[assignment]  # by the pattern
    layout = Layout(shards, int(found[2] or 1), found[3] is not None)
    if shards == "ddp" and layout.tensor > 1 and found[1]:
        raise ValueError(
            f"parallel: got {name!r}; expected fsdp+tp{layout.tensor}: layers that are split "
            "are not copied"
        )
    return layout


def fitting(layout: Layout, world: int, local_world: int) -> Layout:
    """The layout that comes nearest to this one on so many ranks: a job may have any number."""
    tensor = math.gcd(layout.tensor, local_world, world)
    found = replace(layout, tensor=tensor)
    if found.runs_on(world, local_world):
        return found
    return replace(found, shards="ddp" if found.data_ranks(world) == 1 else "fsdp")


def layouts_for(world: int, local_world: int, *, can_split: bool) -> Iterator[Layout]:
    """Layouts for so many ranks, those first that are usually fastest where they fit.

    `can_split`: whether the model says how its layers are.
    """
    tensors = [t for t in range(2, local_world + 1) if can_split and local_world % t == 0]
    plain = [
        Layout("ddp"),
        Layout("fsdp-keep"),
        Layout("fsdp"),
        *(Layout(shards, t) for t in tensors for shards in get_args(Shards)),
    ]
    for recompute in (False, True):
        for layout in plain:
            if layout.runs_on(world, local_world):
                yield replace(layout, recompute=recompute)
