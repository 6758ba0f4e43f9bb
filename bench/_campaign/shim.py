"""The shim between a service and its machine: clock jumps, and calls that fail (`shim.c`)."""

import mmap
import os
import shutil
import struct
import subprocess
from pathlib import Path

HEAD = struct.Struct("qii")
SIZE = 4096


class Shim:
    """One shared page; what is written there holds at once, in every process that has it."""

    def __init__(self, preload: Path, page: Path, folder: Path) -> None:
        page.write_bytes(b"\0" * SIZE)
        with page.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), SIZE)
        name = os.fsencode(folder) + b"/"
        self._page[HEAD.size : HEAD.size + len(name)] = name
        self.environment = {"LD_PRELOAD": str(preload), "CAMPAIGN_SHIM": str(page)}
        self._ahead_s = 0

    def jump(self, seconds: int) -> None:
        """The wall's clock, from where it is now."""
        self._ahead_s += seconds
        self._page[:8] = struct.pack("q", self._ahead_s)

    def fail(self, error: int, every: int) -> None:
        """One call in so many on files of the disk; 0: none."""
        self._page[8:16] = struct.pack("ii", error, every)


def built(folder: Path) -> Path | None:
    """Compiled; None where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    made = folder / "shim.so"
    source = Path(__file__).with_name("shim.c")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(made), str(source), "-ldl"], check=True
    )
    return made
