"""The dashboard in a real Chromium, with 5,000 jobs in the store: how soon it is there, how smooth.

Real are the browser, the page, the REST application, the control loop and the store; simulated are
the clock, the cloud and the jobs' processes. First with 500 of the jobs active, then with all. A
load is cold: a browser that has never been there. Frames are timed while the table of all jobs is
scrolled, with the service sending news all the while.

.venv/bin/python bench/dashboard.py [--jobs 5000] [--loads 5] [--json FILE]
"""

import argparse
import itertools
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright
from rich.console import Console

from _table import Cell, Measured, show, write

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from browser.chromium import ARGUMENTS, chromium

HERE = Path(__file__).resolve().parent
PATIENCE_MS = 120_000.0
PACES = {60: 8.0, 625: 60.0}
"""Rows a second, and the most seconds: as one looks for something, and from top to bottom."""
ROW_PX = 40
FIGURES = "document.querySelector('.stat-value')?.textContent.includes('$')"
ROWS = "document.querySelector('[role=table] [role=cell]') !== null"
WHEN = """
(() => {
  const looks = {%s};
  window.boaSeen = {};
  const look = () => {
    for (const [name, there] of Object.entries(looks)) {
      if (!(name in window.boaSeen) && there()) window.boaSeen[name] = performance.now();
    }
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})();
"""
"""Notes at every frame what is to be seen by then."""
SCROLL = """
async ({pixelsPerSecond, mostSeconds}) => {
  const body = document.querySelector('[role=table] [role=rowgroup]');
  const frames = [];
  let rows = 0, still = 0, before = await new Promise(requestAnimationFrame);
  const began = before;
  while (still < 1000 && before - began < mostSeconds * 1000) {
    const at = await new Promise(requestAnimationFrame);
    frames.push(at - before);
    const top = body.scrollTop;
    body.scrollTop = top + pixelsPerSecond * (at - before) / 1000;
    still = body.scrollTop > top ? 0 : still + at - before;
    rows = Math.max(rows, body.querySelectorAll('[role=row]').length);
    before = at;
  }
  const shown = Number(body.parentElement.getAttribute('aria-rowcount')) - 1;
  return {frames, rows, shown, seconds: (before - began - still) / 1000};
}
"""
"""Until it has been at the bottom for a second: ended jobs are loaded on the way."""


def main() -> None:
    options = _arguments()
    loads = Measured(
        f"Cold loads: milliseconds, median of {options.loads} (the slowest)",
        note="paint: first contentful; figures: money can be read; rows: the jobs' table has some",
    )
    frames = Measured(
        "The jobs' table, scrolled down: milliseconds a frame",
        note="busy: the page's main thread; DOM rows: the most that were in the page at once",
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        for active in dict.fromkeys((options.jobs // 10, options.jobs)):
            with _service(active, options.jobs) as url:
                found = [_load(browser, url) for _ in range(options.loads)]
                loads.add(about_active=active, **_summary(found))
                for rows_per_s, ended in itertools.product(PACES, (False, True)):
                    frames.add(about_active=active, **_scroll(browser, url, rows_per_s, ended))
        browser.close()
    console = Console(width=None if sys.stdout.isatty() else 150)
    for table in (loads, frames):
        show(table, console)
    write(options.json, [loads, frames])
    console.print(f"written to {options.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=5000, help="in the store")
    parser.add_argument("--loads", type=int, default=5, help="of the page, for a median")
    parser.add_argument("--json", type=Path, default=HERE / "out" / "dashboard.json")
    return parser.parse_args()


@contextmanager
def _service(active: int, stored: int) -> Iterator[str]:
    command = [sys.executable, str(HERE / "_dashboard_serve.py"), str(active), str(stored)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        if not url:
            raise SystemExit("the service did not come up")
        yield url
    finally:
        process.stdin.close()
        process.wait(60)


@contextmanager
def _page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    looks = f"figures: () => {FIGURES}, rows: () => {ROWS}"
    context.add_init_script(WHEN % looks)
    yield context.new_page()
    context.close()


def _load(browser: Browser, url: str) -> dict[str, float]:
    """The budget's view, and then the table's, each in a browser of its own."""
    found: dict[str, float] = {}
    for path, what in (("/", "figures"), ("/#/jobs", "rows")):
        with _page(browser) as page:
            traffic = page.context.new_cdp_session(page)
            traffic.send("Network.enable")
            sizes: list[float] = []
            traffic.on("Network.dataReceived", lambda got, sizes=sizes: sizes.append(_size(got)))
            page.goto(url + path)
            page.wait_for_function(f"() => '{what}' in window.boaSeen")
            found[what] = page.evaluate(f"window.boaSeen.{what}")
            found[f"kb_until_{what}"] = sum(sizes) / 1000
            if what == "figures":
                named = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
                found["paint"] = page.evaluate(named)
    return found


def _size(received: dict[str, Any]) -> float:
    return float(received["encodedDataLength"] or received["dataLength"])


def _summary(loads: list[dict[str, float]]) -> dict[str, Cell]:
    summary: dict[str, Cell] = {}
    for name in ("paint", "figures", "rows"):
        times = [load[name] for load in loads]
        summary[name] = f"{statistics.median(times):.0f} ({max(times):.0f})"
    for name in ("kb_until_figures", "kb_until_rows"):
        summary[name] = round(statistics.median(load[name] for load in loads))
    return summary


def _busy(session: CDPSession) -> tuple[float, float]:
    """Seconds of the page's main thread, and of the wall."""
    found = session.send("Performance.getMetrics")["metrics"]
    figures = {metric["name"]: metric["value"] for metric in found}
    return figures["TaskDuration"], figures["Timestamp"]


def _scroll(browser: Browser, url: str, rows_per_s: int, ended: bool) -> dict[str, Cell]:
    with _page(browser) as page:
        page.goto(f"{url}/#/jobs{'?ended=1' if ended else ''}")
        page.wait_for_function("() => 'rows' in window.boaSeen")
        page.wait_for_load_state("load")
        pace = {"pixelsPerSecond": rows_per_s * ROW_PX, "mostSeconds": PACES[rows_per_s]}
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        before = _busy(session)
        found = page.evaluate(SCROLL, pace)
        busy, passed = (then - now for then, now in zip(_busy(session), before, strict=True))
    frames = sorted(found["frames"])
    return {
        "table": "ended too" if ended else "active",
        "jobs_loaded": found["shown"],
        "rows_a_second": rows_per_s,
        "seconds": round(found["seconds"], 1),
        "frames": len(frames),
        "p50": frames[len(frames) // 2],
        "p95": frames[int(0.95 * len(frames))],
        "worst": frames[-1],
        "over_50_ms": sum(frame > 50 for frame in frames),
        "busy_percent": round(100 * busy / passed),
        "DOM_rows": found["rows"],
    }


if __name__ == "__main__":
    main()
