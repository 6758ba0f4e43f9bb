"""Which layout comes next, and why: what is measured counts, and guesses until it is. All pure."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from boa.model.layouts import Trial
from boa.train.torch.layout.layouts import Layout, layouts_for
from boa.train.torch.layout.needs import Sizes, fixed_bytes, most_samples, seen

USUAL = {"ddp": 1.0, "fsdp-keep": 1.03, "fsdp": 1.12}
"""How much longer a step takes than with DDP, where nothing was measured: guesses, by how often
weights travel. They only decide what is tried first."""
SPLIT = 1.1
"""The same for every doubling of the GPUs that split layers,"""
RECOMPUTE = 1.33
"""for one more forward in every step,"""
HALVED = 1.05
"""and for every halving of what a GPU takes in one pass."""
CURIOUS = 1.1
"""An untried layout is worth a run if by these guesses it takes no more than so many times as long
as the best that was measured,"""
MOST_TRIED = 3
"""and as long as no more than so many were tried on this placement."""
GB = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a job runs now."""

    gpu: str
    world: int
    nodes: int
    local_world: int
    memory: int
    """Bytes of one GPU; 0: nobody knows, and everything fits."""


@dataclass(frozen=True, slots=True)
class Choice:
    layout: Layout
    local_batch: int
    """The most samples that a GPU, or group that splits layers, takes in one pass."""
    why: str


@dataclass(frozen=True, slots=True)
class _Option:
    layout: Layout
    local_batch: int
    share: int
    guess: float
    """How long a step takes, of no unit."""
    measured: Trial | None


def choose(
    place: Place,
    sizes: Sizes,
    trials: Sequence[Trial],
    *,
    batch: int,
    most_local: int,
    can_split: bool,
) -> Choice:
    """`batch`: samples of a step; `most_local`: of one pass on one GPU, by the script."""
    known = [trial for trial in trials if trial.gpu == place.gpu]
    here = [t for t in known if (t.width, t.nodes) == (place.world, place.nodes)]
    layouts = list(layouts_for(place.world, place.local_world, can_split=can_split))
    broken = {trial.layout for trial in trials if trial.broken}
    layouts = [layout for layout in layouts if layout.name not in broken] or layouts
    options = list(_options(layouts, place, sizes, known, here, batch, most_local))
    if not options:
        return _least(layouts, place, sizes)
    timed = [option for option in options if option.measured is not None]
    first = min(options, key=lambda option: option.guess)
    if not timed:
        return Choice(first.layout, first.local_batch, _fits(first, place, sizes))
    best = max(timed, key=lambda option: option.measured.samples_per_s if option.measured else 0.0)
    tried = len({trial.layout for trial in here})
    new = min(
        (option for option in options if option.measured is None),
        key=lambda option: option.guess,
        default=None,
    )
    if new is not None and tried < MOST_TRIED and new.guess <= CURIOUS * best.guess:
        return Choice(new.layout, new.local_batch, f"to be measured beside {best.layout.name}")
    assert best.measured is not None
    why = f"the fastest of {tried} tried here: {best.measured.samples_per_s:.3g} samples/s"
    return Choice(best.layout, best.local_batch, why)


def _options(
    layouts: Sequence[Layout],
    place: Place,
    sizes: Sizes,
    known: Sequence[Trial],
    here: Sequence[Trial],
    batch: int,
    most_local: int,
) -> Iterable[_Option]:
    """Layouts that fit, each with the largest pass that it fits with."""
    activations = seen(known, sizes, place.memory)
    for layout in layouts:
        groups = layout.data_ranks(place.world)
        if groups > batch:
            continue  # some would have no sample
        share = min(-(-batch // groups), most_local)
        room = math.inf
        if place.memory:
            room = most_samples(sizes, layout, place.world, place.memory, activations)
        room = min(room, _below_failures(layout, place, known))
        local = _halved(share, room)
        if local < 1:
            continue
        worked = [t for t in here if t.layout == layout.name and t.step_s and not t.out_of_memory]
        measured = max(worked, key=lambda trial: trial.samples_per_s, default=None)
        yield _Option(layout, local, share, _guess(layout, share / local), measured)


def _halved(share: int, room: float) -> int:
    """The share, or a half, a quarter … of it, that there is room for; 0: not even for one."""
    local = share
    while local > room and local > 0:
        local //= 2
    return local


def _below_failures(layout: Layout, place: Place, known: Iterable[Trial]) -> float:
    """Fewer samples than this layout ran out of memory with where it had as much room or more: cut
    over more GPUs a model leaves more, copied it does not."""
    failed = [
        trial.local_batch
        for trial in known
        if trial.out_of_memory
        and trial.layout == layout.name
        and (trial.width >= place.world or layout.shards == "ddp")
    ]
    return min(failed) / 2 if failed else math.inf


def _guess(layout: Layout, halvings: float) -> float:
    split: float = SPLIT ** math.log2(layout.tensor)
    again = RECOMPUTE if layout.recompute else 1.0
    smaller: float = HALVED ** math.log2(max(halvings, 1.0))
    return USUAL[layout.shards] * split * again * smaller


def _fits(option: _Option, place: Place, sizes: Sizes) -> str:
    words = "the usual one: how much memory there is, nobody says"
    if place.memory:
        needs = fixed_bytes(sizes, option.layout, place.world) / GB
        words = f"{needs:.3g} of {place.memory / GB:.3g} GB without activations"
    if option.local_batch < option.share:
        words += f", {option.local_batch} samples at a time"
    return words


def _least(layouts: Sequence[Layout], place: Place, sizes: Sizes) -> Choice:
    """Nothing fits by what is known; what needs least is tried all the same: it says why it fails,
    or goes well after all."""
    least = min(
        layouts,
        key=lambda layout: (fixed_bytes(sizes, layout, place.world), not layout.recompute),
    )
    needs = fixed_bytes(sizes, least, place.world) / GB
    why = f"needs least: {needs:.3g} of {place.memory / GB:.3g} GB; more GPUs would take less each"
    return Choice(least, 1, why)
