"""One measurement in a process of its own: `first FILE BUDGET` or `cell C E T K`. Prints JSON."""

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boa
from boa.solver.lagrangian import cheapest
from boa.solver.objective import Rules
from boa.solver.pricing import Pricing


def first(path: str, budget: str) -> dict[str, Any]:
    """The very first plan of a process, after imports and loading."""
    workload = boa.load_workload(path)
    began = time.perf_counter()
    boa.plan(workload, float(budget))
    return {"seconds": time.perf_counter() - began}


def cell(classes: str, epochs: str, types: str, widths: str) -> dict[str, Any]:
    """Time and memory of a plan of a synthetic workload."""
    from _synthetic import synthetic

    workload = synthetic(int(classes), int(epochs), int(types), int(widths))
    before = _peak_gb()
    budget = 1.5 * cheapest(Pricing.of(workload, Rules())).spend
    times: list[float] = []
    work: list[float] = []
    while not times or (sum(times) < 2.0 and len(times) < 5):
        began, busy = time.perf_counter(), time.process_time()
        found = boa.plan(workload, budget)
        times.append(time.perf_counter() - began)
        work.append(time.process_time() - busy)
    return {
        "seconds": min(times),
        "cpu_seconds": min(work),
        "workload_gb": before,
        "peak_gb": _peak_gb(),
        "gap": found.gap,
    }


def _peak_gb() -> float:
    """The largest resident set of this program. Linux's ru_maxrss includes the parent's."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(float(x.split()[1]) for x in lines if x.startswith("VmHWM:")) * 1024 / 1e9
    except (OSError, StopIteration):
        unit = 1.0 if sys.platform == "darwin" else 1024.0
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


MEASUREMENTS: dict[str, Callable[..., dict[str, Any]]] = {"first": first, "cell": cell}

if __name__ == "__main__":
    print(json.dumps(MEASUREMENTS[sys.argv[1]](*sys.argv[2:])))
