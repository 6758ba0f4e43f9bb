"""Files that clouds keep their nodes in."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def replace_file(path: Path, document: Mapping[str, Any]) -> None:
    """The whole of it or nothing, even if the power goes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".new")
    with draft.open("w", encoding="utf-8") as file:
        file.write(json.dumps(document))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
