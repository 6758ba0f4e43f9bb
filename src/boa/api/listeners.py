"""Users whose processes listen on a port of this machine, as Linux tells everybody.

A port has no owner while nobody listens on it: any user of the machine may take the one of a
service that is down. Whoever connects to it has to look whom it reached.
"""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

LISTENS, CONNECTED = "0A", "01"
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
ANY = {"00000000", "0" * 32}


class Row(NamedTuple):
    """A socket. Ends are ADDRESS:PORT, in hexadecimal."""

    local: str
    remote: str
    state: str
    user: int
    inode: int
    """0: nobody has taken it yet, and its user says nothing."""


def is_ours(connected: socket.socket, pid: int) -> bool:
    """Whether the other side of a connection within this machine is a process of this user. `pid`:
    whose it should be, which alone tells where the system says nothing about ports.

    Who accepts a connection may stop listening at once: then nobody is known to, and who has the
    other end is looked at too.
    """
    (address, port), here = connected.getpeername()[:2], _ends(*connected.getsockname()[:2])
    there, rows = _ends(address, port), list(_rows())
    if not any(row.local in here and row.remote in there for row in rows):
        return is_our_process(pid)  # not even our own side is to be seen
    accepted = {
        row.user
        for row in rows
        if row.state == CONNECTED and row.inode and row.local in there and row.remote in here
    }
    listening = listening_users(address, port)
    return bool(listening) and listening | accepted <= {os.geteuid()}


def listening_users(address: str, port: int) -> set[int]:
    """Ids of users with a process that may accept connections to this address and port; empty where
    it cannot be told."""
    wanted = _ends(address, port) | {f"{anywhere}:{port:04X}" for anywhere in ANY}
    return {row.user for row in _rows() if row.state == LISTENS and row.local in wanted}


def is_our_process(pid: int) -> bool:
    """Whether it is there, and this user's: a signal could be sent to it; and root, who may send
    them to anybody, is told whose it is."""
    with suppress(OSError, OverflowError):
        os.kill(pid, 0)
        return os.geteuid() != 0 or _user_of(pid) in (0, None)
    return False


def _user_of(pid: int) -> int | None:
    """None: the system does not say."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as lines:
            return int(next(line.split()[2] for line in lines if line.startswith("Uid:")))
    except (OSError, StopIteration):
        return None


def _ends(address: str, port: int) -> set[str]:
    return {f"{form}:{port:04X}" for form in _forms(address)}


def _forms(address: str) -> Iterator[str]:
    """The address as the tables have it; one of IPv4 may be accepted by a socket of IPv6."""
    with suppress(OSError):
        words = socket.inet_pton(socket.AF_INET, address)
        yield _hexadecimal(words)
        yield _hexadecimal(b"\0" * 10 + b"\xff\xff" + words)
        return
    with suppress(OSError):
        yield _hexadecimal(socket.inet_pton(socket.AF_INET6, address.partition("%")[0]))


def _hexadecimal(address: bytes) -> str:
    """Word by word, in this machine's order."""
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(address) // 4}I", address))


def _rows() -> Iterator[Row]:
    for table in TABLES:
        with suppress(OSError), open(table, encoding="ascii") as lines:
            for line in lines:
                parts = line.split(None, 10)
                if len(parts) > 9 and parts[9].isdecimal():
                    yield Row(parts[1], parts[2], parts[3], int(parts[7]), int(parts[9]))
