"""Documents on disk: read without trust, since anybody may have touched them, and sealed."""

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

SEAL = "check"
"""Field with a hash of all the others."""
DAMAGED = (OSError, ValueError, RecursionError)
"""Errors of a file that cannot be read, or has no JSON in it."""


def read_json(path: Path) -> Any:
    """The value in a regular file, with finite numbers alone; raises one of DAMAGED."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would never answer
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("not a regular file")
        return json.loads(file.read().decode("utf-8"), parse_constant=_refuse)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def sealed(document: Mapping[str, Any]) -> str:
    """A document as text, with a hash of it inside."""
    return json.dumps({**document, SEAL: _hash(document)}) + "\n"


def read_sealed(path: Path) -> dict[str, Any] | None:
    """A document as it was written; None if it is not there, or is not that any more."""
    try:
        found = read_json(path)
        if not isinstance(found, dict) or found.pop(SEAL, None) != _hash(found):
            return None
    except DAMAGED:
        return None
    return found


def _hash(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document).encode("utf-8")).hexdigest()[:20]
