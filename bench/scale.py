"""The service at 10,000 GPUs and 5,000 active jobs, and at an eighth, a quarter and a half of it.

Real are the control loop, profiler, planner (in its process), store (SQLite on disk) and REST
application; simulated are the clock, the cloud and the jobs' processes. First single steps and
requests are timed, at all sizes in turn. Then a stream of jobs comes and goes in virtual time, for
a day at every size and for a week at the largest, each in a process of its own, so that its memory
is its own.

.venv/bin/python bench/scale.py [--jobs 5000] [--days 7] [--quick] [--json FILE]
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from _table import Measured, show, write

HERE = Path(__file__).resolve().parent
PARTS = (8, 4, 2, 1)
"""The largest size divided by these."""
NOTE = "exponent e: figure ~ jobs^e, fitted over the sizes"


def main() -> None:
    options = _arguments()
    if options.work:
        from _scale_run import WORK

        name, arguments = options.work
        print(json.dumps(WORK[name](*json.loads(arguments))))
        return
    jobs, days = (options.jobs // 10, 0.25) if options.quick else (options.jobs, options.days)
    tables = list(_tables([jobs // part for part in PARTS], days, options))
    console = Console(width=None if sys.stdout.isatty() else 150)
    for table in tables:
        show(table, console)
    write(options.json, tables)
    console.print(f"written to {options.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=5000, help="active at once; GPUs: twice that")
    parser.add_argument("--days", type=float, default=7.0, help="of the stream, at full size")
    parser.add_argument("--turn", type=float, default=1800.0, help="virtual seconds between steps")
    parser.add_argument("--report", type=float, default=3600.0, help="seconds between reports")
    parser.add_argument("--only", choices=["steps", "stream"], help="one half of it")
    parser.add_argument("--quick", action="store_true", help="a tenth of the jobs, six hours")
    parser.add_argument("--json", type=Path, default=HERE / "out" / "scale.json")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def _tables(sizes: Sequence[int], days: float, options: argparse.Namespace) -> Iterator[Measured]:
    if options.only != "stream":
        found = _in_a_process("in-turn", list(sizes))
        for part, what in (("steps", "One step by what happens in it"), ("requests", "A request")):
            for figure in ("cpu", "least", "worst", "wall"):
                title = f"{what}: {_TITLES[figure]}"
                rows = {name: _pick(by, figure) for name, by in found[part].items()}
                yield _grown(title, sizes, rows)
    if options.only != "steps":
        streams = {}
        for size in sizes:
            long = days if size == max(sizes) else min(days, 1.0)
            work = [size, long, options.turn, options.report]
            streams[size] = _in_a_process("stream", work)
        yield from _stream_tables(streams)


_TITLES = {
    "cpu": "CPU milliseconds, median",
    "least": "CPU milliseconds, least",
    "worst": "CPU milliseconds, worst",
    "wall": "milliseconds of the wall, median",
}


def _pick(by_size: Mapping[str, Mapping[str, float]], figure: str) -> dict[int, float]:
    return {int(size): figures[figure] for size, figures in by_size.items()}


def _stream_tables(streams: Mapping[int, Mapping[str, Any]]) -> Iterator[Measured]:
    sizes = list(streams)
    first = {size: found["days"][0] for size, found in streams.items()}
    for title, of in (
        ("The stream, its end and a start after a crash", "summary"),
        ("After its first day", "days"),
    ):
        figures = first if of == "days" else {n: found[of] for n, found in streams.items()}
        names = next(iter(figures.values()))
        yield _grown(title, sizes, {name: {n: figures[n][name] for n in sizes} for name in names})
    table = Measured(f"Growth with {max(sizes):,d} active jobs")
    for day in streams[max(sizes)]["days"]:
        table.add(**day)
    yield table


def _in_a_process(name: str, arguments: list[Any]) -> dict[str, Any]:
    given = json.dumps([arguments] if name == "in-turn" else arguments)
    command = [sys.executable, str(HERE / "scale.py"), "--work", name, given]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _grown(title: str, sizes: Sequence[int], rows: Mapping[str, Mapping[int, float]]) -> Measured:
    """A row for every figure, a column for every size, and the exponent of the size."""
    table = Measured(title, note=NOTE)
    for name, by_size in rows.items():
        values = [by_size[size] for size in sizes]
        columns = {f"{size}_jobs": round(v, 3) for size, v in zip(sizes, values, strict=True)}
        table.add(what=name, **columns, exponent=_exponent(sizes, values))
    return table


def _exponent(sizes: Sequence[int], values: Sequence[float]) -> float | None:
    if min(values) <= 0:
        return None
    return round(float(np.polyfit(np.log(sizes), np.log(values), 1)[0]), 2)


if __name__ == "__main__":
    main()
