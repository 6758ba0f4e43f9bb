"""Where the state is that a run has left in memory: a small file beside the checkpoints.

All nodes see that folder. The file is renamed into place when every rank's part is in memory, so it
is complete or invisible, as checkpoints are; and it counts for as long as no checkpoint is newer.
"""

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from boa.plain_file import read_plain
from boa.train import checkpoints
from boa.train.checkpoints import Manifest, Progress
from boa.train.keeper.far import Address

NAME = "memory.json"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Part:
    """One rank's part, and where it is."""

    segment: int
    keeper: str
    """The word by which a keeper knows itself."""
    address: Address | None
    """Where other nodes reach that keeper."""
    own: tuple[int, int]
    """Where its pickle is in the segment, and how long."""
    node: str = ""
    """The name of the node that it is on, for who may give that back."""
    folder: str = ""
    """Where a keeper without an address listens: for another job of its machine, or one that has no
    keeper any more."""


@dataclass(frozen=True, slots=True)
class Pointer:
    generation: str
    number: int
    """It counts while all checkpoints have smaller ones."""
    manifest: Manifest
    parts: tuple[Part, ...]
    """By rank."""
    shared: tuple[int, int]
    """Where in rank 0's segment."""
    index: tuple[int, int]
    """Likewise."""


def written(home: Path, pointer: Pointer) -> None:
    plain = replace(pointer.manifest, parts=dict(pointer.manifest.parts))
    text = json.dumps({"version": VERSION, **asdict(replace(pointer, manifest=plain))})
    home.mkdir(parents=True, exist_ok=True)
    hidden = home / f".boa-{NAME}-{secrets.token_hex(4)}"
    descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    hidden.rename(home / NAME)


def newest(home: Path) -> Pointer | None:
    """None: there is none, or a checkpoint is newer."""
    try:
        found = _pointer(json.loads(read_plain(home / NAME)))
        return found if found.number > checkpoints.newest_number(home) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None


def nodes(home: Path) -> frozenset[str]:
    """Nodes that have what is on no disk yet."""
    found = newest(home)
    return frozenset() if found is None else frozenset(part.node for part in found.parts)


def generation_at(home: Path) -> str:
    """The generation that the file speaks of, whether or not it counts; empty: there is none."""
    try:
        return str(json.loads(read_plain(home / NAME))["generation"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


def removed(home: Path, generation: str) -> None:
    """If it is still this one."""
    if generation_at(home) == generation:
        (home / NAME).unlink(missing_ok=True)


def _pointer(document: Mapping[str, Any]) -> Pointer:
    if document["version"] != VERSION:
        raise ValueError("it is of another version")
    manifest = document["manifest"]
    return Pointer(
        generation=str(document["generation"]),
        number=int(document["number"]),
        manifest=Manifest(
            Progress(**manifest["progress"]), int(manifest["world_size"]), manifest["parts"]
        ),
        parts=tuple(_part(part) for part in document["parts"]),
        shared=_span(document["shared"]),
        index=_span(document["index"]),
    )


def _part(document: Mapping[str, Any]) -> Part:
    address = document["address"]
    return Part(
        segment=int(document["segment"]),
        keeper=str(document["keeper"]),
        address=None if address is None else Address(**address),
        own=_span(document["own"]),
        node=str(document.get("node", "")),
        folder=str(document.get("folder", "")),
    )


def _span(given: Any) -> tuple[int, int]:
    first, count = given
    return int(first), int(count)
