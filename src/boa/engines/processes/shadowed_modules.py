"""Modules beside a script that are called like one that its warm parent has imported.

In a process of its own, the script's folder is searched first: it would get those, and so would
all that it imports. Only what Python itself imports when it begins is never taken from there.
It needs nothing but the standard library, like `parent_process.py`.
"""

import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    BuiltinImporter,
    ExtensionFileLoader,
    FileFinder,
    FrozenImporter,
    SourceFileLoader,
    SourcelessFileLoader,
)
from types import ModuleType

_KINDS = (  # as Python has them, in its order
    (ExtensionFileLoader, EXTENSION_SUFFIXES),
    (SourceFileLoader, SOURCE_SUFFIXES),
    (SourcelessFileLoader, BYTECODE_SUFFIXES),
)
_ANYWHERE = (BuiltinImporter, FrozenImporter)
"""Importers whose modules are found before any folder is searched."""


class Imports:
    """Modules that were asked for in this process, and what came of it."""

    def __init__(
        self,
        known: Collection[str] = (),
        missed: Collection[str] = (),
        ours: Collection[str] = (),
    ) -> None:
        """`known`: there from the beginning; `missed`: asked for, and not found."""
        here = {name for name in sys.modules if "." not in name and name not in ours}
        here = {name for name in here if not _is_anywhere(sys.modules[name])}
        self._names = (here | set(missed)) - set(known) - {"__main__", "__mp_main__"}

    def other(self, folder: str) -> str:
        """Which module of this folder a new process would have imported instead; or nothing."""
        if not folder:
            return ""
        try:
            there = {name.partition(".")[0] for name in os.listdir(folder)}
        except OSError:  # nothing can be imported from there
            return ""
        finder = FileFinder(folder, *_KINDS)
        for name in sorted(self._names & there):
            found = finder.find_spec(name)
            if found is None:
                continue
            origin = found.origin if found.loader else os.path.join(folder, name)
            if origin and not _is_same(sys.modules.get(name), origin, found.loader is not None):
                return origin
        return ""


def first_place(words: Sequence[str]) -> str:
    """The folder that Python searches first for the imports of such a command."""
    if getattr(sys.flags, "safe_path", False):
        return ""
    if words[0] == "-m":
        return os.getcwd()
    return os.path.dirname(os.path.realpath(words[0]))


@contextmanager
def missed() -> Iterator[set[str]]:
    """Names that are looked for in vain meanwhile: many packages do with or without another."""
    names: set[str] = set()

    class Last:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            if "." not in name:
                names.add(name)

    sys.meta_path.append(Last)
    try:
        yield names
    finally:
        if Last in sys.meta_path:
            sys.meta_path.remove(Last)


def _is_anywhere(module: ModuleType) -> bool:
    return getattr(getattr(module, "__spec__", None), "loader", None) in _ANYWHERE


def _is_same(module: ModuleType | None, path: str, regular: bool) -> bool:
    """Whether that path leads to this module; one without a file of its own has many folders.

    A folder that is no package gives way to any module elsewhere that is.
    """
    file = getattr(module, "__file__", None)
    if regular:
        return file is not None and os.path.realpath(file) == os.path.realpath(path)
    places = getattr(module, "__path__", ())
    return file is not None or os.path.realpath(path) in map(os.path.realpath, places)
