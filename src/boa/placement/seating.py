"""States that the market chose → GPUs on nodes that are ready. Pure.

Whoever keeps its width keeps its GPUs. The others go onto as few nodes as can be, the widest
first; one that finds no such room takes the next best that it can have, and one that would have to
wait whatever GPUs are left, on several nodes: no node is rented for it, since there are enough, and
it would wait until others end. GPUs that are then still free widen a neighbour, where that gains
anything.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from boa.model.cluster import Allocation, JobId, Node
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.placement.pool import Pool
from boa.units import GpuName


def seated(
    chosen: Mapping[JobId, tuple[GpuName, int]],
    same: Mapping[JobId, Allocation],
    options: "Offers",
    current: Mapping[JobId, Allocation],
    nodes: Sequence[Node],
    gpu_types: Mapping[GpuName, GpuType],
    taken: Iterable[Allocation] = (),
) -> dict[JobId, Allocation]:
    """A job left out waits. `same`: what those hold who keep their type and width. `taken`: GPUs
    that others have."""
    pools = {
        gpu: Pool(gpu, kind.gpus_per_node, [node.id for node in nodes if node.gpu == gpu])
        for gpu, kind in gpu_types.items()
    }
    placed: dict[JobId, Allocation] = {}
    others = list(taken)
    for gpu, pool in pools.items():
        if others:
            pool.occupy(given for given in others if given.gpu == gpu)
        placed.update(pool.pin(same if len(pools) == 1 else _on(gpu, same)))
    movers = sorted([job for job in chosen if job not in placed], key=lambda j: -chosen[j][1])
    for job in movers:
        found = _seat(job, chosen[job], options[job], current.get(job), pools)
        if found is not None:
            placed[job] = found
    for job in movers:  # GPUs enough, but no node has them: as the market sees it, it has its own
        if job not in placed and (found := _anywhere(chosen[job], pools)) is not None:
            placed[job] = found
    for pool in pools.values():
        if pool.gpus_free:
            _widen(pool, options, current, placed)
    return placed


def _on(gpu: GpuName, given: Mapping[JobId, Allocation]) -> dict[JobId, Allocation]:
    return {job: held for job, held in given.items() if held.gpu == gpu}


class Options:
    """Everything a job could be given, with what it gains by it: where it is, and elsewhere."""

    __slots__ = ("elsewhere", "here", "states")

    def __init__(
        self, states: Sequence[tuple[GpuName, int]], here: Floats, elsewhere: Floats
    ) -> None:
        self.states, self.here, self.elsewhere = states, here, elsewhere


class Offers(Protocol):
    """Options by job."""

    def __getitem__(self, job: JobId, /) -> Options: ...


def _seat(
    job: JobId,
    state: tuple[GpuName, int],
    options: Options,
    held: Allocation | None,
    pools: Mapping[GpuName, Pool],
) -> Allocation | None:
    found = pools[state[0]].take(state[1])
    if found is not None:
        return found
    for column in np.argsort(-options.elsewhere):
        stays = held is not None and options.states[column] == (held.gpu, held.width)
        gain = options.here[column] if stays else options.elsewhere[column]
        if gain <= 0:
            break
        gpu, width = options.states[column]
        if stays and held is not None and pools[gpu].fits(held):
            return pools[gpu].hold(held.nodes)
        found = pools[gpu].take(width)
        if found is not None:
            return found
    return None


def _anywhere(state: tuple[GpuName, int], pools: Mapping[GpuName, Pool]) -> Allocation | None:
    gpu, width = state
    return pools[gpu].take(width, spread=True)


def _widen(
    pool: Pool,
    options: Offers,
    current: Mapping[JobId, Allocation],
    placed: dict[JobId, Allocation],
) -> None:
    on: dict[int, list[JobId]] = {}
    partly = {node for node, free in pool.free.items() if 0 < free < pool.per_node}
    for job, given in placed.items() if partly else ():
        if given.nodes[0][0] in partly and len(given.nodes) == 1:
            on.setdefault(given.nodes[0][0], []).append(job)
    for node, jobs in on.items():
        while (free := pool.free[node]) > 0:
            best: tuple[float, JobId, int] | None = None
            for job in jobs:
                width = placed[job].width
                gained = _gain_of(options[job], placed[job], current.get(job))
                for column, (gpu, wider) in enumerate(options[job].states):
                    if gpu == pool.gpu and width < wider <= width + free:
                        more = (options[job].elsewhere[column] - gained) / (wider - width)
                        if more > 1e-9 and (best is None or more > best[0]):
                            best = (more, job, wider)
            if best is None:
                break
            _, job, wider = best
            pool.give(placed[job])
            placed[job] = pool.hold([(node, wider)])


def _gain_of(options: Options, given: Allocation, held: Allocation | None) -> float:
    column = options.states.index((given.gpu, given.width))
    return float((options.here if given == held else options.elsewhere)[column])
