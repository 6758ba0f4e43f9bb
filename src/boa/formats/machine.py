"""This machine as a cloud of its own: what `boa serve` offers when no file says it."""

import os
import re
import subprocess
from collections.abc import Mapping

from boa.amounts import rate
from boa.model.workload import GpuType
from boa.units import GpuName

SLOT: GpuName = "slot"
"""Stand-in for a GPU on a machine without any: processes are counted, nothing is reserved."""
LEAST_SLOTS = 2
"""So that a job can be given more or less, on one core too."""
MANY_SLOTS = 8
"""From here on nodes have four of them, and two before: there is something to rent and give back.
"""


def machine() -> tuple[dict[GpuName, GpuType], dict[GpuName, int]]:
    """This machine as the one node that there is; without GPUs, a slot for every core."""
    names = _installed_gpus()
    if not names:
        return _slots(_cores())
    name = short_name(names[0])
    # Of a machine with several kinds only the first is used: a file can name them all.
    count = sum(short_name(other) == name for other in names)
    return {name: GpuType(name=name, gpus_per_node=count)}, {name: 1}


def _cores() -> int:
    """Cores that this process may use, where the system tells."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _slots(cores: int) -> tuple[dict[GpuName, GpuType], dict[GpuName, int]]:
    slots = max(cores, LEAST_SLOTS)
    per_node = 4 if slots >= MANY_SLOTS else 2
    return (
        {SLOT: GpuType(name=SLOT, price=1.0, gpus_per_node=per_node)},
        {SLOT: slots // per_node},
    )


def slot_words(
    gpu_types: Mapping[GpuName, GpuType], max_nodes: Mapping[GpuName, int]
) -> str | None:
    """A line on slots, where they are all that a service has."""
    if list(gpu_types) != [SLOT] or SLOT not in max_nodes:
        return None
    kind = gpu_types[SLOT]
    slots = kind.gpus_per_node * max_nodes[SLOT]
    each = ", one for a core" if slots == _cores() else ""
    return (
        f"no GPUs here: {slots} slots stand for them{each}. A slot runs one process of a "
        f"job and counts {rate(kind.price)} that is never paid; no core is reserved for it"
    )


def _installed_gpus() -> list[str]:
    command = ("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return []
    return [line.strip() for line in found.stdout.splitlines() if line.strip()]


def short_name(product: str) -> GpuName:
    """Short name of a GPU: `NVIDIA A100-SXM4-80GB` is an A100."""
    noise = r"NVIDIA|Tesla|GeForce|PCIe|SXM\d*|HBM\d*e?|NVL|\d+GB"
    words = [word for word in re.split(r"[\s-]+", product) if not re.fullmatch(noise, word)]
    return "".join(words) or product
