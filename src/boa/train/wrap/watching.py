"""A script's own checkpoints: found by their names, and taken for whole once they rest."""

import glob
import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

SETTLE_S = 1.0
"""How long nothing of a checkpoint must have changed for it to be whole."""
MOST_FILES = 10_000
"""Files of a checkpoint, and checkpoints, that are looked at."""
_NAMES = ("checkpoint*", "*.ckpt", "*.pt", "*.pth")
USUAL = tuple(os.path.join(*folder, name) for folder in ((), ("*",), ("*", "*")) for name in _NAMES)
"""Names that most scripts give to checkpoints, up to two folders deep."""
OURS = "boa-wrap.json"


class _Mark(NamedTuple):
    """A checkpoint as it looks from outside: another mark, another content."""

    newest: int
    """Nanoseconds: when any file of it was written last."""
    files: int
    size: int
    renamed: bool
    """Whether it was put in its place after it was written: it need not rest to be whole."""
    inode: int
    """Inode of a single file; 0: a folder."""


class Seen(NamedTuple):
    """A checkpoint, as it was when it was looked at."""

    path: str
    mark: _Mark
    since: float
    """When it was first found so, by the monotonic clock."""
    known: bool
    """Whether it was there before this attempt began."""
    replaced: bool = False
    """Whether it is another file than the one that had its name at the look before."""


class Watch:
    """Checkpoints under `home` by patterns, with a look at them now and then."""

    def __init__(
        self,
        home: str,
        patterns: Sequence[str],
        settle_s: float = SETTLE_S,
        is_open: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """`is_open`: whether the script has this file open; unknown counts as open."""
        self._patterns = [os.path.join(home, os.path.expandvars(each)) for each in patterns]
        self._settle_s, self._is_open = settle_s, is_open
        self._seen = {
            path: Seen(path, mark, 0.0, known=True) for path, mark in self._there().items()
        }
        self._told = set(self._seen)

    def changing(self) -> list[tuple[str, float]]:
        """Checkpoints that are new since the last look, or were written to, each with when it was
        written last (seconds of the wall clock)."""
        now, found = time.monotonic(), self._there()
        self._seen = {path: seen for path, seen in self._seen.items() if path in found}
        news = []
        for path, mark in found.items():
            before = self._seen.get(path)
            if before is None or before.mark != mark:
                replaced = before is not None and 0 < before.mark.inode != mark.inode > 0
                self._seen[path] = Seen(path, mark, now, known=False, replaced=replaced)
                news.append((path, mark.newest / 1e9))
        self._told -= {path for path, _ in news}
        return news

    def whole(self, *, over: bool = False) -> list[str]:
        """Checkpoints that have come to rest, each told once, by age; all, if `over`."""
        now = time.monotonic()
        resting = [
            seen
            for path, seen in self._seen.items()
            if path not in self._told
            and (over or now - seen.since >= self._settle_s or self._is_in_place(seen))
        ]
        self._told |= {seen.path for seen in resting}
        return [seen.path for seen in sorted(resting, key=lambda seen: seen.mark.newest)]

    def _is_in_place(self, seen: Seen) -> bool:
        """Whether it was written under another name, and then renamed. A small file may have both
        times from one tick of the clock: then it is another file, which nobody writes to."""
        return seen.mark.renamed or (seen.replaced and not self._is_open(seen.path))

    def newest(self) -> str | None:
        """The newest that was there when this attempt began."""
        known = [seen for seen in self._seen.values() if seen.known]
        return max(known, key=lambda seen: seen.mark.newest).path if known else None

    def _there(self) -> dict[str, _Mark]:
        found = itertools.chain.from_iterable(glob.iglob(each) for each in self._patterns)
        paths = dict.fromkeys(itertools.islice(found, MOST_FILES))
        inner = {path for path in paths if any(over in paths for over in _folders(path))}
        marks = {
            path: _mark(path)
            for path in paths
            if path not in inner and os.path.basename(path) != OURS
        }
        return {path: mark for path, mark in marks.items() if mark.files}


def _mark(path: str) -> _Mark:
    newest = files = size = inode = 0
    renamed = False
    for each in itertools.islice(_files(path), MOST_FILES):
        try:
            about = os.stat(each)
        except OSError:  # it was replaced this moment
            continue
        newest, files, size = max(newest, about.st_mtime_ns), files + 1, size + about.st_size
        # a write moves both times, a new name the second alone
        renamed = each == path and about.st_ctime_ns > about.st_mtime_ns
        inode = about.st_ino if each == path else 0
    return _Mark(newest, files, size, renamed, inode)


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    for folder, _, names in os.walk(path):
        yield from (os.path.join(folder, name) for name in names)


def _folders(path: str) -> Iterator[str]:
    while (above := os.path.dirname(path)) != path:
        yield above
        path = above
