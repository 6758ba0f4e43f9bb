"""Replay jobs as real processes, and a tiny server that they report to."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from boa.train import replay

PROFILE: dict[str, Any] = {
    "version": 1,
    "class": "tiny",
    "rescale_s": 40,
    "work": [100, 200, 100],
    "rates": {
        "T4": {
            "one_node": [[1.0, 2.0, 0.0], [1.0, 2.0, 0.0], [1.0, 2.0, 0.0]],
            "across": [[0.0, 1.6, 2.5], [0.0, 1.6, 2.5], [0.0, 1.6, 2.5]],
        }
    },
}
TOTAL = 400.0
SPEED = 400.0
DEADLINE_S = 600.0


class Reports:
    """What jobs have posted, in order of arrival."""

    def __init__(self) -> None:
        self.all: list[dict[str, Any]] = []
        self.tokens: set[str] = set()
        self.connections = 0
        self._news = threading.Condition()

    def add(self, report: dict[str, Any], token: str) -> None:
        with self._news:
            self.all.append(report)
            self.tokens.add(token)
            self._news.notify_all()

    def wait(self, units: float) -> dict[str, Any]:
        """The first report of so much progress."""
        with self._news:
            enough = self._news.wait_for(lambda: self._found(units) is not None, DEADLINE_S)
            assert enough, f"no report of {units} units in {self.all}"
            found = self._found(units)
        assert found is not None
        return found

    def _found(self, units: float) -> dict[str, Any] | None:
        return next((report for report in self.all if report["units"] >= units), None)


class _Http(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for them
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A job that was killed does not wait for its answer."""


@contextmanager
def server(protocol: str = "HTTP/1.1") -> Iterator[tuple[Reports, str]]:
    """Takes reports; also gives the address to post to."""
    reports = Reports()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = protocol

        def setup(self) -> None:
            reports.connections += 1
            super().setup()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            reports.add(json.loads(body), self.headers["Authorization"])
            self.send_response(200)
            answer = b'{"ok": true}'
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with _Http(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield reports, f"http://127.0.0.1:{http.server_address[1]}/api/v1/jobs/1/report"
        finally:
            http.shutdown()
            thread.join()


class Process:
    """One run of a replay job."""

    def __init__(
        self,
        folder: Path,
        profile: Mapping[str, Any] = PROFILE,
        *arguments: str,
        **environ: object,
    ) -> None:
        file = folder / "profile.json"
        file.write_text(json.dumps(profile))
        self.checkpoint = folder / "checkpoints" / replay.CHECKPOINT
        said = {
            "BOA_CHECKPOINT_DIR": str(self.checkpoint.parent),
            "BOA_GPU_TYPE": "T4",
            "BOA_SPEED": str(SPEED),
            "BOA_DECIDED_AT": str(time.time()),
            **{name: str(value) for name, value in environ.items()},
        }
        self.began = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", replay.__file__, str(file), *arguments],
            env={"PATH": os.environ["PATH"], **said},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.stdout, self.stderr = "", ""

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self) -> int:
        """Its exit code, once it has ended."""
        try:
            self.stdout, self.stderr = self._process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self.stdout, self.stderr = self._process.communicate()
            raise
        self.took = time.monotonic() - self.began
        return self._process.returncode

    def hang_up(self) -> None:
        """Nobody reads its output from now on."""
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process.stdout = None

    def until_it_said(self, text: str) -> None:
        """Until a line of its output has this in it."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if text in line:
                return
        raise AssertionError(f"it never said {text!r}")

    def saved(self) -> tuple[int, float]:
        found = json.loads(self.checkpoint.read_text())
        return found["epoch"], found["progress"]
