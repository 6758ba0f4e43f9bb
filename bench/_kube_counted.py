"""`boa` that writes down how long its service's steps take and what it asks of the API server.

_kube_counted.py FIGURES.json serve …
"""

import json
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from boa.atomic_file import replace_file
from boa.cli import main
from boa.kubelink import Kube
from boa.runtime.loop import ControlLoop

EVERY_S = 0.5
PAGE = os.sysconf("SC_PAGE_SIZE")


class Figures:
    """Since the beginning; written again and again, whole."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.steps: list[float] = []
        self._lock = threading.Lock()

    def count(self) -> None:
        """From now on, whoever asks or steps."""
        ask, stream, step = Kube._ask, Kube.stream, ControlLoop.step

        def asked(kube: Kube, method: str, path: str, *rest: Any, **more: Any) -> bytes:
            is_list = method == "GET" and "limit" in more.get("query", {})
            self._add("LIST" if is_list or more.get("accept") else method)
            return ask(kube, method, path, *rest, **more)

        def streamed(kube: Kube, path: str, **query: str) -> Any:
            self._add("log")
            return stream(kube, path, **query)

        def stepped(loop: ControlLoop) -> None:
            began = time.perf_counter()
            step(loop)
            self.steps.append(time.perf_counter() - began)

        Kube._ask, Kube.stream = asked, streamed  # type: ignore[method-assign,assignment]
        ControlLoop.step = stepped  # type: ignore[method-assign,assignment]

    def _add(self, what: str) -> None:
        with self._lock:
            self.calls[what] += 1

    def write(self, path: Path) -> None:
        told = {
            "at": time.time(),
            "cpu_s": time.process_time(),
            "threads": threading.active_count(),
            "mb": int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6,
            "calls": dict(self.calls),
            "steps": list(self.steps),
        }
        replace_file(path, json.dumps(told))


def _go_on_writing(figures: Figures, path: Path) -> None:
    while True:
        figures.write(path)
        time.sleep(EVERY_S)


if __name__ == "__main__":
    found, out = Figures(), Path(sys.argv.pop(1))
    found.count()
    threading.Thread(target=_go_on_writing, args=[found, out], daemon=True).start()
    sys.exit(main())
