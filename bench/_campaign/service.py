"""`boa serve` of a world: begun, killed, begun again; and what it says when it does not come up."""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _campaign.processes import LOOK_S, PATIENCE_S, NeverCame, awaited, until
from boa.client import Client
from boa.engines.launching import free_port
from boa.errors import BoaError

TIMEOUT_S = 5.0
"""For an answer, where nothing is wrong with the service."""
UP_S = 1.0


@dataclass(frozen=True, slots=True)
class Ended:
    """A service that has ended by itself."""

    code: int
    words: str


@dataclass
class Service:
    """Its log and settings are outside of the disk; everything else of it is on it."""

    scratch: Path
    data: Path
    settings: Mapping[str, Any]
    environment: Mapping[str, str]
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    process: "subprocess.Popen[bytes] | None" = None

    def __post_init__(self) -> None:
        self.port = free_port()
        self.log = self.scratch / "serve.log"
        self.log.touch()
        self._config = self._written("boa.json", {"data_dir": str(self.data), "port": self.port})

    @property
    def pid(self) -> int:
        """0 while there is none."""
        return self.process.pid if self.process is not None and self.process.poll() is None else 0

    def client(self, timeout: float = TIMEOUT_S) -> Client:
        return Client(f"http://127.0.0.1:{self.port}", self.token, timeout=timeout)

    def begin(self) -> None:
        self.process = self._spawned(self._config, self.log)

    def answers(self) -> bool:
        with self.client(timeout=UP_S) as client:
            try:
                client.health()
            except BoaError:
                return False
        return True

    def come_up(self) -> Ended | None:
        """None: it answers. Else how it has ended."""
        if not self.pid:
            self.begin()
        deadline = time.monotonic() + PATIENCE_S
        while not self.answers():
            if not self.pid:
                assert self.process is not None
                return Ended(self.process.returncode, self.last_words())
            if time.monotonic() > deadline:
                raise NeverCame(f"the service neither answers nor ends: {self.last_words()}")
            time.sleep(5 * LOOK_S)
        return None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self._gone()

    def ask_to_end(self) -> int:
        """Its exit code after SIGTERM."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self._gone()
        return self.process.returncode

    def second(self, **other: Any) -> Ended | None:
        """Another one, with the same settings but for these; None: it came up (and was killed)."""
        port = free_port()
        log = self.scratch / "second.log"
        log.write_bytes(b"")
        config = self._written("second.json", {"data_dir": str(self.data), **other, "port": port})
        process = self._spawned(config, log)
        try:
            until(lambda: process.poll() is not None or _listens(port), "a second service")
            if process.poll() is None:
                return None
            return Ended(process.returncode, log.read_text())
        finally:
            process.kill()
            process.wait()
            awaited.discard(process.pid)

    def last_words(self) -> str:
        lines = self.log.read_text("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def _gone(self) -> None:
        assert self.process is not None
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise NeverCame("the service does not end when it is asked to") from None
        awaited.discard(self.process.pid)

    def _written(self, name: str, own: Mapping[str, Any]) -> Path:
        path = self.scratch / name
        path.write_text(json.dumps({"version": 1, **self.settings, **own}))
        return path

    def _spawned(self, config: Path, log: Path) -> "subprocess.Popen[bytes]":
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("BOA_")}
        home = str(self.scratch / "home")
        own = {"BOA_TOKEN": self.token, "HOME": home, "BOA_HOME": f"{home}/boa"}
        with log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "boa", "serve", "--config", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**inherited, **self.environment, **own},
                start_new_session=True,
                cwd=self.scratch,
            )
        awaited.add(process.pid)
        return process


def _listens(port: int) -> bool:
    with Client(f"http://127.0.0.1:{port}", timeout=UP_S) as client, suppress(BoaError):
        client.health()
        return True
    return False
