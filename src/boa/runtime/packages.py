"""The shelf of packages that jobs run in: uploaded in parts, checked, kept once for all who have
them, and removed when nobody has needed them for long.

FOLDER/DIGEST.tar.gz      a package, as it came
FOLDER/DIGEST.json        what is in it, and who has shown to have it
FOLDER/.DIGEST.WHO.part   one that is being uploaded

A package is for those who have uploaded it, for their teams, and for admins: its name stands in the
spec of a job, where more may read it. Who uploads what is there already is written down with it,
and takes no more space.
"""

import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Collection
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boa.atomic_file import replace_file, to_disk
from boa.errors import InputError
from boa.model.access import Caller
from boa.model.job import JobRecord
from boa.packing.archive import MOST_UNPACKED, BadPackage, Contents, Entry, read
from boa.packing.unpack import pieces_of
from boa.plain_file import read_plain
from boa.private_files import private_folder
from boa.units import Seconds

PACKAGES, ARTIFACTS = "packages", "artifacts"
"""Folders in the data folder."""
MAX_BYTES = 100 * 1024**2
MAX_PART = 8 * 1024**2
DRAFT_S: Seconds = 3600.0
"""An upload that nobody has gone on with for so long is given up."""
MAX_OWNERS = 200
MAX_DRAFTS = 4
"""Uploads that one may have begun at a time."""
FREELY_UNPACKED, MOST_TIMES = 256 * 1024**2, 20
"""Bytes that any package may have once unpacked, and by how much more than its own: code is packed
to a third, and a few bytes that become gigabytes are there to fill a disk at every start."""
_log = logging.getLogger("boa.runtime")


def artifacts_of(data_dir: Path, job: JobRecord) -> str:
    """Where a job leaves results."""
    return str(data_dir / ARTIFACTS / job.id)


def package_of(data_dir: Path, job: JobRecord) -> str:
    """The file of a job's package; empty where it has none."""
    package = job.spec.package
    return str(data_dir / PACKAGES / f"{package}.tar.gz") if package else ""


class NoSuchPackage(InputError):
    status = 404

    def __init__(self, digest: str, field: str = "package") -> None:
        expected = (
            "one that you have uploaded (PUT /api/v1/packages/DIGEST); `package: workdir` has boa "
            "submit do so"
        )
        super().__init__(field, digest, expected, f"there is no package {digest[:12]}… of yours")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A package on the shelf."""

    digest: str
    size: int
    """Bytes of its file."""
    files: int
    unpacked: int
    paths: frozenset[str]
    owners: tuple[tuple[str, str], ...]
    """Names and teams of those who have uploaded it."""
    used_at: Seconds
    """When it was last uploaded or submitted with, by the wall."""

    def is_open_to(self, by: Caller) -> bool:
        return by.role == "admin" or any(by.shares(name, team) for name, team in self.owners)


class PackageShelf:
    """Safe to use from any thread."""

    def __init__(
        self,
        folder: Path,
        *,
        max_bytes: int = MAX_BYTES,
        clock: Callable[[], Seconds] = time.time,
    ) -> None:
        self.max_bytes, self._folder, self._clock = max_bytes, folder, clock
        self._lock = threading.Lock()

    def path(self, digest: str) -> Path:
        return self._folder / f"{digest}.tar.gz"

    def get(self, digest: str, by: Caller, field: str = "package", *, using: bool = False) -> Kept:
        """Raises NoSuchPackage, also of one that is somebody else's. `using`: it is submitted with,
        and its time begins anew: no sweep comes in between."""
        with self._lock if using else nullcontext():
            found = self._known(digest)
            if found is None or not found.is_open_to(by):
                raise NoSuchPackage(digest, field)
            if using:
                self._use(digest)
        return found

    def listed(self, by: Caller) -> list[Kept]:
        """Those of the caller's, the latest used first."""
        digests = [path.name.removesuffix(".json") for path in self._folder.glob("*.json")]
        kept = [found for digest in digests if (found := self._known(digest)) is not None]
        mine = [one for one in kept if one.is_open_to(by)]
        return sorted(mine, key=lambda one: -one.used_at)

    def _use(self, digest: str) -> None:
        with suppress(OSError):
            os.utime(self.path(digest), (self._clock(), self._clock()))

    def receive(
        self, digest: str, by: Caller, *, offset: int, total: int, data: bytes
    ) -> Kept | int:
        """The next part of an upload: the bytes that there are now, or the package once it is
        whole. Raises InputError of a part that does not follow, and of what is no package."""
        if not 0 < total <= self.max_bytes:
            expected = f"1 to {self.max_bytes:,} bytes (packages.max_mb of boa.yaml)"
            raise InputError("total", total, expected)
        with self._lock:
            draft = self._draft(digest, by)
            have = 0 if offset == 0 else _size(draft)
            if offset != have:
                raise InputError("offset", offset, f"{have}: so much of it is here")
            if not data or offset + len(data) > total:
                raise InputError("the body", None, f"1 to {total - offset:,} bytes", "it does not")
            private_folder(self._folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            found = os.open(draft, flags | (os.O_APPEND if offset else os.O_TRUNC), 0o600)
            whole = offset + len(data) == total
            with os.fdopen(found, "ab" if offset else "wb") as file:
                file.write(data)
            if not whole:
                self._drop_others(draft)
                return offset + len(data)
            return self._take_in(digest, by, draft, total)

    def sweep(self, in_use: Collection[str], keep_s: Seconds) -> list[str]:
        """Remove packages that no active job uses and nobody has for so long. Gives those."""
        now, gone = self._clock(), []
        with self._lock:
            for path in self._folder.glob("*.tar.gz"):
                digest = path.name.removesuffix(".tar.gz")
                if digest not in in_use and now - _used(path) > keep_s:
                    for file in (path, path.with_name(f"{digest}.json")):
                        file.unlink(missing_ok=True)
                    gone.append(digest)
            for draft in self._folder.glob(".*.part"):
                if now - _used(draft) > DRAFT_S:
                    draft.unlink(missing_ok=True)
        return gone

    def _drop_others(self, draft: Path) -> None:
        """Keep the latest few of one's unfinished uploads: no more of the disk is anybody's."""
        who = draft.name.split(".")[2]
        mine = sorted(self._folder.glob(f".*.{who}.part"), key=_used, reverse=True)
        for other in [one for one in mine if one != draft][MAX_DRAFTS - 1 :]:
            other.unlink(missing_ok=True)

    def _take_in(self, digest: str, by: Caller, draft: Path, size: int) -> Kept:
        paths: list[str] = []

        def begin(entry: Entry) -> None:
            paths.append(entry.path)

        try:
            found = read(pieces_of(draft), begin, most=most_unpacked(size))
        except BadPackage as bad:
            draft.unlink(missing_ok=True)
            expected = "a ustar archive in gzip: folders and plain files, no links (docs/jobs.md)"
            raise InputError("package", digest, expected, f"it is no package: {bad}") from None
        if found.digest != digest:
            draft.unlink(missing_ok=True)
            expected = f"the SHA-256 of the archive before it is compressed: {found.digest}"
            raise InputError("package", digest, expected)
        known = self._known(digest)
        owners = [] if known is None else list(known.owners)
        if (by.name, by.team) not in owners:
            owners = [*owners, (by.name, by.team)][-MAX_OWNERS:]
        self._describe(digest, found, paths, owners)
        to_disk(draft)  # before its name says that it is there
        os.replace(draft, self.path(digest))
        to_disk(self._folder)
        self._use(digest)
        kept = self._known(digest)
        assert kept is not None
        return kept

    def _describe(
        self, digest: str, found: Contents, paths: list[str], owners: list[tuple[str, str]]
    ) -> None:
        document = {
            "files": found.files,
            "unpacked": found.size,
            "paths": paths,
            "owners": owners,
        }
        path = self._folder / f"{digest}.json"
        replace_file(path, json.dumps(document), durable=True, private=True)

    def _known(self, digest: str) -> Kept | None:
        """None: not there, or damaged, which an upload mends."""
        path = self.path(digest)
        try:
            said: dict[str, Any] = json.loads(read_plain(path.with_name(f"{digest}.json")))
            return Kept(
                digest=digest,
                size=os.lstat(path).st_size,
                files=int(said["files"]),
                unpacked=int(said["unpacked"]),
                paths=frozenset(map(str, said["paths"])),
                owners=tuple((str(name), str(team)) for name, team in said["owners"]),
                used_at=_used(path),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _draft(self, digest: str, by: Caller) -> Path:
        """The upload of each who uploads, so that none can spoil another's."""
        who = hashlib.sha256(by.name.encode()).hexdigest()[:12]
        return self._folder / f".{digest}.{who}.part"


def most_unpacked(size: int) -> int:
    """Bytes that a package of this size may have once it is unpacked."""
    return min(FREELY_UNPACKED + MOST_TIMES * size, MOST_UNPACKED)


def _size(path: Path) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _used(path: Path) -> Seconds:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0
