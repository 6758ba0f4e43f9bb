"""Keepers that somebody means ill by go on, and hold what they hold."""

import os
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from boa.engines.keepers import Keepers, enclose
from boa.train.keeper import messages
from boa.train.keeper.client import KeeperClient, Where
from boa.train.keeper.process import BEFORE, MOST_FAR, SOCKET, WANTED
from keeping import HERE, keeper


def where(folder: Path) -> Where:
    with closing(KeeperClient(folder)) as client:
        return client.where()


@pytest.mark.parametrize(
    "message",
    [
        {"ask": "reserve", "bytes": float("inf")},
        {"ask": "reserve", "bytes": float("nan")},
        {"ask": "write", "generation": "", "command": ["x"], "env": []},
        {"ask": "keep", "segment": None, "generation": 1},
    ],
)
def test_a_message_that_makes_no_sense_ends_nobody(tmp_path: Path, message: Any) -> None:
    with keeper(tmp_path) as process:
        connection = messages.connect(tmp_path / SOCKET)
        messages.send(connection, message)
        heard = messages.receive(connection)
        assert heard is not None
        assert "refused" in heard[0]
        connection.close()
        assert where(tmp_path).pid == process.pid


def test_who_connects_and_says_nothing_takes_no_more_than_a_few_files(tmp_path: Path) -> None:
    with keeper(tmp_path, "--host", HERE) as process:
        address = where(tmp_path).address
        assert address is not None
        crowd = [socket.create_connection((HERE, address.port)) for _ in range(3 * MOST_FAR)]
        assert where(tmp_path).pid == process.pid
        assert len(os.listdir(f"/proc/{process.pid}/fd")) < 2 * MOST_FAR
        for each in crowd:
            each.close()


def test_a_folder_in_the_place_of_a_file_means_no_keeper_and_no_trouble(tmp_path: Path) -> None:
    (tmp_path / BEFORE).mkdir()
    (tmp_path / WANTED).mkdir()
    assert not enclose(str(tmp_path), ["apptainer"])
    keepers = Keepers(str(tmp_path / "ledger"), "/bin/false", 0.1, {})
    keepers.look(str(tmp_path))
    assert keepers._ours == []
