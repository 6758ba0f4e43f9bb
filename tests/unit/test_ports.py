"""A port that a test holds for those that it starts."""

import socket

import pytest

from boa.server.http.run import listen
from ports import held_port


def test_a_held_port_is_nobody_s_but_can_be_listened_at_again_and_again() -> None:
    with held_port() as port, held_port() as another:
        assert port != another
        for _ in range(2):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port))
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("", port))
            with listen("127.0.0.1", port):
                socket.create_connection(("127.0.0.1", port)).close()
