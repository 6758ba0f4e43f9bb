"""A service that takes reports, for trainings to talk to."""

import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class Service:
    """Takes reports; or says that it cannot."""

    def __init__(self) -> None:
        self.reports: list[dict[str, Any]] = []
        self.tokens: set[str | None] = set()
        self.connections = 0
        self.status = 200
        self.knows_ends = True
        self.unknown: tuple[bytes, ...] = ()
        """Parts of bodies that it does not understand."""
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                service.connections += 1

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = service.status
                if b'"ends"' in body and not service.knows_ends:
                    status = 422
                if any(part in body for part in service.unknown):
                    status = 422
                if status == 200:
                    service.reports.append(json.loads(body, parse_constant=_refused))
                service.tokens.add(self.headers["Authorization"])
                self.send_response(status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/api/v1/jobs/1/report"

    def wait_for(self, count: int) -> list[dict[str, Any]]:
        deadline = time.monotonic() + 60
        while len(self.reports) < count:
            assert time.monotonic() < deadline, f"{len(self.reports)} of {count} reports"
            time.sleep(0.005)
        return self.reports

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _refused(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")
