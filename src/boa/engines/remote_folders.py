"""Files of engines on clusters, on the service's disk: markers of runs, and how they ended."""

import json
import os
import shutil
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from boa.atomic_file import replace_file
from boa.engines.folders import RunFolders
from boa.engines.gang import Ending
from boa.engines.processes import run_files
from boa.model.runs import RunKey
from boa.plain_file import read_plain
from boa.private_files import private_folder
from boa.units import Seconds

RESERVE, RESERVED = f"{run_files.OUTCOME}.new", 2048
"""Space for how a run ended, so that a full disk is no hindrance."""


class Marker(Protocol):
    """All that it takes to find a run of an engine again: a dataclass of plain values."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def launched(self) -> bool:
        """Whether it may have begun."""
        ...


M = TypeVar("M", bound=Marker)


class RemoteFolders(RunFolders, Generic[M]):
    """`kind`: of markers; one made of nothing is that of a run that was never begun."""

    def __init__(self, root: Path, kind: type[M]) -> None:
        super().__init__(root)
        self.kind = kind

    def begin(self, key: RunKey, marker: M | None = None) -> None:
        self.mark(key, self.kind() if marker is None else marker)
        private_folder(self.folder(key))
        replace_file(Path(self.folder(key), RESERVE), b" " * RESERVED, private=True)

    def mark(self, key: RunKey, marker: M) -> None:
        replace_file(self.marker_of(key), json.dumps(asdict(marker)), private=True)

    def marker(self, key: RunKey) -> M:
        with suppress(OSError, ValueError, TypeError):
            return self.kind(**json.loads(read_plain(self.marker_of(key))))
        return self.kind()  # cut off when the machine went down: as if nothing had been started

    def drop(self, key: RunKey) -> None:
        """As if it had never been asked for."""
        shutil.rmtree(self.folder(key), ignore_errors=True)
        self.unmark(key)

    def end(self, key: RunKey, ending: Ending, at: Seconds) -> None:
        """It ended then, which `age` counts from. Into space set aside: no draft would fit."""
        reserve, path = (
            os.path.join(self.folder(key), name) for name in (RESERVE, run_files.OUTCOME)
        )
        with suppress(OSError):  # found again, it is lost
            for name in (reserve, path):
                run_files.aside(name)
            fd = os.open(reserve, os.O_WRONLY | os.O_CREAT | run_files.PLAIN, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(json.dumps(asdict(ending)).encode().ljust(RESERVED))
                file.flush()
                os.fdatasync(fd)
            with suppress(OSError, ValueError, OverflowError):  # no such time: now
                os.utime(reserve, (at, at))
            os.replace(reserve, path)
            run_files.sync_folder(self.folder(key))

    def ended(self, key: RunKey) -> Ending | None:
        path = Path(self.folder(key), run_files.OUTCOME)
        with suppress(OSError, ValueError, TypeError):
            return Ending(**json.loads(read_plain(path)))
        return None
