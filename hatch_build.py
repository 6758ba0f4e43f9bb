"""Build what is not Python: the optional C kernels, and the dashboard.

Without a C compiler the wheel is pure Python; without Node it has no dashboard. Both work.
"""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = "src/boa/**/_*.c"
"""Every C file becomes the library of the same name beside it."""
STATIC = "src/boa/server/static"
"""Where the dashboard's build goes; pyproject.toml lists it among the artifacts."""
INSTALL = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
BUILD = ("run", "--silent", "build", "--", "--logLevel", "warn")


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if version != "editable":  # which serves what `make web` has built, if anything
            _build_dashboard(root)
        if self.target_name == "wheel" and not os.environ.get("BOA_PURE_PYTHON"):
            _build_kernels(root, build_data)


def _build_kernels(root: Path, build_data: dict[str, Any]) -> None:
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    # No contraction: a kernel is to round as its NumPy twin does.
    flags = ["-O3", "-ffp-contract=off", "-fPIC", "-shared"]
    built = []
    for source in sorted(root.glob(KERNELS)):
        library = source.with_suffix(".so")
        command = [*shlex.split(compiler), *flags, str(source), "-o", str(library), "-lm"]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as problem:
            print(f"no C kernel ({problem}): NumPy will serve", file=sys.stderr)
            return
        built.append(library.relative_to(root).as_posix())
    build_data["pure_python"] = False
    # No Python inside: the library fits every interpreter on this platform.
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    build_data["tag"] = f"py3-none-{platform}"
    build_data["artifacts"].extend(built)


def _build_dashboard(root: Path) -> None:
    index, web = root / STATIC / "index.html", root / "web"
    if not any(_newer(source, index) for source in _sources(web)):
        return
    npm = shutil.which("npm")
    if npm is None:
        _warn("npm was not found", index)
        return
    try:
        installed = web / "node_modules" / ".stamp"  # as the Makefile's
        if _newer(web / "package-lock.json", installed):
            subprocess.run([npm, *INSTALL], cwd=web, check=True, stdout=sys.stderr)
            installed.touch()
        subprocess.run([npm, *BUILD], cwd=web, check=True, stdout=sys.stderr)
    except (OSError, subprocess.CalledProcessError) as problem:
        _warn(str(problem), index)


def _sources(web: Path) -> Iterator[Path]:
    for pattern in ("*", "src/**/*", "public/**/*"):
        yield from (path for path in web.glob(pattern) if path.is_file())


def _newer(source: Path, made: Path) -> bool:
    return not made.is_file() or source.stat().st_mtime > made.stat().st_mtime


def _warn(reason: str, index: Path) -> None:
    what = "an old dashboard" if index.is_file() else "no dashboard"
    print(f"{what} in this build ({reason}): it takes Node 20.19, 22.12 or newer", file=sys.stderr)
