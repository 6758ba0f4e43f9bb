"""How fast and how good the solvers are: ratios within one run, on one machine.

.venv/bin/python bench/solver.py [--quick] [--json FILE]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import boa
from _synthetic import NEWTRACE_EPOCHS, cells, synthetic
from _table import Measured, show, write
from boa.errors import BoaError
from boa.model.workload import Workload
from boa.solver.frontier import Frontier

HERE = Path(__file__).resolve().parent
EXAMPLES = {
    name: HERE.parent / "examples" / f"{name}.yaml" for name in ("newtrace-t4", "newtrace-hetero")
}
HEADLINE = 1.5
"""The budget of the solver table, over the cheapest."""
FACTORS = np.geomspace(1.02, 3.0, 10).tolist()
SEEDS = range(5)
GROWTH = {"classes": (5, 50, 500, 5000), "types": (1, 3, 10), "widths": (64, 512)}
GROWTH_EPOCHS = 10
BYTES_PER_CELL = 20.0
"""Peak memory, as measured."""
MEMORY_GB = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2e9
"""Half of the memory of this machine; larger cells are not run."""


def main() -> None:
    options = _arguments()
    console = Console(width=150 if not sys.stdout.isatty() else None)
    status = Console(stderr=True)
    tables = []
    for table in _tables(options, status):
        show(table, console)
        tables.append(table)
        write(options.json, tables)
    console.print(f"written to {options.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller growth, 10 s for milp")
    parser.add_argument("--json", type=Path, default=HERE / "out" / "solver.json")
    parser.add_argument("--milp-limit", type=float, default=None, help="seconds (default 60 or 10)")
    parser.add_argument(
        "--only", choices=("solvers", "growth", "losses"), help="one part instead of all"
    )
    return parser.parse_args()


def _tables(options: argparse.Namespace, status: Console) -> Iterator[Measured]:
    limit = options.milp_limit or (10.0 if options.quick else 60.0)
    workloads = dict(_examples())
    if options.only in (None, "solvers"):
        for name, workload in workloads.items():
            status.print(f"solvers on {name} ...")
            yield solvers(name, workload, limit)
            yield whole(name, workload)
    if options.only in (None, "losses"):
        for name, workload in workloads.items():
            status.print(f"Algorithm 1 on {name} ...")
            yield algorithm_1(name, workload)
        status.print("routing ...")
        yield routing(*list(workloads.items())[-1])
    if options.only in (None, "growth"):
        yield growth(options.quick, status)
        status.print("5,000 classes × 50 epochs ...")
        yield large()


def _examples() -> Iterator[tuple[str, Workload]]:
    """The shipped workloads; where one is missing, a synthetic one of the same shape."""
    for name, path in EXAMPLES.items():
        if path.exists():
            yield name, boa.load_workload(path)
        else:
            types = 1 if name.endswith("t4") else 3
            yield f"{name} (synthetic)", synthetic(5, NEWTRACE_EPOCHS, types, 64)


def seconds(run: Callable[[], Any], repeats: int) -> tuple[list[float], Any]:
    times, result = [], None
    for _ in range(repeats):
        began = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - began)
    return times, result


def solvers(name: str, workload: Workload, limit: float) -> Measured:
    """Exact, deterministic, Algorithm 1 and the monolithic program at one budget."""
    cheapest = boa.frontier(workload).cheapest
    budget = HEADLINE * cheapest
    table = Measured(
        f"{name}: {budget:.1f} USD/h, {HEADLINE} × the cheapest",
        note=f"milp: HiGHS, 5 % tolerance, {limit:g} s; gap: to the proven lower bound",
    )
    reference = None
    for solver, repeats, how in _runs(limit):
        began = time.perf_counter()
        try:
            times, found = seconds(lambda how=how: boa.plan(workload, budget, **how), repeats)  # type: ignore[misc]
        except BoaError as failed:
            took = time.perf_counter() - began
            ratio = None if reference is None else took / reference
            table.add(solver=f"{solver}: {failed}"[:60], median_s=took, times_exact=ratio)
            continue
        median = statistics.median(times)
        reference = reference or median
        table.add(
            solver=solver,
            median_s=median,
            min_s=min(times),
            times_exact=median / reference,
            objective_s=found.objective,
            gap=found.gap,
            proven="yes" if found.proven else "no",
            spend_per_hour=found.spend,
        )
    return table


def _runs(limit: float) -> list[tuple[str, int, dict[str, Any]]]:
    """(name, repeats, options)."""
    milp = {"solver": "milp", "deterministic": True, "gap": 0.05, "time_limit_s": limit}
    return [
        ("exact", 20, {}),
        ("exact --deterministic", 20, {"deterministic": True}),
        ("glue (Algorithm 1)", 5, {"solver": "glue"}),
        ("milp --deterministic", 1, milp),
    ]


def whole(name: str, workload: Workload) -> Measured:
    """What a person waits for: a fresh process, the whole frontier, the shell."""
    times, frontier = seconds(lambda: boa.frontier(workload), 5)
    budget = HEADLINE * frontier.cheapest
    table = Measured(f"{name}: exact, end to end")
    table.add(
        what=f"whole frontier, {len(frontier.budgets)} breakpoints",
        median_s=statistics.median(times),
        min_s=min(times),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "workload.yaml"
        path.write_text(boa.dump_workload(workload))
        first = [_worker("first", str(path), str(budget))["seconds"] for _ in range(5)]
        command = [str(Path(sys.executable).with_name("boa")), "plan", str(path)]
        shell, _ = seconds(lambda: _run([*command, "--budget", str(budget)]), 5)
    table.add(what="first plan of a process", median_s=statistics.median(first), min_s=min(first))
    table.add(what="boa plan, from the shell", median_s=statistics.median(shell), min_s=min(shell))
    return table


def algorithm_1(name: str, workload: Workload) -> Measured:
    """How far Algorithm 1 is above the optimum."""
    optimum = boa.frontier(workload)
    table = Measured(
        f"{name}: Algorithm 1 above the optimum", note=f"{len(SEEDS)} seeds of 50 samples each"
    )
    for factor in FACTORS:
        budget = factor * optimum.cheapest
        above = []
        for seed in SEEDS:
            try:
                found = boa.plan(workload, budget, solver="glue", seed=seed)
            except BoaError:
                continue
            above.append(found.objective / optimum.at(budget).objective - 1)
        table.add(
            over_cheapest=factor,
            budget_per_hour=budget,
            optimum_s=optimum.at(budget).objective,
            best_above=min(above, default="no plan"),
            median_above=statistics.median(above) if above else "no plan",
            worst_above=max(above, default="no plan"),
            seeds_without_plan=len(SEEDS) - len(above),
        )
    return table


def routing(name: str, workload: Workload) -> Measured:
    """What routing at arrival loses: against per-epoch routing, and against migration."""
    free = boa.frontier(workload, rescaling=False)
    by_epoch = boa.frontier(workload, rescaling=False, routing="epoch")
    real = boa.frontier(workload)
    migrating = boa.frontier(workload, routing="migrate")
    table = Measured(
        f"{name}: loss of routing at arrival",
        note="class / epoch without rescaling (the paper: within 5 %); class / migrate with it",
    )
    for factor in FACTORS:
        table.add(
            over_cheapest=factor,
            **_loss("no_rescaling", free, by_epoch, factor),
            **_loss("rescaling", real, migrating, factor),
        )
    return table


def _loss(what: str, simple: Frontier, better: Frontier, factor: float) -> dict[str, float]:
    budget = factor * simple.cheapest
    loss = simple.at(budget).objective / better.at(budget).objective - 1
    return {f"{what}_per_hour": budget, f"{what}_loss": loss}


def growth(quick: bool, status: Console) -> Measured:
    """Time and memory of one plan, in a process each."""
    table = Measured(
        "growth: one plan() of a workload, at 1.5 × the cheapest",
        note=f"{GROWTH_EPOCHS} epochs per class; a third each Amdahl, power, measured curves; "
        "cell: class × epoch × type × width",
    )
    for classes in GROWTH["classes"]:
        for types in GROWTH["types"]:
            for widths in GROWTH["widths"]:
                size = cells(classes, GROWTH_EPOCHS, types, widths)
                needed = size * BYTES_PER_CELL / 1e9
                shape: dict[str, Any] = {"classes": classes, "types": types, "widths": widths}
                if quick and size > 20e6:
                    table.add(**shape, plan_s="not run (--quick)")
                elif needed > MEMORY_GB:
                    table.add(**shape, plan_s=f"not run (needs {needed:.0f} GB)")
                else:
                    status.print(f"growth {classes} × {types} × {widths} ...")
                    table.add(**shape, **_cell(classes, GROWTH_EPOCHS, types, widths))
    return table


def large() -> Measured:
    table = Measured(
        "5,000 classes × 50 epochs × 3 types × 64 widths on one core",
        note="target: 15 s and 4 GB",
    )
    table.add(**_cell(5000, 50, 3, 64))
    return table


def _cell(classes: int, epochs: int, types: int, widths: int) -> dict[str, Any]:
    found = _worker("cell", str(classes), str(epochs), str(types), str(widths))
    return {
        "plan_s": found["seconds"],
        "cpu_s": found["cpu_seconds"],
        "cpu_ns_per_cell": found["cpu_seconds"] / cells(classes, epochs, types, widths) * 1e9,
        "peak_gb": found["peak_gb"],
        "of_which_workload_gb": found["workload_gb"],
        "gap": found["gap"],
    }


def _worker(*arguments: str) -> dict[str, Any]:
    done = _run([sys.executable, str(HERE / "_worker.py"), *arguments])
    found: dict[str, Any] = json.loads(done)
    return found


def _run(command: list[str]) -> str:
    one_core = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return subprocess.run(
        command, env={**os.environ, **one_core}, check=True, capture_output=True, text=True
    ).stdout


if __name__ == "__main__":
    main()
