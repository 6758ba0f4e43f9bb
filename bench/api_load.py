"""How much the service's API bears: submissions one by one and in batches, reports, streams, lists.

A real `boa serve` (local engine, SQLite) in a temporary folder; clients in a process of their own,
many at once. Few jobs run, since the point is the API: a handful of `sleep`s, whose own tokens the
reports carry. Service and clients share the machine, and its disk's fsync is part of every answer.

.venv/bin/python bench/api_load.py [--only PHASE ...] [--quick] [--json FILE]
"""

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from _api_clients import IDLE
from _table import Cell, Measured, show, write
from boa.client.spawn import OwnService

HERE = Path(__file__).resolve().parent
RUNNING = 32
"""Jobs that run, at most: as many GPUs as the limits on nodes let be rented."""
NODES, GPUS_PER_NODE = 4, 8
PATIENCE_S = 120.0
EVENTS, LIVE, LOGS = 0.6, 0.3, 0.1
"""Parts of the streams: events, what pages watch, logs that are followed."""


@dataclass(frozen=True)
class Sizes:
    clients: int
    singles: int
    batches: int
    batch: int
    reports: int
    stored: int
    streams: int
    seconds: float


WHOLE = Sizes(64, 2000, 8, 1000, 10_000, 10_000, 500, 20.0)
QUICK = Sizes(32, 300, 2, 200, 1000, 1000, 50, 5.0)


class Load:
    """A service, and clients that ask it."""

    def __init__(self, service: OwnService, token: str, sizes: Sizes) -> None:
        self.service, self.token, self.sizes = service, token, sizes
        self._clients = subprocess.Popen(
            [sys.executable, str(HERE / "_api_clients.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        assert self._clients.stdin is not None
        self._clients.stdin.close()
        self._clients.wait()

    def ask(self, name: str, **arguments: Any) -> dict[str, Any]:
        """What the clients saw, and how much processor time the service took for it."""
        assert self._clients.stdin is not None
        assert self._clients.stdout is not None
        busy = _busy_s(self.service.pid)
        whole = {"port": self.service.port, "token": self.token, **arguments}
        print(json.dumps([name, whole]), file=self._clients.stdin, flush=True)
        found: dict[str, Any] = json.loads(self._clients.stdout.readline())
        return {**found, "service_cpu_s": _busy_s(self.service.pid) - busy}


@contextmanager
def _load(sizes: Sizes) -> Iterator[Load]:
    config = {
        "budget_per_hour": 1.0 * NODES * GPUS_PER_NODE,
        "gpu_types": {
            "T4": {"price": 1.0, "gpus_per_node": GPUS_PER_NODE, "max_nodes": NODES},
        },
        "local": {"provision_s": 0.0, "release_s": 0.0},
    }
    token = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="boa-api-", ignore_cleanup_errors=True) as folder:
        service = OwnService(Path(folder), config, token)
        with service:
            load = Load(service, token, sizes)
            try:
                yield load
            finally:
                load.close()


def _busy_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


# Phases: each has a service of its own


def submissions(load: Load, table: Measured, classes: int) -> None:
    sizes, goal = load.sizes, "500 /s" if classes < 100 else "250 /s"
    load.ask("singles", clients=1, count=5, classes=5)
    first = load.ask("singles", clients=sizes.clients, count=sizes.singles, classes=classes)
    again = load.ask("singles", clients=sizes.clients, count=sizes.singles, classes=classes)
    _add(table, f"single, {sizes.clients} clients, {classes} classes, new", "", first)
    _add(table, f"single, {sizes.clients} clients, {classes} classes", goal, again)
    found = load.ask("batches", clients=1, count=sizes.batches, classes=classes, size=sizes.batch)
    _add(table, f"batches of {sizes.batch}, one client, {classes} classes", goal, found)


def reports(load: Load, table: Measured) -> None:
    tokens = _running(load, load.service.folder)
    count, clients = load.sizes.reports, load.sizes.clients
    found = load.ask("reports", clients=clients, count=count, tokens=tokens)
    _add(table, f"reports of {len(tokens)} running jobs, {clients} clients", "2,000 /s", found)


def stored(load: Load, table: Measured) -> None:
    """Lists, streams and rudeness, with many jobs in the store."""
    sizes = load.sizes
    tokens = _running(load, load.service.folder)
    _fill(load)
    found = load.ask("reports", clients=sizes.clients, count=sizes.reports, tokens=tokens)
    _add(table, f"reports, {sizes.stored} jobs stored", "2,000 /s", found)
    found = load.ask("singles", clients=sizes.clients, count=sizes.singles, classes=5)
    _add(table, f"single, {sizes.stored} jobs stored", "500 /s", found)
    found = load.ask("gets", clients=1, count=20, path="jobs?all=true&limit=100")
    _add(table, f"a list of 100 of {sizes.stored} jobs", "", found)
    found = load.ask("gets", clients=1, count=5, path="jobs?all=true&limit=1000")
    _add(table, f"a list of 1,000 of {sizes.stored} jobs", "", found)
    _watched(load, table, tokens)
    found = load.ask("aborted", at_once=100, seconds=sizes.seconds / 2)
    said = f"health, 100 requests at a time aborted ({found['aborted_per_s']:,.0f} /s)"
    _add(table, said, "100 ms", found)


def streams(load: Load, table: Measured) -> None:
    _watched(load, table, _running(load, load.service.folder))


def _watched(load: Load, table: Measured, tokens: list[tuple[str, str]]) -> None:
    sizes = load.sizes
    logs = round(LOGS * sizes.streams)
    live = round(LIVE * sizes.streams)
    paths = [
        ("events", "text/event-stream", sizes.streams - live - logs),
        ("live", "text/event-stream", live),
        (f"jobs/{tokens[0][0]}/logs?follow=true", "*/*", logs),
    ]
    found = load.ask("streams", paths=paths, seconds=sizes.seconds, submits_per_s=5, classes=5)
    what = f"health, {found['listening']} of {sizes.streams} streams, 5 submissions/s"
    _add(table, what, "100 ms", found)


def _running(load: Load, folder: Path) -> list[tuple[str, str]]:
    """Jobs that run and do nothing but tell us their tokens; each with its own."""
    told = folder / "tokens"
    told.mkdir()
    script = 'echo "$BOA_REPORT_TOKEN" > "$TOLD/$BOA_JOB_ID.new"; '
    script += f'mv "$TOLD/$BOA_JOB_ID.new" "$TOLD/$BOA_JOB_ID"; {IDLE}'
    with load.service.client() as client:
        for number in range(RUNNING):
            job_class, gpus = f"class-{number % 5}", {"min": 1, "max": 1}
            client.submit(
                {"class": job_class, "run": script, "gpus": gpus, "env": {"TOLD": str(told)}}
            )
    deadline, wanted = time.monotonic() + PATIENCE_S, RUNNING
    while len(list(told.glob("[0-9]"))) + len(list(told.glob("[0-9][0-9]"))) < wanted:
        if time.monotonic() > deadline:
            break
        time.sleep(0.2)
    found = [(file.name, file.read_text().strip()) for file in sorted(told.iterdir())]
    return [(name, token) for name, token in found if name.isdecimal()]


def _fill(load: Load) -> None:
    """The store, with jobs that wait."""
    size = 1000
    for _ in range(-(-load.sizes.stored // size)):
        found = load.ask("batches", clients=1, count=1, classes=5, size=size)
        if found["wrong"]:  # a service that takes no batches
            load.ask("singles", clients=load.sizes.clients, count=size, classes=5)


def _add(table: Measured, what: str, goal: str, found: dict[str, Any]) -> None:
    wrong = "; ".join(f"{count}× {said}" for said, count in found["wrong"].items())
    figures: dict[str, Cell] = {
        "what": what,
        "goal": goal,
        "per_s": round(found["per_s"], 1),
        "p50_ms": round(found["p50_ms"], 1),
        "p99_ms": round(found["p99_ms"], 1),
        "max_ms": round(found["max_ms"], 1),
        "service_cpu_s": round(found["service_cpu_s"], 2),
        "clients_cpu_s": round(found["clients_cpu_s"], 2),
        "wall_s": round(found["seconds"], 2),
    }
    if wrong:
        figures["wrong"] = wrong[:200]
    table.add(**figures)
    Console(stderr=True).print({key: value for key, value in figures.items() if value != ""})


PHASES: dict[str, Callable[[Load, Measured], None]] = {
    "few": lambda load, table: submissions(load, table, 5),
    "many": lambda load, table: submissions(load, table, 1000),
    "reports": reports,
    "streams": streams,
    "stored": stored,
}


def main() -> None:
    options = _arguments()
    console = Console(width=None if sys.stdout.isatty() else 170)
    table = Measured(
        "The API under load",
        note="goals on two cores that do nothing else; per s: of jobs, where they come in batches",
    )
    for name in options.only or PHASES:
        with _load(QUICK if options.quick else WHOLE) as load:
            PHASES[name](load, table)
            table.rows[-1]["service_mb"] = round(_resident_mb(load.service.pid))
    show(table, console)
    write(options.json, [table])
    console.print(f"written to {options.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(PHASES), help="these phases")
    parser.add_argument("--quick", action="store_true", help="a tenth of it")
    parser.add_argument("--json", type=Path, default=HERE / "out" / "api_load.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
