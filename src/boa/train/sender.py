"""Sends reports in the background: the newest one, now and then, and never in anybody's way."""

import json
import threading
import time
from http.client import HTTPConnection, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 2.0
MOST_READ = 64 * 1024
CLOSING_S = 1.0
"""How long the end of the process may wait for the last report."""
KEPT_S = 3.0
"""How long a report that is kept is tried. The service takes the time of its arrival for the time
it tells of: one that comes late says something wrong, and is better lost."""
RETRY_S = 0.5
MOST_ENDS, MOST_BYTES = 64, 48 * 1024
"""Ends of epochs that wait to be told, and bytes of a report with them; the oldest go first."""
NEWER = ("layouts", "saves", "saved_s", "total", "done")
"""Fields of a report that older services do not know."""
NOT_UNDERSTOOD, INTERNAL = 422, 500
NOT_NOW = (408, 429)
"""HTTP statuses of a service that had no time for it, beside its own troubles (5xx)."""


class Sender:
    """`ca`: certificates (PEM) that the service is believed by, beside the system's own."""

    def __init__(self, url: str, token: str, every_s: float, ca: str = "") -> None:
        self._url, self._every, self._ca = urlsplit(url), every_s, ca
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._connection: HTTPConnection | None = None
        self._changed = threading.Condition()
        self._newest: dict[str, Any] | None = None
        self._kept: dict[str, Any] | None = None
        self._kept_due = self._kept_until = 0.0
        self._ends: list[dict[str, Any]] = []
        self._prompt = self._closing = False
        self._not_before = 0.0
        self._thread = threading.Thread(target=self._run, name="boa-report", daemon=True)
        self._thread.start()

    def offer(self, report: dict[str, Any], *, prompt: bool = False, kept: bool = False) -> None:
        """Returns at once. `prompt`: not to wait for the next turn. `kept`: nor to be left out
        for a newer one, which waits until it is sent, or cannot be within `KEPT_S`."""
        with self._changed:
            if kept:
                self._kept, self._newest = report, None
                self._kept_due = time.monotonic()
                self._kept_until = self._kept_due + KEPT_S
            else:
                self._newest = report
                self._prompt = self._prompt or prompt
            self._changed.notify()

    def ended(self, end: dict[str, Any]) -> None:
        """An epoch has; told with the next report that arrives, however late that is."""
        with self._changed:
            self._ends = [*self._ends, end][-MOST_ENDS:]

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(CLOSING_S)

    def _run(self) -> None:
        while (report := self._next()) is not None:
            sent = self._send(report)
            with self._changed:
                self._tried(report, sent)
        self._disconnect()

    def _tried(self, report: dict[str, Any], sent: bool) -> None:
        now = time.monotonic()
        self._not_before = now + self._every
        if report is self._kept:
            self._kept_due = now + RETRY_S
            if sent or self._closing or self._kept_due > self._kept_until:
                self._kept = None
        elif not sent and self._newest is None and not self._closing:
            self._newest = report

    def _next(self) -> dict[str, Any] | None:
        """The newest report when it is due; None at the end."""
        with self._changed:
            while not self._closing:
                due = self._due()
                if due is None:
                    self._changed.wait()
                elif (wait := due - time.monotonic()) > 0:
                    self._changed.wait(wait)
                else:
                    break
            if self._kept is not None:
                return self._kept
            report, self._newest, self._prompt = self._newest, None, False
            return report

    def _due(self) -> float | None:
        """When there is something to send; None: there is nothing."""
        if self._kept is not None:
            return self._kept_due
        if self._newest is None:
            return None
        return 0.0 if self._prompt else self._not_before

    def _send(self, report: dict[str, Any]) -> bool:
        """Whether there is no use in sending it again."""
        with self._changed:
            ends = self._ends
        body = json.dumps(report).encode()
        while ends and len(with_ends := json.dumps({**report, "ends": ends}).encode()) > MOST_BYTES:
            ends = ends[1:]
        status = self._post(with_ends if ends else body)
        if status == NOT_UNDERSTOOD and (ends or any(name in report for name in NEWER)):
            plain = {name: value for name, value in report.items() if name not in NEWER}
            status = self._post(json.dumps(plain).encode())  # to an older service
        taken = status is not None and status < INTERNAL and status not in NOT_NOW
        if taken:
            with self._changed:
                last = ends[-1] if ends else None
                told = next((n for n, end in enumerate(self._ends, 1) if end is last), 0)
                self._ends = self._ends[told:]
        return taken

    def _post(self, body: bytes) -> int | None:
        """The status that it was answered with; None: nobody has."""
        for fresh in (self._connection is None, True):
            try:
                if self._connection is None:
                    self._connection = self._connect()
                self._connection.request("POST", self._path(), body, self._headers)
                answer = self._connection.getresponse()
                said = answer.read(MOST_READ)
                if not answer.isclosed():
                    self._disconnect()
                self._renew(said)
                return answer.status
            except Exception:  # whatever it is, training goes on
                self._disconnect()
                if fresh:  # else the server may just have closed an idle connection
                    return None
        return None

    def _renew(self, said: bytes) -> None:
        """Tokens have an end; the service sends the next one in time."""
        if b'"token"' in said:
            token = json.loads(said)["token"]
            self._headers = {**self._headers, "Authorization": f"Bearer {token}"}

    def _connect(self) -> HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme != "https":
            return HTTPConnection(host, port, timeout=TIMEOUT_S)
        import ssl  # which most jobs do without

        believed = ssl.create_default_context()
        if self._ca:
            believed.load_verify_locations(cadata=self._ca)
        return HTTPSConnection(host, port, timeout=TIMEOUT_S, context=believed)

    def _path(self) -> str:
        return self._url.path + (f"?{self._url.query}" if self._url.query else "")

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
