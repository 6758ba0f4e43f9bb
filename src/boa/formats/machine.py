"""This machine as a cloud of its own: what `boa serve` offers when no file says it."""

import re
import subprocess

from boa.model.workload import GpuType
from boa.units import GpuName

SLOT = GpuType(name="slot", price=1.0, gpus_per_node=4)
"""Stand-in for GPUs on a machine without any: jobs are counted, nothing is reserved."""
SLOT_NODES = 4


def machine() -> tuple[dict[GpuName, GpuType], dict[GpuName, int]]:
    """This machine as the one node that there is; without GPUs, a few nodes of slots."""
    names = _installed_gpus()
    if not names:
        return {SLOT.name: SLOT}, {SLOT.name: SLOT_NODES}
    name = short_name(names[0])
    # Of a machine with several kinds only the first is used: a file can name them all.
    count = sum(short_name(other) == name for other in names)
    return {name: GpuType(name=name, gpus_per_node=count)}, {name: 1}


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
