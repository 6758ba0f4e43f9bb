"""Opening a month: what `/history` and `/cost` take of the processor, at 10,000 GPUs and below.

The store (SQLite on disk) has a month that was made up (`_past.py`). Each question is asked with
the pages of holds that the store keeps, and of the same store without any: all that a page saves is
the ratio of the two. Least of `--times`, in seconds of the processor, of the service's side alone:
reading, adding up and making the document, without HTTP and without its JSON.

.venv/bin/python bench/past.py [--gpus 10000] [--days 30] [--times 5] [--quick] [--json FILE]
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from rich.console import Console

from _past import DAY_S, Past
from _table import Measured, show, write
from boa.runtime.history import Stretches
from boa.scheduler.money.grouping import Grouped
from boa.server.render.charges import charged
from boa.server.routes.history import POINTS, _history
from boa.store import pages
from boa.store.base import Store
from boa.store.sql import open_store

HERE = Path(__file__).resolve().parent
PARTS = (10, 4, 1)
"""The largest size divided by these."""


def main() -> None:
    options = _arguments()
    gpus, parts = (options.gpus // 10, (4, 1)) if options.quick else (options.gpus, PARTS)
    tables = [
        Measured(f"{options.days:g} days, seconds of CPU, least of {options.times}"),
        Measured("The store", note="packing: pages of all holds at once, when it is opened"),
    ]
    for part in parts:
        with tempfile.TemporaryDirectory(prefix="boa-past-") as folder:
            _measure(Past(gpus // part, options.days), Path(folder), options.times, *tables)
    console = Console(width=None if sys.stdout.isatty() else 150)
    for table in tables:
        show(table, console)
    write(options.json, tables)
    console.print(f"written to {options.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=10_000)
    parser.add_argument("--days", type=float, default=30.0)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a tenth of the GPUs")
    parser.add_argument("--json", type=Path, default=HERE / "out" / "past.json")
    return parser.parse_args()


def _measure(past: Past, folder: Path, times: int, asked: Measured, made: Measured) -> None:
    file = folder / "boa.db"
    url = f"sqlite:///{file}"
    with _without_pages():
        holds, took = _fill(past, url)
        size = file.stat().st_size
        with closing(open_store(url)) as store:
            rows = {name: _least(ask, times) for name, ask in _questions(store, past).items()}
    began = time.process_time()
    with closing(open_store(url)) as store:
        packing = time.process_time() - began
        for name, ask in _questions(store, past).items():
            seconds = _least(ask, times)
            ratio = rows[name] / seconds
            asked.add(
                gpus=past.gpus, asked=name, pages=seconds, rows=rows[name], rows_by_pages=ratio
            )
    made.add(
        gpus=past.gpus,
        holds=holds,
        MB=size / 1e6,
        MB_of_pages=(file.stat().st_size - size) / 1e6,
        filling=took,
        packing=packing,
    )


@contextmanager
def _without_pages() -> Iterator[None]:
    usual, pages.PAGE = pages.PAGE, sys.maxsize
    try:
        yield
    finally:
        pages.PAGE = usual


def _fill(past: Past, url: str) -> tuple[int, float]:
    holds, began = 0, time.process_time()
    with closing(open_store(url)) as store:
        for changes in past.changes():
            store.commit(changes)
            holds += len(changes.holds)
    return holds, time.process_time() - began


def _questions(store: Store, past: Past) -> dict[str, Callable[[], object]]:
    now = past.now
    since = now - past.days * DAY_S
    return {
        "history": lambda: _history(store, Stretches(since, now, POINTS), now),
        "cost": lambda: charged(store, since, now, now, None),
        "cost by class": lambda: charged(store, since, now, now, Grouped("class")),
        "cost by day": lambda: charged(store, since, now, now, Grouped("day")),
        "cost by job": lambda: charged(store, since, now, now, Grouped("job")),
    }


def _least(ask: Callable[[], object], times: int) -> float:
    found = []
    for _ in range(times):
        began = time.process_time()
        ask()
        found.append(time.process_time() - began)
    return min(found)


if __name__ == "__main__":
    main()
