"""Build the optional C kernel of the solver. Without a C compiler the wheel is pure Python."""

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = "src/boa/solver/_paths.c"
LIBRARY = "src/boa/solver/_paths.so"


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or os.environ.get("BOA_PURE_PYTHON"):
            return
        compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
        # No contraction: the kernel is to round as its NumPy twin does.
        flags = ["-O3", "-ffp-contract=off", "-fPIC", "-shared"]
        root = Path(self.root)
        command = [*shlex.split(compiler), *flags, str(root / SOURCE), "-o", str(root / LIBRARY)]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as problem:
            print(f"no C kernel ({problem}): the solver will use NumPy", file=sys.stderr)
            return
        build_data["pure_python"] = False
        # No Python inside: the library fits every interpreter on this platform.
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        build_data["artifacts"].append(LIBRARY)
