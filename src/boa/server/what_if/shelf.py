"""Simulations as files: one each, written whole or not at all, so that they outlive the service."""

import json
import logging
from pathlib import Path
from typing import Any, cast

from boa.api.what_if import Comparison, Simulation
from boa.atomic_file import replace_file
from boa.plain_file import read_plain
from boa.private_files import private_folder

_log = logging.getLogger("boa.server")


class Shelf:
    """`folder`: made when something is first kept; None: everything is kept in memory.

    What cannot be written (a full disk, say) is kept in memory too: it is lost with the service.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._memory: dict[str, dict[str, Any]] = {}

    def load(self) -> list[Simulation]:
        """All there are, oldest first, without their results; what cannot be read is left out."""
        if self._folder is None:
            return []
        paths = [path for path in self._folder.glob("*.json") if path.stem.isdecimal()]
        read = (self._read(path) for path in sorted(paths, key=lambda path: int(path.stem)))
        return [without_result(found) for found in read if found is not None]

    def put(self, simulation: Simulation, result: Comparison | None = None) -> None:
        document: dict[str, Any] = {**simulation}
        if result is not None:
            document["result"] = result
        self._memory.pop(simulation["id"], None)
        if self._folder is None or not self._written(self._folder, document):
            self._memory[simulation["id"]] = document

    def get(self, simulation: Simulation) -> Simulation:
        """The same with its result, if it has one."""
        kept = self._memory.get(simulation["id"])
        if kept is None and self._folder is not None:
            kept = self._read(self._folder / f"{simulation['id']}.json")
        if kept is None or "result" not in kept:
            return simulation
        return {**simulation, "result": kept["result"]}

    def drop(self, simulation: Simulation) -> None:
        self._memory.pop(simulation["id"], None)
        if self._folder is not None:
            try:
                (self._folder / f"{simulation['id']}.json").unlink(missing_ok=True)
            except OSError as trouble:
                _log.warning("what-if: %s", trouble)

    def _written(self, folder: Path, document: dict[str, Any]) -> bool:
        path = folder / f"{document['id']}.json"
        try:
            private_folder(folder)
            replace_file(path, json.dumps(document), durable=True, private=True)
        except OSError as trouble:
            _log.warning("what-if: %s is kept in memory only: %s", path.stem, trouble)
            return False
        return True

    def _read(self, path: Path) -> dict[str, Any] | None:
        try:
            found = json.loads(read_plain(path))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as trouble:
            _log.warning("what-if: %s cannot be read: %s", path, trouble)
            return None
        if not isinstance(found, dict) or not found.keys() >= Simulation.__required_keys__:
            _log.warning("what-if: %s is no simulation of this service", path)
            return None
        return found


def without_result(document: dict[str, Any]) -> Simulation:
    known = (Simulation.__required_keys__ | Simulation.__optional_keys__) - {"result"}
    return cast(Simulation, {key: value for key, value in document.items() if key in known})
