"""What Ray's autoscaler alone rents for a stream of jobs, and what BOA does with the same money.

The same seeded stream, one arm after the other, each on a new Ray cluster of this machine with the
real autoscaler (v2), Ray's fake provider, the same launch delay and idle timeout. Ray alone: every
job is a placement group of a width that its user fixed (bench/_ray_alone.py). BOA: `boa serve`
with engine and cloud `ray`, and as a budget what Ray's jobs took (--budget used) or all that was
rented for them (--budget rented). Rented is what the provider wrote down, in all arms.

.venv/bin/python bench/ray_autoscaler.py [--quick] [--widths 1,2,4,care] [--boa 2,4] [--budget used]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from _planned import until_planned
from _ray_stream import GPU, WIDTHS, Ran, Stream, careful, row, stream
from _rays import Kind, Launched, Rays, autoscaled_cluster
from _table import Cell, Measured, show, write
from boa.catalogue.offers import gpu_types
from boa.client.spawn import OwnService
from boa.model.job import JobSpec

HERE = Path(__file__).resolve().parent
MOST_NODES = 10
IDLE_S, LAUNCH_S = 300.0, 120.0
"""Of job time: Ray's default, and what a machine takes to boot before it joins."""
CARE = "care"
"""Every class as wide as a careful user would choose."""
PATIENCE_S = 900.0
KIND = gpu_types([GPU])[GPU]
Say = Callable[[str], None]


class Arms:
    def __init__(self, jobs: Stream, folder: Path, speed: float) -> None:
        self.stream, self.folder, self.speed = jobs, folder, speed

    def cluster(self) -> Any:
        kinds = {GPU: Kind(gpus=KIND.gpus_per_node, max=MOST_NODES)}
        delay = LAUNCH_S / self.speed
        return autoscaled_cluster(kinds, idle_s=IDLE_S / self.speed, launch_delay_s=delay)

    def alone(self, width: Callable[[JobSpec], int]) -> dict[str, Cell]:
        """Ray alone, every job as wide as its user says."""
        jobs = [
            {"at_s": at / self.speed, "name": s.name, "run": s.run, "width": width(s)}
            for at, s in self.stream.jobs
        ]
        with self.cluster() as rays:
            given = {"address": rays.address, "gpu": GPU, "speed": self.speed, "jobs": jobs}
            path = self.folder / "alone.json"
            path.write_text(json.dumps(given))
            command = [sys.executable, str(HERE / "_ray_alone.py"), str(path)]
            done = subprocess.run(
                command, stdout=subprocess.PIPE, text=True, check=True, timeout=PATIENCE_S
            )
            lines = done.stdout.splitlines()  # among them what Ray says of its nodes
            ran = [Ran(**json.loads(line)) for line in lines if line.startswith("{")]
            return self.row(_all_gone(rays), ran)

    def boa(self, budget: float) -> dict[str, Cell]:
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        with self.cluster() as rays:
            service = OwnService(folder, self.config(rays.address, budget))
            with service, service.client() as client:
                until_planned(client)
                began = time.monotonic()
                for at, spec in self.stream.jobs:
                    time.sleep(max(0.0, began + at / self.speed - time.monotonic()))
                    client.submit(spec)
                while client.jobs(limit=1):
                    time.sleep(0.5)
                    if time.monotonic() - began > PATIENCE_S:
                        raise SystemExit(f"not over after {PATIENCE_S:.0f} s: {client.jobs()}")
                ended = client.jobs(all=True)
                nodes = _all_gone(rays)
        bad = [job for job in ended if job["state"] != "succeeded"]
        assert not bad, bad
        found = self.row(nodes, [self._ran(job) for job in ended])
        return {**found, "lost_starts": sum(job["restarts"] for job in ended)}

    def _ran(self, job: Any) -> Ran:
        """The service counts in job time; dollars are GPU-hours times the price."""
        return Ran(
            submitted_at=job["submitted_at"] / self.speed,
            ended_at=job["ended_at"] / self.speed,
            gpu_s=job["cost_usd"] / KIND.price * 3600 / self.speed,
            starts=1 + job["rescalings"] + job["restarts"],
        )

    def row(self, nodes: Sequence[Launched], ran: Sequence[Ran]) -> dict[str, Cell]:
        return row(nodes, ran, speed=self.speed, gpus=KIND.gpus_per_node, price=KIND.price)

    def config(self, address: str, budget: float) -> dict[str, Any]:
        """It is told the classes' speeds and how often they come, as far as a user could know."""
        return {
            "engine": "ray",
            "cloud": "ray",
            "ray": {"address": address, "nodes": "autoscaler"},
            "budget_per_hour": budget,
            "speed": self.speed,
            "gpu_types": {
                GPU: {
                    "price": KIND.price,
                    "gpus_per_node": KIND.gpus_per_node,
                    "max_nodes": MOST_NODES,
                }
            },
            "keep_warm_s": 0,  # Ray's idle timeout keeps nodes warm
            "pacing_h": 8760,  # an hour is too short to steer by what was spent
            "classes": {
                name: {
                    "profile": str(self.stream.files[name]),
                    "arrivals_per_hour": rate,
                    "arrivals_weight_h": 100,
                    "measured_weight": 100,
                }
                for name, rate in self.stream.per_hour().items()
            },
        }


def _all_gone(rays: Rays) -> Sequence[Launched]:
    """When the last node has been idle for long enough."""
    until = time.monotonic() + PATIENCE_S
    while any(node.terminated_at is None for node in rays.diary()):
        if time.monotonic() > until:
            raise SystemExit(f"nodes that nobody takes away: {rays.diary()}")
        time.sleep(0.2)
    return rays.diary()


def measure(
    arms: Arms, table: Measured, options: argparse.Namespace, say: Say, keep: Callable[[], None]
) -> None:
    """Ray alone at every width; after some, BOA with that money.

    What idles while it boots or waits comes on top of a plan, which knows of it only after hours:
    with a budget of all that was rented, BOA rents more than Ray alone did.
    """
    hours = arms.stream.span_s / 3600
    for width in options.widths:
        say(f"Ray alone, {width} GPUs ...")
        found = arms.alone(_chooser(arms.stream, width))
        budget = float(found[f"gpu_h_{options.budget}"] or 0) * KIND.price / hours
        _add(table, found, who="Ray alone", width=width, budget=None)
        say(f"  {found}")
        keep()
        if width not in options.boa:
            continue
        say(f"BOA, ${budget:.2f}/h ...")
        found = arms.boa(budget)
        _add(table, found, who="BOA", width="decides", budget=round(budget, 2))
        say(f"  {found}")
        keep()


def _add(table: Measured, found: dict[str, Cell], **arm: Cell) -> None:
    load = round(os.getloadavg()[1], 1)
    table.add(**arm, **found, load_5_min=load)


def _chooser(jobs: Stream, width: str) -> Callable[[JobSpec], int]:
    if width == CARE:
        return lambda spec: careful(jobs.profiles[spec.job_class])
    return lambda spec: int(width)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="six jobs, 2 GPUs each")
    parser.add_argument("--widths", type=_listed, default=[*map(str, WIDTHS), CARE])
    parser.add_argument("--boa", type=_listed, default=["2", "4"], help="whose money BOA gets")
    parser.add_argument("--budget", choices=("used", "rented"), default="used", help="how much")
    parser.add_argument("--jobs", type=int, default=15)
    parser.add_argument("--hours", type=float, default=1.0, help="within which they arrive")
    parser.add_argument("--speed", type=float, default=30.0, help="job seconds per second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="bench/out/ray_autoscaler.json")
    return parser.parse_args()


def _listed(text: str) -> list[str]:
    return text.split(",")


def main() -> None:
    options = _arguments()
    if options.quick:
        options.jobs, options.hours, options.widths = 6, 0.3, ["2"]
    jobs, hours = options.jobs, options.hours
    table = Measured(
        f"{jobs} jobs within {hours:g} h, {options.speed:g} times as fast as time",
        note=f"seed {options.seed}; budget: what was {options.budget}; nodes of "
        f"{KIND.gpus_per_node} {GPU} at ${KIND.price:g} per GPU-hour; rented: from launch to "
        "termination, as the provider wrote down",
    )
    out = options.out or (None if options.quick else HERE / "out" / "ray_autoscaler.json")

    def keep() -> None:
        if out is not None:
            write(out, [table])

    with tempfile.TemporaryDirectory(prefix="boa-ray-") as scratch:
        folder = Path(scratch)
        made = stream(jobs, hours * 3600, options.seed, folder / "profiles")
        say = Console(stderr=True).print
        measure(Arms(made, folder, options.speed), table, options, say, keep)
    console = Console(width=None if sys.stdout.isatty() else 200)
    show(table, console)
    if out is not None:
        console.print(f"written to {out}")


if __name__ == "__main__":
    main()
