"""A hash of the public files that a run reads: results of two sets of data are not to be mixed."""

import hashlib
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from boa.paper.data import SETTINGS, trace_file
from boa.paper.runs import Run

READ = (".csv", ".json")
"""Files that profiles are made of; a note beside them changes nothing."""


def data_hash(run: Run, data: Path) -> str:
    """A hash of its trace and of its setting's profiles: names, sizes and contents."""
    trace = _file_hash(trace_file(data, run.setting, run.cut))
    profiles = _folder_hash(data / SETTINGS[run.setting].profiles)
    return hashlib.sha256(f"{trace} {profiles}".encode()).hexdigest()[:12]


@lru_cache(maxsize=256)
def _folder_hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(_below(folder)):
        digest.update(f"{file.relative_to(folder)}\0{_file_hash(file)}\0".encode(errors="replace"))
    return digest.hexdigest()


def _below(folder: Path) -> Iterator[Path]:
    for where, _, names in os.walk(folder, followlinks=True):
        yield from (Path(where, name) for name in names if name.endswith(READ))


@lru_cache(maxsize=4096)
def _file_hash(path: Path) -> str:
    """Size and content; of what cannot be read, nothing: the run itself will say so."""
    try:
        content = path.read_bytes() if path.is_file() else b""
    except OSError:
        return ""
    return f"{len(content)} {hashlib.sha256(content).hexdigest()}"
