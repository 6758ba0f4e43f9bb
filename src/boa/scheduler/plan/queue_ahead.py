"""The jobs that a new one would wait for, and until when. Pure.

GPUs of a type are taken for one pool: jobs that run give theirs back when they are expected to end,
and those that wait get theirs in turn. A market may well decide otherwise, and shrink some to let
others in: so this is how long it takes if nobody is moved.
"""

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from boa.units import GpuName, Seconds, UsdPerHour

SHOWN = 10
"""Jobs that are named."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """A job that is there already."""

    job: str
    gpu: GpuName
    width: int
    left_s: Seconds | None
    """Seconds that it takes yet; None: nobody knows."""
    runs: bool
    """Whether it holds its GPUs, or waits for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    waiting: int
    """Jobs that wait for GPUs of the same type."""
    gpus: int
    """GPUs that they wait for."""
    jobs: tuple[str, ...] = field(default=())
    """The first of them, by id."""
    wait_s: Seconds | None
    """Seconds until there are GPUs for a new job; None: nobody knows."""
    boot_s: Seconds = 0.0
    """Seconds of it that a new node takes to get ready."""


def most_gpus(
    per_node: int, node_price: UsdPerHour, max_nodes: int | None, max_spend: UsdPerHour | None
) -> float:
    """GPUs of a type that there can be at once; infinite where nothing bounds them."""
    nodes = math.inf if max_nodes is None else float(max_nodes)
    if max_spend is not None and node_price > 0:
        nodes = min(nodes, math.floor(max_spend / node_price + 1e-9))
    return nodes * per_node


def queue_for(
    gpu: GpuName,
    width: int,
    jobs: Iterable[Ahead],
    *,
    most: float,
    free: int,
    boot_s: Seconds,
) -> Queue:
    """`most`: GPUs of the type that there can be; `free`: those that are there and that nobody
    holds; `boot_s`: seconds that a new node takes."""
    here = [job for job in jobs if job.gpu == gpu]
    waiting = [job for job in here if not job.runs]
    wait_s = _turn(width, [job for job in here if job.runs], waiting, most)
    asked = sum(job.width for job in waiting)
    boots = wait_s == 0 and free - asked < width
    return Queue(
        waiting=len(waiting),
        gpus=asked,
        jobs=tuple(job.job for job in waiting[:SHOWN]),
        wait_s=None if wait_s is None else wait_s + (boot_s if boots else 0.0),
        boot_s=boot_s if boots else 0.0,
    )


def _turn(
    width: int, running: Sequence[Ahead], waiting: Sequence[Ahead], most: float
) -> Seconds | None:
    """When the last in the row gets its GPUs."""
    free = most - sum(job.width for job in running)
    ends = [(_end(job, 0.0), job.width) for job in running]
    heapq.heapify(ends)
    now = 0.0
    for job in (*waiting, None):
        wanted = width if job is None else job.width
        while free < wanted:
            if not ends or math.isinf(ends[0][0]):
                return None
            end, given_back = heapq.heappop(ends)
            now, free = max(now, end), free + given_back
        if job is not None:
            free -= wanted
            heapq.heappush(ends, (_end(job, now), wanted))
    return now


def _end(job: Ahead, began: Seconds) -> Seconds:
    return math.inf if job.left_s is None else began + job.left_s


def free_gpus(
    gpu: GpuName, nodes: Iterable[tuple[GpuName, int]], held: Mapping[GpuName, int]
) -> int:
    """GPUs of nodes that are ready and that no job holds. `nodes`: their type and GPUs."""
    return max(sum(count for name, count in nodes if name == gpu) - held.get(gpu, 0), 0)
