"""The optional compiled kernels: plain C beside the module that uses it, through ctypes."""

import ctypes
import os
from pathlib import Path


def load(module_file: str, name: str) -> ctypes.CDLL | None:
    """The library `name.so` beside a module, if this installation has it; else NumPy serves."""
    library = Path(module_file).with_name(f"{name}.so")
    if os.environ.get("BOA_PURE_PYTHON") or not library.exists():
        return None
    try:
        return ctypes.CDLL(str(library))
    except OSError:  # built for another machine
        return None
