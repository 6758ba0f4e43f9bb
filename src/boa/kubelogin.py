"""Tokens and certificates that we show to a Kubernetes API server, renewed before they end."""

import json
import os
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boa.errors import BoaError, InputError
from boa.units import Seconds, wall_time

LOOK_S: Seconds = 10.0
"""A file's token is read again after this long: kubelets replace it long before it ends."""
EARLY_S: Seconds = 30.0
"""A plugin's is asked for anew so long before it ends."""
PLUGIN_S: Seconds = 60.0
_TOLD = (
    "server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url",
    "certificate-authority-data",
)  # fmt: skip
"""Fields of a cluster that a plugin may ask for."""
_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class NoLogin(BoaError):
    """Who we are could not be found out: says why."""


class Login:
    """A token that stays; empty: none."""

    def __init__(self, token: str = "") -> None:
        self._token = token

    def token(self) -> str:
        return self._token

    def renew(self) -> bool:
        """Whether, after a refusal, there may be another."""
        return False


NOBODY = Login()


class FileToken(Login):
    """A token in a file that others keep fresh."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path, self._read_at = path, -LOOK_S

    def token(self) -> str:
        now = time.monotonic()
        if now - self._read_at >= LOOK_S:
            try:
                self._token = self._path.read_text().strip()
            except (OSError, UnicodeDecodeError) as trouble:
                if not self._token:  # or the last one will do until the file is back
                    raise NoLogin(f"no token can be read from {self._path}: {trouble}") from None
            self._read_at = now
        return self._token

    def renew(self) -> bool:
        before, self._read_at = self._token, -LOOK_S
        return self.token() != before


class ExecLogin(Login):
    """A token or a certificate that a program gives us (clouds' own: `aws eks get-token`)."""

    def __init__(
        self, plugin: Mapping[str, Any], cluster: Mapping[str, Any], tls: ssl.SSLContext | None
    ) -> None:
        """`cluster`: its entry, which the plugin may ask to be told."""
        super().__init__()
        self._plugin, self._cluster, self._tls = plugin, cluster, tls
        self._version = str(plugin.get("apiVersion", ""))
        if self._version not in _VERSIONS:
            raise InputError("users.exec.apiVersion", self._version, " or ".join(_VERSIONS))
        self._until: float | None = 0.0
        """By the wall; None: for good."""
        self._lock = threading.Lock()

    def token(self) -> str:
        with self._lock:
            if self._until is not None and time.time() >= self._until - EARLY_S:
                self._ask()
            return self._token

    def renew(self) -> bool:
        with self._lock:
            self._until = 0.0
        self.token()
        return True

    def _ask(self) -> None:
        status = self._status(self._run())
        self._token = str(status.get("token") or "")
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        if certificate and key and self._tls is not None:
            try:
                load_certificate(self._tls, str(certificate).encode(), str(key).encode())
            except (OSError, ValueError) as trouble:  # ssl.SSLError is one
                raise self._no_login(f"its certificate cannot be used: {trouble}") from None
        self._until = wall_time(str(status.get("expirationTimestamp") or ""))

    def _run(self) -> str:
        """The plugin's output."""
        args = self._plugin.get("args") or []
        if not isinstance(args, list):
            raise self._no_login("its args are no list")
        words = [str(self._plugin.get("command", "")), *map(str, args)]
        env = {**os.environ, **self._env(), "KUBERNETES_EXEC_INFO": json.dumps(self._asked())}
        try:
            done = subprocess.run(
                words, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                timeout=PLUGIN_S, check=False,
            )  # fmt: skip
        except (OSError, ValueError, subprocess.TimeoutExpired) as trouble:
            hint = str(self._plugin.get("installHint") or "").strip()
            raise self._no_login(f"{trouble} {hint}".strip()) from None
        if done.returncode:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise self._no_login((lines or [f"exit code {done.returncode}"])[-1])
        return done.stdout.decode("utf-8", "replace")

    def _env(self) -> dict[str, str]:
        """Its own variables; one without a value is empty, as with kubectl."""
        try:
            pairs = [dict(pair) for pair in self._plugin.get("env") or ()]
            return {str(pair["name"]): str(pair.get("value") or "") for pair in pairs}
        except (TypeError, ValueError, KeyError):
            raise self._no_login("its env is no list of names and values") from None

    def _no_login(self, why: str) -> NoLogin:
        return NoLogin(f"{self._plugin.get('command', '')} does not log us in: {why[:300]}")

    def _asked(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"interactive": False}
        if self._plugin.get("provideClusterInfo"):
            spec["cluster"] = {key: self._cluster[key] for key in _TOLD if key in self._cluster}
        return {"apiVersion": self._version, "kind": "ExecCredential", "spec": spec}

    def _status(self, text: str) -> Mapping[str, Any]:
        try:
            status = json.loads(text)["status"]
            if status.get("token") or status.get("clientCertificateData"):
                return dict(status)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass
        raise NoLogin(f"{self._plugin.get('command')} gave no ExecCredential with a token")


def load_certificate(tls: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Shown from the next connection on. Python takes files only."""
    with tempfile.NamedTemporaryFile() as file:  # for nobody else to read, and gone at once
        file.write(certificate.rstrip() + b"\n" + key)
        file.flush()
        tls.load_cert_chain(file.name)
