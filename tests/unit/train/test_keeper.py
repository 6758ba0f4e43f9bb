"""Keepers: memory that outlives the processes that wrote to it, and no other."""

import json
import os
import signal
import socket
import struct
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.train.keeper import far, messages
from boa.train.keeper.client import KeeperClient, Later, Memory, NoKeeper, begun, listens
from boa.train.keeper.far import Broken
from boa.train.keeper.ledger import Ledger
from boa.train.keeper.process import BEFORE, SOCKET, WANTED
from boa.train.keeper.stripes import GRAIN, Stripes
from keeping import HERE, WAIT_S, keeper, kill, until

SIZE = 3 * GRAIN


def reserved(client: KeeperClient, size: int = SIZE) -> Memory:
    found: list[Memory] = []

    def ready() -> bool:
        try:
            found.append(client.reserve(size))
        except Later:
            return False
        return True

    until(ready)
    return found[0]


def left(folder: Path, content: bytes, generation: str = "first") -> int:
    """By a rank that is gone; gives the segment."""
    client = KeeperClient(folder)
    memory = reserved(client)
    memory.content.write(0, content)
    client.keep(memory.number, generation)
    memory.content.close()
    client.close()
    return memory.number


@given(st.data())
def test_stripes_are_one_stretch_of_bytes(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 3 * GRAIN))
    memory, whole = Stripes.made(size), bytearray(size)
    memory.fill(0, size)
    for number in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, size - 1))
        content = bytes([number + 1]) * data.draw(st.integers(0, size - at))
        memory.write(at, content)
        whole[at : at + len(content)] = content
    at = data.draw(st.integers(0, size - 1))
    count = data.draw(st.integers(0, size - at))
    assert memory.read(at, count) == whole[at : at + count]
    with pytest.raises(OSError, match="of"):
        memory.read(0, size + 1)
    memory.close()


def test_what_a_rank_leaves_the_next_one_reads(tmp_path: Path) -> None:
    with keeper(tmp_path):
        segment = left(tmp_path, b"state" * 1000)
        client = KeeperClient(tmp_path)
        assert client.open(segment, "first").content.read(0, 5000) == b"state" * 1000
        with pytest.raises(NoKeeper, match="something else"):
            client.open(segment, "second")
        client.close()


def test_memory_of_a_rank_that_died_before_it_left_anything_is_free(tmp_path: Path) -> None:
    with keeper(tmp_path):
        first = KeeperClient(tmp_path)
        memory = reserved(first)
        first.close()
        second = KeeperClient(tmp_path)
        assert reserved(second).number == memory.number
        second.close()


def test_what_is_kept_is_lent_to_nobody_until_it_is_released(tmp_path: Path) -> None:
    with keeper(tmp_path):
        segment = left(tmp_path, b"state")
        client = KeeperClient(tmp_path)
        other = reserved(client)
        assert other.number != segment
        client.close()
        client = KeeperClient(tmp_path)
        client.release("first")
        with pytest.raises(NoKeeper, match="something else"):
            client.open(segment, "first")
        client.close()


def test_threads_that_ask_at_once_get_what_they_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    with keeper(folder):
        contents = {left(folder, bytes([n]) * 9, f"state-{n}"): n for n in range(4)}
        client = KeeperClient(folder)

        def look(number: int) -> bool:
            opened = client.open(number, f"state-{contents[number]}").content
            found = opened.read(0, 9)
            opened.close()
            return found == bytes([contents[number]]) * 9 and client.where().address is None

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(look, list(contents) * 50))
        client.close()


def test_a_segment_is_kept_by_who_has_it(tmp_path: Path) -> None:
    with keeper(tmp_path):
        one, other = KeeperClient(tmp_path), KeeperClient(tmp_path)
        memory = reserved(one)
        with pytest.raises(NoKeeper, match="not lent to you"):
            other.keep(memory.number, "mine")
        one.close()
        other.close()


def test_more_than_its_share_is_refused_in_numbers(tmp_path: Path) -> None:
    with keeper(tmp_path, "--share", "0.000001"):
        client = KeeperClient(tmp_path)
        with pytest.raises(NoKeeper, match=r"5\.0 GB are asked for, and of 0 MB"):
            client.reserve(5 * 10**9)
        client.close()


def test_all_keepers_of_a_node_share_what_there_is(tmp_path: Path) -> None:
    mine, theirs = Ledger(tmp_path, 100), tmp_path / "1.bytes"
    theirs.write_text("70")  # of one that is dead
    assert mine.take(0, 60) == 100
    assert not theirs.exists()
    mine.set(60)
    child = os.fork()
    if child == 0:
        os._exit(Ledger(tmp_path, 100).take(0, 50))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 40
    assert mine.take(60, 40) == 40
    mine.close()


@given(st.binary(min_size=1, max_size=200) | st.dictionaries(st.text(), st.integers()).map(str))
def test_nonsense_harms_nobody_but_who_says_it(said: bytes | str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "MOST_BYTES", 4096)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.send(said if isinstance(said, bytes) else said.encode())
        try:
            heard = messages.receive(theirs)
        except ValueError:
            heard = None
        assert heard is None or isinstance(heard[0], dict)
        ours.close()
        theirs.close()


def test_a_keeper_goes_on_after_nonsense(tmp_path: Path) -> None:
    with keeper(tmp_path):
        for said in (b"\0", b"[]", b"{}", b'{"ask": "reserve", "bytes": "many"}', b'{"ask": 7}'):
            rude = messages.connect(tmp_path / SOCKET)
            rude.send(said)
            rude.recv(1000)
            rude.close()
        segment = left(tmp_path, b"state")
        client = KeeperClient(tmp_path)
        assert client.open(segment, "first").content.read(0, 5) == b"state"
        client.close()


def test_state_comes_from_other_nodes_and_only_to_who_has_the_key(tmp_path: Path) -> None:
    with keeper(tmp_path, "--host", HERE):
        segment = left(tmp_path, bytes(range(256)) * 50_000)
        client = KeeperClient(tmp_path)
        address = client.where().address
        assert address is not None
        into = bytearray(5_000_000)
        far.fetch(address, "first", segment, 256, memoryview(into))
        assert into == (bytes(range(256)) * 50_000)[256 : 256 + len(into)]
        stranger = far.Address(address.host, address.port, "0" * 32)
        for wrong in (
            (stranger, "first", segment, 0),
            (address, "second", segment, 0),
            (address, "first", segment + 1, 0),
            (address, "first", segment, SIZE),
        ):
            with pytest.raises(Broken, match="not there"):
                far.fetch(*wrong, memoryview(into))
        far.release(address, "first")
        until(lambda: _is_free(client, segment))
        client.close()


def _is_free(client: KeeperClient, segment: int) -> bool:
    try:
        client.open(segment, "first").content.close()
    except NoKeeper:
        return True
    return False


def test_what_was_damaged_on_its_way_is_noticed() -> None:
    with socket.create_server((HERE, 0)) as server:

        def lie() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(struct.pack("!II", 4, 0) + b"abcd")

        liar = threading.Thread(target=lie)
        liar.start()
        address = far.Address(HERE, server.getsockname()[1], "key")
        with pytest.raises(Broken, match="damaged"):
            far.fetch(address, "first", 0, 0, memoryview(bytearray(4)))
        liar.join()


def test_a_failed_writer_is_tried_again_and_then_the_memory_is_free(tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    script = (
        f"import pathlib; tries = pathlib.Path({str(tries)!r}); "
        "tries.open('a').write('x'); raise SystemExit(len(tries.read_text()) < 3)"
    )
    with keeper(tmp_path / "keeper", "--breath-s", "0"):
        segment = left(tmp_path / "keeper", b"state")
        client = KeeperClient(tmp_path / "keeper")
        client.write("first", [sys.executable, "-c", script], {})
        with pytest.raises(Later, match="written to the disk"):
            client.reserve(SIZE)
        until(lambda: _is_free(client, segment))
        assert tries.read_text() == "xxx"
        assert reserved(client).number == segment
        client.close()


def test_what_a_rank_has_left_is_written_though_it_dies_before_it_says_so(tmp_path: Path) -> None:
    done = tmp_path / "done"
    with keeper(tmp_path / "keeper", "--breath-s", "0"):
        client = KeeperClient(tmp_path / "keeper")
        memory = reserved(client)
        script = [sys.executable, "-c", f"open({str(done)!r}, 'w')"]
        client.keep(memory.number, "first", script, {})
        assert client.open(memory.number, "first").content.size >= SIZE
        assert not done.exists(), "others may still be leaving their part"
        client.close()
        until(done.exists)


def test_what_a_rank_keeps_is_written_when_it_is_gone_and_not_before(tmp_path: Path) -> None:
    folder, done = tmp_path / "keeper", tmp_path / "done"
    command = [sys.executable, "-c", f"open({str(done)!r}, 'w')"]
    with keeper(folder, "--breath-s", "0"):
        rank, other = KeeperClient(folder), KeeperClient(folder)
        memory = reserved(rank)
        rank.keep(memory.number, "first", command, {}, tmp_path / "none")
        for _ in range(50):  # it has been awake often enough to have begun
            other.where()
        assert not done.exists()
        rank.close()
        until(done.exists)
        until(lambda: _is_free(other, memory.number))
        other.close()


@pytest.mark.parametrize("published", [True, False])
def test_what_nobody_will_write_is_free_unless_it_was_published(
    tmp_path: Path, published: bool
) -> None:
    """On nodes without rank 0, whose keeper has it written."""
    folder, pointer = tmp_path / "keeper", tmp_path / "memory.json"
    with keeper(folder, "--breath-s", "0"):
        rank = KeeperClient(folder)
        memory = reserved(rank)
        rank.keep(memory.number, "first", pointer=pointer)
        pointer.write_text('{"generation": "first"}' if published else '{"generation": "older"}')
        rank.close()
        client = KeeperClient(folder)
        if published:
            for _ in range(50):
                assert not _is_free(client, memory.number)
            pointer.unlink()
        until(lambda: _is_free(client, memory.number))
        client.close()


def test_asked_to_end_it_first_has_written_what_is_on_no_disk(tmp_path: Path) -> None:
    done = tmp_path / "done"
    with keeper(tmp_path / "keeper", "--breath-s", "1000000") as process:
        left(tmp_path / "keeper", b"state")
        client = KeeperClient(tmp_path / "keeper")
        script = f"open({str(done)!r}, 'w')"
        client.write("first", [sys.executable, "-c", script], {})
        client.close()
        process.send_signal(signal.SIGTERM)
        process.wait(120)
        assert done.exists()
        assert not listens(tmp_path / "keeper")


def test_asked_to_end_it_waits_for_who_writes_what_it_has_a_part_of(tmp_path: Path) -> None:
    with keeper(tmp_path, "--host", HERE) as process:
        segment = left(tmp_path, b"state")
        client = KeeperClient(tmp_path)
        address = client.where().address
        client.close()
        assert address is not None
        process.send_signal(signal.SIGTERM)
        into = bytearray(5)
        far.fetch(address, "first", segment, 0, memoryview(into))  # by another node's writer
        assert into == b"state"
        assert process.poll() is None
        far.release(address, "first")
        assert process.wait(WAIT_S) == 0


def test_state_that_no_disk_takes_is_let_go_of_when_nobody_is_there(tmp_path: Path) -> None:
    with keeper(tmp_path, "--breath-s", "0", "--unwritten-s", "0") as process:
        left(tmp_path, b"state")
        client = KeeperClient(tmp_path)
        client.write("first", ["/no/such/command"], {})
        client.close()
        process.send_signal(signal.SIGTERM)  # it would stay as long as it had something to write
        assert process.wait(WAIT_S) == 0


def test_what_was_followed_by_another_makes_room(tmp_path: Path) -> None:
    share = 2.5 * SIZE / (os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with keeper(tmp_path, "--share", str(share)):
        first = left(tmp_path, b"state", "first")
        second = left(tmp_path, b"newer", "second")
        client = KeeperClient(tmp_path)
        assert reserved(client).number not in (first, second)
        assert client.open(second, "second").content.read(0, 5) == b"newer"
        with pytest.raises(NoKeeper):
            client.open(first, "first")
        client.close()


def test_a_writer_runs_behind_the_words_that_the_folder_names(tmp_path: Path) -> None:
    done = tmp_path / "done"
    with keeper(tmp_path / "keeper", "--breath-s", "0"):
        (tmp_path / "keeper" / BEFORE).write_text(json.dumps(["env", "INSIDE=yes"]))
        left(tmp_path / "keeper", b"state")
        client = KeeperClient(tmp_path / "keeper")
        client.write("first", ["sh", "-c", f"echo $INSIDE > {done}.new; mv {done}.new {done}"], {})
        client.close()
        until(done.exists)
        assert done.read_text() == "yes\n"


def test_it_ends_by_itself_when_nobody_needs_it_or_its_folder_is_gone(tmp_path: Path) -> None:
    with keeper(tmp_path / "idle", "--idle-s", "0", lasting=False) as process:
        assert process.wait(120) == 0
    with keeper(tmp_path / "gone") as process:
        for path in (tmp_path / "gone").rglob("*"):
            if not path.is_dir():
                path.unlink()
        (tmp_path / "gone" / "ledger").rmdir()
        (tmp_path / "gone").rmdir()
        assert process.wait(120) == 0


def test_a_second_keeper_in_a_folder_ends_at_once(tmp_path: Path) -> None:
    with keeper(tmp_path) as first, keeper(tmp_path) as second:
        assert second.wait(120) == 0
        assert first.poll() is None
        assert listens(tmp_path)


def test_a_rank_asks_for_a_keeper_where_there_is_none(tmp_path: Path) -> None:
    over, found = threading.Event(), []
    asking = threading.Thread(target=lambda: found.append(begun(tmp_path, over)))
    asking.start()
    until((tmp_path / WANTED).exists)
    with keeper(tmp_path):
        asking.join(120)
        found[0].close()


def test_a_killed_keeper_is_heard_of(tmp_path: Path) -> None:
    with keeper(tmp_path) as process:
        left(tmp_path, b"state")
        kill(process)
        with pytest.raises(NoKeeper, match="no keeper listens"):
            KeeperClient(tmp_path)
