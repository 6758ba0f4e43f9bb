"""Debian's packages, installed or only fetched: standard library alone."""

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

RELEASE = "bookworm"
_POLICY = Path("/usr/sbin/policy-rc.d")
_QUIET = ["-q=2", "-o", "APT::Sandbox::User=root", "-o", "Dpkg::Use-Pty=0"]
_QUIET += ["-o", "DPkg::Lock::Timeout=600"]  # a system may be updating itself meanwhile


class CannotInstall(Exception):
    """With what somebody else could do about it."""


def install(*packages: str) -> None:
    """Those that are missing; no daemon of theirs is started.

    Raises:
        CannotInstall: there is no apt, or we may not, or it fails.
    """
    missing = [name for name in packages if not _is_installed(name)]
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise CannotInstall(f"no apt-get here to install {', '.join(missing)}: Debian 12 has them")
    get = [*_as_root(missing), "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", *_QUIET]
    wanted = ["install", "-y", "--no-install-recommends", *missing]
    with _no_daemons():
        if _run([*get, *wanted], check=False).returncode:
            _run([*get, "update"])
            _run([*get, *wanted])


def fetch(folder: Path, *packages: str) -> list[Path]:
    """Their .deb files, of the versions that this machine would install."""
    folder.mkdir(parents=True, exist_ok=True)
    get = ["apt-get", *_QUIET, "download", *packages]
    if _run(get, cwd=folder, check=False).returncode:
        _run([*_as_root(list(packages)), "apt-get", *_QUIET, "update"])
        _run(get, cwd=folder)
    return sorted(folder.glob("*.deb"))


def fetch_source(folder: Path, package: str) -> Path:
    """The .dsc of a source package, its signature and hashes checked by apt.

    The machine's own mirrors are asked, with lists of our own: neither its sources nor its lists
    are changed.
    """
    said = _run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)"]).stdout
    mirrors = sorted(
        {line for line in said.splitlines() if re.search(rf" {RELEASE}(-security)?$", line)}
    )
    if not mirrors:
        raise CannotInstall(f"this machine's apt sources have no {RELEASE}: Debian 12 is needed")
    (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (folder / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    signed = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
    lines = [f"deb-src {signed} {mirror} main\n" for mirror in mirrors]
    (folder / "sources.list").write_text("".join(lines))
    own = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "/nonexistent",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
    }
    get = ["apt-get", *_QUIET, *(word for key in own for word in ("-o", f"{key}={own[key]}"))]
    _run([*get, "update"])
    _run([*get, "source", "--download-only", package], cwd=folder)
    return sorted(folder.glob(f"{package}_*.dsc"))[-1]


def _is_installed(package: str) -> bool:
    said = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Status}", package], capture_output=True, text=True
    )
    return said.stdout == "installed"


def _as_root(packages: Sequence[str]) -> list[str]:
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo"):
        return ["sudo"]
    raise CannotInstall(
        "neither root nor sudo: ask whoever may to run apt-get install " + " ".join(packages)
    )


@contextlib.contextmanager
def _no_daemons() -> Iterator[None]:
    """Debian's way to say that services are not to be started."""
    if os.geteuid() != 0 or _POLICY.exists():
        yield
        return
    _POLICY.write_text("#!/bin/sh\nexit 101\n")
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink(missing_ok=True)


def _run(
    argv: Sequence[str], cwd: Path | None = None, check: bool = True
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if check and done.returncode:
        raise CannotInstall(f"{' '.join(argv)} failed: {done.stderr.strip()[-1500:]}")
    return done
