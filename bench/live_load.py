"""How many jobs one service on this machine keeps up with: real replay processes, all at once.

Every job is a process with a supervisor of its own, reports every two seconds and changes its
width once. A decision is missed if a step of the loop takes longer than a second, or if jobs are
not started as often as their plan has it.

.venv/bin/python bench/live_load.py [--jobs 500] [--speed 10] [--json FILE]
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from _planned import until_planned
from _table import Measured, show, write
from boa.client import Client
from boa.client.spawn import OwnService
from boa.model.job import ENDED
from boa.model.profile import ClassProfile
from boa.sim.replay_jobs import replay_spec, write_profiles

HERE = Path(__file__).resolve().parent
PER_JOB = 0.6
"""Dollars: enough for a second GPU in the second epoch, not in the first."""
EPOCHS_S = (500.0, 1500.0)
"""Of the server's time, at the planned widths: long enough for all jobs to run side by side."""


def main() -> None:
    options = _arguments()
    console = Console(width=None if sys.stdout.isatty() else 150)
    status = Console(stderr=True)
    table = Measured(
        f"{options.jobs} replay jobs at once, {options.speed:g} times as fast as time",
        note="target: no late step, every job succeeds, as many starts as planned",
    )
    with tempfile.TemporaryDirectory(prefix="boa-load-") as scratch:
        table.add(**_run(Path(scratch), options, status))
    show(table, console)
    write(options.json, [table])
    console.print(f"written to {options.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--speed", type=float, default=10.0, help="server seconds per second")
    parser.add_argument("--json", type=Path, default=HERE / "out" / "live_load.json")
    return parser.parse_args()


def _profile() -> ClassProfile:
    """The first epoch does not scale and runs on one GPU; the second gains from a second one."""
    flat = np.array([0.0, 1.0, 1.02])
    steep = np.array([0.0, 1.0, 1.95])
    rates = np.stack([np.stack([flat, flat]), np.stack([steep, steep])])
    work = (EPOCHS_S[0], EPOCHS_S[1])
    return ClassProfile(name="load", work=work, rates={"T4": rates}, rescale_s=30.0)


def _run(folder: Path, options: argparse.Namespace, status: Console) -> dict[str, Any]:
    profile = _profile()
    files = write_profiles({"load": profile}, folder / "profiles")
    spec = replay_spec(profile, files["load"])
    config = {
        "budget_per_hour": PER_JOB * options.jobs,
        "speed": options.speed,
        "gpu_types": {"T4": {"price": 1.0, "gpus_per_node": 8}},
        "classes": {
            "load": {
                "profile": str(files["load"]),
                "arrivals_per_hour": options.jobs,
                "arrivals_weight_h": 1e6,
                "measured_weight": 1e6,
            }
        },
    }
    service = OwnService(folder, config)
    with service, service.client() as client:
        until_planned(client)
        began = time.monotonic()
        for _ in range(options.jobs):
            client.submit(spec)
        submitted_s = time.monotonic() - began
        status.print(f"{options.jobs} submitted in {submitted_s:.1f} s")
        peak, memory = _watch(client, service.pid, status)
        jobs = client.jobs(all=True)
        metrics = client.metrics()
        planned = client.plan()["plan"]["classes"][0]["rescalings"]
    waits = np.array([(j["started_at"] or np.inf) - j["submitted_at"] for j in jobs])
    waits /= options.speed
    return {
        "jobs": len(jobs),
        "succeeded": sum(j["state"] == "succeeded" for j in jobs),
        "most_at_once": peak,
        "submits_per_s": options.jobs / submitted_s,
        "start_p50_s": float(np.median(waits)),
        "start_p99_s": float(np.quantile(waits, 0.99)),
        "starts_planned": planned,
        "starts": 1 + sum(j["rescalings"] for j in jobs) / len(jobs),
        "steps": metrics["boa_steps_total"],
        "late_steps": metrics["boa_late_steps_total"],
        "slowest_step_s": metrics["boa_slowest_step_seconds"],
        "service_mb": memory,
    }


def _watch(client: Client, pid: int, status: Console) -> tuple[int, float]:
    peak, memory, said = 0, 0.0, 0.0
    while True:
        jobs = client.jobs()
        if not jobs:
            return peak, memory
        peak = max(peak, sum(job["state"] == "running" for job in jobs))
        memory = max(memory, _resident_mb(pid))
        if time.monotonic() - said > 5:
            said = time.monotonic()
            running = sum(job["state"] not in ENDED for job in jobs)
            status.print(f"{running} active, {peak} running at most, load {os.getloadavg()[0]:.0f}")
        time.sleep(1.0)


def _resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
