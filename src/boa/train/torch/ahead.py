"""Reading a checkpoint before it is asked for, while the GPU wakes up and the model is built."""

import threading
from pathlib import Path
from typing import Any

from boa.train import checkpoints
from boa.train.torch import storage


class ReadAhead:
    """The newest checkpoint of a folder, on the host as soon as it is read."""

    def __init__(self, home: Path) -> None:
        self._path = next(iter(checkpoints.newest_first(home)), None)
        self._values: dict[str, Any] | None = None
        self._thread: threading.Thread | None = None
        if self._path is not None:
            self._thread = threading.Thread(target=self._read, name="boa-ahead", daemon=True)
            self._thread.start()

    def take(self, path: Path) -> dict[str, Any] | None:
        """What is in it, once; None of another checkpoint, or if it could not be read."""
        if self._thread is None or path != self._path:
            return None
        self._thread.join()
        found, self._values = self._values, None
        return found

    def _read(self) -> None:
        assert self._path is not None
        try:
            self._values = storage.fetched(self._path)
        except Exception:  # whoever needs it reads it again, and says what is wrong with it
            self._values = None
