"""Build the optional C kernels. Without a C compiler the wheel is pure Python."""

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = "src/boa/*/_*.c"
"""Every C file becomes the library of the same name beside it."""


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or os.environ.get("BOA_PURE_PYTHON"):
            return
        compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
        # No contraction: a kernel is to round as its NumPy twin does.
        flags = ["-O3", "-ffp-contract=off", "-fPIC", "-shared"]
        root = Path(self.root)
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
