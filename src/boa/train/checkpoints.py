"""Checkpoints that are complete or invisible.

A checkpoint is a folder `checkpoint-N` in the job's checkpoint folder. It is written under a hidden
name beside it, synced to the disk, and then renamed: whatever kills the script, when, a folder of
that name is whole. What the library itself has to know again is in its manifest, `boa.json`.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

KEPT = 2
MANIFEST = "boa.json"
_NAME = re.compile(r"checkpoint-(\d+)")
_HIDDEN = ".boa-"
"""How the names of folders begin that are being written or removed."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far training has come."""

    epoch: int = 0
    progress: float = 0.0
    """Units done of this epoch."""
    step: int = 0


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of a checkpoint's `boa.json`."""

    progress: Progress
    world_size: int | None = None
    """How many processes wrote it; None where nobody said."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Seconds that stopping and saving took, by what they went into."""


@contextmanager
def written(home: Path, progress: Progress) -> Iterator[Path]:
    """A folder to write into, published when the block ends without an exception."""
    hidden = begin(home)
    try:
        yield hidden
        publish(hidden, Manifest(progress))
    except BaseException:
        abandon(hidden)
        raise
    for old in retired(home):
        abandon(old)


def begin(home: Path, name: str = "") -> Path:
    """A hidden folder, for `publish` or `abandon`. `name`: by which `leftovers` may spare it."""
    home.mkdir(parents=True, exist_ok=True)
    hidden = home / f"{_HIDDEN}new-{name or os.getpid()}-{time.time_ns()}"
    hidden.mkdir()
    return hidden


def begun(home: Path, name: str) -> list[Path]:
    """Folders that were begun under this name, and not published."""
    return list(home.glob(f"{_HIDDEN}new-{name}-*"))


def publish(hidden: Path, manifest: Manifest, number: int | None = None) -> Path:
    """All that is in the folder becomes the newest checkpoint, or the one with this number.

    FileExistsError: there is one with that number already.
    """
    home = hidden.parent
    (hidden / MANIFEST).write_text(json.dumps(_document(manifest)))
    _sync(hidden)
    while True:
        target = home / f"checkpoint-{number or newest_number(home) + 1:08}"
        try:
            path = hidden.rename(target)
        except OSError:
            if not target.is_dir():
                raise
            if number is not None:
                raise FileExistsError(target) from None
            continue  # somebody else has just published one
        _sync_folder(home)
        return path


def newest_number(home: Path) -> int:
    """0: there is no checkpoint."""
    return max((number for number, _ in _published(home)), default=0)


def retired(home: Path) -> list[Path]:
    """All but the newest two, hidden from now on: `abandon` them, at once or when there is time.

    Killed half-way through its removal, a checkpoint must not look like one.
    """
    old = [path for _, path in _published(home)[:-KEPT]]
    return [path.rename(path.with_name(f"{_HIDDEN}old-{path.name}")) for path in old]


def abandon(hidden: Path) -> None:
    """Harmless if it was published, or is gone."""
    if hidden.is_dir():
        shutil.rmtree(hidden, ignore_errors=True)
    else:
        hidden.unlink(missing_ok=True)


def latest(home: Path) -> Path | None:
    return next(iter(newest_first(home)), None)


def newest_first(home: Path) -> list[Path]:
    return [path for _, path in reversed(_published(home)) if manifest_at(path)]


def progress_at(checkpoint: Path) -> Progress | None:
    """None if it is no checkpoint of ours."""
    manifest = manifest_at(checkpoint)
    return manifest.progress if manifest else None


def manifest_at(checkpoint: Path) -> Manifest | None:
    """None if it is no checkpoint of ours."""
    try:
        document = json.loads((checkpoint / MANIFEST).read_text("utf-8"))
        progress = Progress(document["epoch"], document["progress"], document["step"])
        return Manifest(progress, document.get("world_size"), document.get("parts", {}))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _document(manifest: Manifest) -> dict[str, Any]:
    document: dict[str, Any] = {"version": 1, **asdict(manifest.progress)}
    if manifest.world_size is not None:
        document["world_size"] = manifest.world_size
    if manifest.parts:
        document["parts"] = dict(manifest.parts)
    return document


def remove_leftovers(home: Path, spared: str = "") -> None:
    """Remove saves that were interrupted. Only for who writes here: nobody else may be at it, but
    for the one with the name that is spared."""
    for path in leftovers(home, spared):
        abandon(path)


def leftovers(home: Path, spared: str = "") -> list[Path]:
    """Saves that were interrupted. `spared`: a name of one that is not over."""
    alive = begun(home, spared) if spared else []
    return [path for path in home.glob(f"{_HIDDEN}*") if path not in alive]


def _published(home: Path) -> list[tuple[int, Path]]:
    """By age."""
    names = os.listdir(home) if home.is_dir() else ()
    matches = (_NAME.fullmatch(name) for name in names)
    return sorted((int(match[1]), home / match[0]) for match in matches if match)


def _sync(folder: Path) -> None:
    for place, _, files in os.walk(folder):
        for name in files:
            with open(os.path.join(place, name), "rb") as file:
                os.fsync(file.fileno())
        _sync_folder(Path(place))


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
