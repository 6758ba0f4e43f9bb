"""Values that clouds keep in a file, such as the nodes they have rented."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from boa.atomic_file import replace_file
from boa.clouds.base import CloudTrouble
from boa.errors import FileError
from boa.plain_file import read_plain
from boa.private_files import private_folder

_T = TypeVar("_T")


class Keeping(Protocol[_T]):
    """A value that is replaced as a whole."""

    def get(self) -> _T: ...

    def put(self, value: _T) -> None: ...


class InMemory(Generic[_T]):
    """A value that nobody has to find again."""

    def __init__(self, value: _T) -> None:
        self._value = value

    def get(self) -> _T:
        return self._value

    def put(self, value: _T) -> None:
        self._value = value


class Kept(Generic[_T]):
    """A value that is in a file, replaced as a whole; `whose`: in an error, the file's owner."""

    def __init__(
        self,
        path: Path,
        whose: str,
        read: Callable[[Mapping[str, Any]], _T],
        write: Callable[[_T], Mapping[str, Any]],
        new: _T,
    ) -> None:
        self._path, self._whose = path, whose
        self._of_document, self._as_document, self._new = read, write, new
        self._known: _T | None = self._read()

    def get(self) -> _T:
        """After a failed write nobody knows what the file says until it is read."""
        if self._known is None:
            try:
                self._known = self._read()
            except FileError as problem:
                raise CloudTrouble(str(problem)) from problem
        return self._known

    def put(self, value: _T) -> None:
        self._known = None
        try:
            private_folder(self._path.parent)
            replace_file(
                self._path, json.dumps(self._as_document(value)), durable=True, private=True
            )
        except OSError as error:
            raise CloudTrouble(f"{self._path}: cannot be written ({error.strerror})") from error
        self._known = value

    def _read(self) -> _T:
        try:
            return self._of_document(json.loads(read_plain(self._path)))
        except FileNotFoundError:
            return self._new
        except OSError as error:
            problem = f"cannot be read ({error.strerror})"
            raise FileError(str(self._path), problem, "a file") from error
        except (ValueError, TypeError, KeyError) as error:
            expected = f"{self._whose} list of nodes, as it was written"
            raise FileError(str(self._path), "is damaged", expected) from error
