"""The program that renders the Helm chart: `chart_renderer/main.go`, built once with Debian's Go
and sprig, and kept beside the test cluster's."""

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

from kube import apt, places

SOURCE = places.TESTS / "chart_renderer" / "main.go"
NEEDED = ("golang-1.19-go", "golang-github-masterminds-sprig-dev", "golang-k8s-sigs-yaml-dev")
"""Debian's packages."""
GO, LIBRARIES = Path("/usr/lib/go-1.19/bin/go"), Path("/usr/share/gocode")


def renderer() -> Path:
    """Built where it is not there yet: half a minute, once.

    Raises:
        CannotInstall: Go is not here, and may not be installed.
    """
    cache = places.cache()
    program = cache / f"chart-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]}"
    if not program.exists():
        apt.install(*NEEDED)
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as work:
            _build(Path(work))
            os.replace(Path(work) / "chart", program)
    return program


def _build(work: Path) -> None:
    ours = {"GO111MODULE": "off", "GOPATH": str(LIBRARIES), "GOFLAGS": "", "CGO_ENABLED": "0"}
    env = {**os.environ, **ours, "GOCACHE": str(work / "cache"), "HOME": str(work)}
    flags = ["-trimpath", "-ldflags", "-s -w", "-o", str(work / "chart")]
    subprocess.run([GO, "build", *flags, SOURCE], check=True, env=env, cwd=work)
