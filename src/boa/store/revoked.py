"""Tokens that were taken back, by their digests, in a file of the data folder.

A copy of the database that is put back may not know of it; they stay shut all the same. Lines are
added and never removed: a token's digest is no other's.
"""

import logging
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

from boa.atomic_file import to_disk
from boa.plain_file import read_plain

FILE = "tokens.revoked"
_LINE = re.compile(rb"^([0-9a-f]{64})$", re.MULTILINE)
_log = logging.getLogger("boa.store")


def known(folder: Path) -> set[str]:
    """Those that the folder remembers. Of a damaged file, what can be made out."""
    try:
        data = read_plain(folder / FILE)
    except FileNotFoundError:
        return set()
    except OSError as trouble:
        _log.warning("%s cannot be read: %s", folder / FILE, trouble.strerror)
        return set()
    return {found.decode() for found in _LINE.findall(data)}


def remember(folder: Path, digests: Iterable[str]) -> None:
    """On the disk before it returns. Where that fails it is told of: they are taken back in the
    database all the same, and are written down at the next start."""
    lines = b"".join(b"\n%s\n" % digest.encode() for digest in sorted(digests))
    if not lines:  # a line begins anew, also after one that a power cut has torn
        return
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        file = os.open(folder / FILE, flags, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise OSError(0, "it is no plain file")
            os.write(file, lines)
            os.fsync(file)
        finally:
            os.close(file)
        to_disk(folder)
    except OSError as trouble:
        _log.error("%s cannot be written: %s", folder / FILE, trouble.strerror)
