"""How fast traces are replayed: against the original Sia simulator, by policy, and as traces grow.

.venv/bin/python bench/simulator.py [--quick] [--policies P,P,...] [--jobs N]
                                    [--data ../shared/data] [--json FILE]

With --policies or --jobs it shows the table by policy alone.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from _replay import BUDGET, CASES
from _table import Measured, show, write
from boa.model.policies import POLICIES

HERE = Path(__file__).resolve().parent
ORIGINAL_S = 1100.0
"""What the original Sia simulator took for newTrace under Sia, on a machine like this."""


def main() -> None:
    options = _arguments()
    console = Console(width=150 if not sys.stdout.isatty() else None)
    status = Console(stderr=True)
    tables = []
    quick_look = options.policies or options.jobs
    for make in (by_policy,) if quick_look else (replays, by_policy, growth):
        table = make(options, status)
        show(table, console)
        tables.append(table)
        write(options.json, tables)
    console.print(f"written to {options.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="no autoscaled rivals, 100,000 jobs")
    parser.add_argument("--policies", help="only these, by name; BOA is always among them")
    parser.add_argument("--jobs", type=int, default=0, help="only the first so many of newTrace")
    parser.add_argument("--data", default="../shared/data", help="the public traces and profiles")
    parser.add_argument("--json", type=Path, default=HERE / "out" / "simulator.json")
    return parser.parse_args()


def replays(options: argparse.Namespace, status: Console) -> Measured:
    table = Measured(
        "newTrace workload-1 (960 jobs), reading included, one core",
        note=f"targets: sia at least 20 times faster than the original's {ORIGINAL_S:,.0f} s, "
        "boa under 5 s",
    )
    for policy in CASES:
        if options.quick and policy.endswith("autoscale"):
            continue
        status.print(f"{policy} ...")
        found = _worker("newtrace", options.data, policy)
        table.add(
            policy=policy,
            seconds=found["seconds"],
            jobs_per_s=found["jobs"] / found["seconds"],
            times_the_original=ORIGINAL_S / found["seconds"] if policy == "sia" else None,
            average_jct_s=found["average_jct_s"],
            average_gpus=found["average_gpus"],
        )
    return table


def by_policy(options: argparse.Namespace, status: Console) -> Measured:
    """Every policy of the registry, on T4s, told to be about as large as BOA."""
    table = Measured(
        f"newTrace workload-1 ({options.jobs or 960} jobs) by policy, one core",
        note=f"told: budget {BUDGET:g}, target 0.5, {BUDGET:g} GPUs, width 4, or the middle of "
        "the values of its own knob",
    )
    wanted = options.policies.split(",") if options.policies else list(POLICIES)
    boa_s = None
    for name in ["boa", *(name for name in wanted if name != "boa")]:
        if options.quick and name.endswith("autoscale"):
            continue
        status.print(f"{name} ...")
        try:
            found = _worker("policy", options.data, name, str(options.jobs))
        except subprocess.CalledProcessError as problem:
            table.add(policy=name, told=problem.stderr.strip().splitlines()[-1][:60])
            continue
        boa_s = boa_s or found["cpu_s"]
        table.add(
            policy=name,
            told=found["told"],
            seconds=found["seconds"],
            cpu_s=found["cpu_s"],
            times_boa=found["cpu_s"] / boa_s,
            average_jct_s=found["average_jct_s"],
            average_gpus=found["average_gpus"],
        )
    return table


def growth(options: argparse.Namespace, status: Console) -> Measured:
    table = Measured(
        "synthetic jobs under BOA, streamed",
        note="target: 1,000,000 jobs within 600 s, memory that does not grow with the jobs "
        "but for 8 bytes each (their JCTs)",
    )
    for jobs in (1_000, 10_000, 100_000) if options.quick else (1_000, 10_000, 100_000, 1_000_000):
        status.print(f"{jobs:,} jobs ...")
        found = _worker("stream", options.data, str(jobs))
        table.add(
            jobs=jobs,
            seconds=found["seconds"],
            us_per_job=found["seconds"] / jobs * 1e6,
            peak_mb=found["peak_mb"],
            average_jct_s=found["average_jct_s"],
            planned_jct_s=found["planned_jct_s"],
            average_gpus=found["average_gpus"],
        )
    return table


def _worker(*arguments: str) -> dict[str, Any]:
    one_core = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(HERE / "_replay.py"), *arguments],
        env={**os.environ, **one_core},
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    main()
