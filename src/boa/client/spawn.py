"""A service of one's own: `boa serve` as a child process, for demos, benchmarks and fault tests."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from boa.atomic_file import replace_file
from boa.client.api import Client
from boa.engines.launching import free_port
from boa.errors import BoaError, NoServer
from boa.private_files import private_folder
from boa.units import Seconds

PATIENCE_S: Seconds = 60.0
"""Seconds for a service to come up or to let go, on a machine that has other things to do."""


class ServiceFailed(BoaError):
    """`boa serve` ended, or never answered."""


class OwnService:
    """`boa serve` on a free port of this machine, with everything it keeps in one folder.

    It can be killed and started again: it then goes on from what is in the folder. With a token,
    who asks has to have it; without, any user of this machine may ask.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any], token: str | None = None) -> None:
        self.folder, self.token = folder, token
        self.port = free_port()  # also while it is down: no system hands such a one out
        self.log = folder / "serve.log"
        self.program: Sequence[str] = (sys.executable, "-m", "boa")
        private_folder(folder)
        self._config = folder / "boa.json"
        whole = {"version": 1, **config, "data_dir": str(folder / "data"), "port": self.port}
        replace_file(self._config, json.dumps(whole), private=True)
        self._flags = ["--no-token"]
        if token is not None:
            replace_file(folder / "token", token, private=True)
            self._flags = ["--token-file", str(folder / "token")]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def ended(self) -> int | None:
        """Exit code of the service, if it has ended by itself."""
        return None if self._process is None else self._process.poll()

    def client(self, timeout: float = 30.0) -> Client:
        return Client(self.url, self.token, timeout=timeout)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when it answers."""
        command = [*self.program, "serve", "--config", str(self._config)]
        without = {key: value for key, value in os.environ.items() if key != "BOA_TOKEN"}
        appended = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(appended, "ab") as log:
            self._process = subprocess.Popen(
                command + self._flags,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=without,
                start_new_session=True,
            )
        deadline = time.monotonic() + PATIENCE_S
        with self.client(timeout=2.0) as client:
            while True:
                try:
                    client.health()
                    return
                except NoServer:
                    pass
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise ServiceFailed(f"boa serve did not come up: {self._last_words()}")
                time.sleep(0.05)

    def kill(self) -> None:
        """As a power cut would: SIGKILL. Its jobs go on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Ask it to let go."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _last_words(self) -> str:
        lines = self.log.read_text("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"
