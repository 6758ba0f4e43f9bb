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


class Sender:
    def __init__(self, url: str, token: str, every_s: float) -> None:
        self._url, self._every = urlsplit(url), every_s
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._connection: HTTPConnection | None = None
        self._changed = threading.Condition()
        self._newest: dict[str, Any] | None = None
        self._kept: dict[str, Any] | None = None
        self._prompt = self._closing = False
        self._not_before = 0.0
        self._thread = threading.Thread(target=self._run, name="boa-report", daemon=True)
        self._thread.start()

    def offer(self, report: dict[str, Any], *, prompt: bool = False, kept: bool = False) -> None:
        """Returns at once. `prompt`: not to wait for the next turn. `kept`: nor to be left out
        for a newer one."""
        with self._changed:
            if kept:
                self._kept, self._newest = report, None
            else:
                self._newest = report
                self._prompt = self._prompt or prompt
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(CLOSING_S)

    def _run(self) -> None:
        while (report := self._next()) is not None:
            sent = self._send(report)
            self._not_before = time.monotonic() + self._every
            with self._changed:
                if not sent and self._newest is None and not self._closing:
                    self._newest = report
        self._disconnect()

    def _next(self) -> dict[str, Any] | None:
        """The newest report when it is due; None at the end."""
        with self._changed:
            while not self._closing and self._kept is None:
                wait = self._not_before - time.monotonic()
                if self._newest is None:
                    self._changed.wait()
                elif wait > 0 and not self._prompt:
                    self._changed.wait(wait)
                else:
                    break
            kept, self._kept = self._kept, None
            if kept is not None:
                return kept
            report, self._newest, self._prompt = self._newest, None, False
            return report

    def _send(self, report: dict[str, Any]) -> bool:
        """Whether there is no use in sending it again."""
        body = json.dumps(report).encode()
        for fresh in (self._connection is None, True):
            try:
                if self._connection is None:
                    self._connection = self._connect()
                self._connection.request("POST", self._path(), body, self._headers)
                answer = self._connection.getresponse()
                answer.read(MOST_READ)
                if not answer.isclosed():
                    self._disconnect()
                return answer.status < 500
            except Exception:  # whatever it is, training goes on
                self._disconnect()
                if fresh:  # else the server may just have closed an idle connection
                    return False
        return False

    def _connect(self) -> HTTPConnection:
        kind = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
        return kind(self._url.hostname or "", self._url.port, timeout=TIMEOUT_S)

    def _path(self) -> str:
        return self._url.path + (f"?{self._url.query}" if self._url.query else "")

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
