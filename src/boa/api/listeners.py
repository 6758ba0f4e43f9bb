"""Users whose processes listen on a port of this machine, as Linux tells everybody.

A port has no owner while nobody listens on it: any user of the machine may take the one of a
service that is down. Whoever connects to it has to look whom it reached.
"""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

LISTENS = "0A"
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
ANY = {"00000000", "0" * 32}


def is_ours(connected: socket.socket, pid: int) -> bool:
    """Whether the other side of a connection within this machine is a process of this user. `pid`:
    whose it should be, which alone tells where the system says nothing about ports."""
    address, port = connected.getpeername()[:2]
    users = listening_users(address, port)
    return users <= {os.geteuid()} if users else is_our_process(pid)


def listening_users(address: str, port: int) -> set[int]:
    """Ids of users with a process that may accept connections to this address and port; empty where
    it cannot be told."""
    wanted = {*_forms(address), *ANY}
    ending = f":{port:04X}"
    return {
        user for at, user in _listening() if at.endswith(ending) and at[: -len(ending)] in wanted
    }


def is_our_process(pid: int) -> bool:
    """Whether it is there, and this user's: a signal could be sent to it."""
    with suppress(OSError, OverflowError):
        os.kill(pid, 0)
        return True
    return False


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


def _listening() -> Iterator[tuple[str, int]]:
    for table in TABLES:
        with suppress(OSError), open(table, encoding="ascii") as lines:
            for line in lines:
                parts = line.split(None, 8)
                if len(parts) > 8 and parts[3] == LISTENS:
                    yield parts[1], int(parts[7])
