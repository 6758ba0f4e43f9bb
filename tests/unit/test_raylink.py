"""The connection to a Ray cluster that is not there."""

import socket

import pytest

from boa import raylink
from boa.errors import InputError


def test_an_address_where_nobody_listens_is_refused_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(InputError, match=r"ray.address: no connection \(.*refused"):
            raylink.connect(address, "boa-test")
