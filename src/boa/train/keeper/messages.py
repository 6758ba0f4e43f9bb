"""How keepers and ranks of one node talk: JSON in packets, with descriptors or none."""

import json
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]
MOST_BYTES = 64 * 1024
MOST_DESCRIPTORS = 64


def listen(path: Path) -> socket.socket:
    """A socket of that name, for who may enter its folder."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    path.unlink(missing_ok=True)
    _by_short_name(path, listener.bind)
    listener.listen(64)
    return listener


def connect(path: Path) -> socket.socket:
    """OSError: nobody listens there."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        _by_short_name(path, connection.connect)
    except OSError:
        connection.close()
        raise
    return connection


def send(to: socket.socket, message: Message, descriptors: Sequence[int] = ()) -> None:
    socket.send_fds(to, [json.dumps(message).encode()], descriptors)


def receive(source: socket.socket) -> tuple[Message, list[int]] | None:
    """The next message and the descriptors that came with it; None: there will be no more.

    ValueError: it is none of ours.
    """
    data, descriptors, _, _ = socket.recv_fds(source, MOST_BYTES, MOST_DESCRIPTORS)
    if not data:
        return None
    try:
        message = json.loads(data)
        if not isinstance(message, dict):
            raise ValueError("a message is an object")
    except (ValueError, RecursionError) as problem:
        for descriptor in descriptors:
            os.close(descriptor)
        raise ValueError(str(problem)) from None
    return message, descriptors


def _by_short_name(path: Path, use: Any) -> None:
    """Names of sockets have 107 bytes at most; a folder that is open has a short one."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        use(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
