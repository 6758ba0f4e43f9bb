"""Servers that go away and services that are killed, on a real PostgreSQL and on SQLite."""

import contextlib
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from boa.store import sql
from boa.store.base import Store, StoreTrouble
from boa.store.errors import InUse, Overtaken
from boa.store.sql import open_store
from postgresql import Database, Postgresql
from stored import changes, event, job

pytest_plugins = ("postgresql",)
FIRST = changes(jobs=(job(1),), events=[event("first")])
SECOND = changes(jobs=(job(2),), events=[event("second")])


@contextmanager
def opened(url: str) -> Iterator[Store]:
    store = open_store(url)
    try:
        yield store
    finally:
        store.close()


def texts(store: Store) -> list[str]:
    return [stored.event.text for stored in store.events()]


def test_a_server_that_is_restarted_is_trouble_until_it_is_back(postgresql: Postgresql) -> None:
    with opened(postgresql.url(postgresql.new_database())) as store:
        store.commit(FIRST)
        assert store.load().jobs == [job(1)]
        postgresql.stop()
        try:
            for _ in range(2):
                with pytest.raises(StoreTrouble, match=r"cannot be reached|terminating connection"):
                    store.commit(SECOND)
                with pytest.raises(StoreTrouble):
                    store.load()
        finally:
            postgresql.start()
        assert store.load().jobs == [job(1)]
        assert store.commit(SECOND) == 2
        assert texts(store) == ["first", "second"]


def test_a_broken_connection_costs_one_commit_and_keeps_others_out(postgresql: Postgresql) -> None:
    name = postgresql.new_database()
    with opened(postgresql.url(name)) as store:
        store.commit(FIRST)
        postgresql.cut_off(name)
        with pytest.raises(StoreTrouble):
            store.commit(SECOND)
        assert texts(store) == ["first"]
        assert store.commit(SECOND) == 2
        with pytest.raises(InUse):
            open_store(postgresql.url(name))


def test_who_lost_the_database_to_another_service_can_write_no_more(postgresql: Postgresql) -> None:
    name = postgresql.new_database()
    with opened(postgresql.url(name)) as first:
        first.commit(FIRST)
        postgresql.cut_off(name)
        with opened(postgresql.url(name)) as second:
            for _ in range(2):
                with pytest.raises(StoreTrouble):
                    first.commit(SECOND)
            second.commit(SECOND)
        with pytest.raises(Overtaken):
            first.commit(changes(jobs=(job(3),)))
        assert first.job("3") is None


class Proxy:
    """Stands between service and server, and breaks the connection around a COMMIT."""

    def __init__(self, server: Postgresql, folder: Path) -> None:
        self.folder, self._target = folder, str(server.folder / ".s.PGSQL.5432")
        self.cut: str = ""
        """"before": the next COMMIT never arrives; "after": its answer does not come back."""
        self.away = False
        """Nobody gets through."""
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / ".s.PGSQL.5432"))
        self._listening.listen()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            client, _ = self._listening.accept()
            if self.cut == "close":
                client.close()
                return
            thread = threading.Thread(target=self._serve, args=(client,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            if self.away:
                return
            server.connect(self._target)
            with contextlib.suppress(ConnectionError), selectors.DefaultSelector() as both:
                both.register(client, selectors.EVENT_READ, server)
                both.register(server, selectors.EVENT_READ, client)
                while all(self._forward(key) for key, _ in both.select()):
                    pass

    def _forward(self, key: selectors.SelectorKey) -> bool:
        """Whether the connection is to go on."""
        source, sink = key.fileobj, key.data
        assert isinstance(source, socket.socket)
        data = source.recv(65536)
        if not data:
            return False
        if self.cut and b"COMMIT" in data and sink.getpeername() == self._target:
            if self.cut == "after":
                sink.sendall(data)
                sink.recv(65536)
            self.cut = ""
            return False
        sink.sendall(data)
        return True

    def close(self) -> None:
        self.cut = "close"
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(str(self.folder / ".s.PGSQL.5432"))
        for thread in self._threads:
            thread.join()
        self._listening.close()


@pytest.fixture
def proxy(postgresql: Postgresql, tmp_path: Path) -> Iterator[Proxy]:
    between = Proxy(postgresql, tmp_path)
    yield between
    between.close()


@pytest.fixture
def store(postgresql: Postgresql, proxy: Proxy) -> Iterator[Store]:
    with opened(postgresql.url(postgresql.new_database(), host=proxy.folder)) as store:
        store.commit(FIRST)
        yield store


def test_a_commit_whose_confirmation_is_lost_is_found_to_have_happened(
    store: Store, proxy: Proxy
) -> None:
    proxy.cut = "after"
    assert store.commit(SECOND) == 2
    assert store.commit(changes(events=[event("third")])) == 3
    assert texts(store) == ["first", "second", "third"]


def test_a_commit_that_never_arrived_is_trouble_and_can_be_repeated(
    store: Store, proxy: Proxy
) -> None:
    proxy.cut = "before"
    with pytest.raises(StoreTrouble):
        store.commit(SECOND)
    assert texts(store) == ["first"]
    assert store.commit(SECOND) == 2
    assert texts(store) == ["first", "second"]


def test_a_service_that_cannot_tell_what_came_of_a_commit_writes_no_more_if_it_happened(
    store: Store, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "SETTLE_S", 0.0)
    proxy.away, proxy.cut = True, "after"
    with pytest.raises(StoreTrouble):
        store.commit(SECOND)
    proxy.away = False
    with pytest.raises(Overtaken, match="Restart boa serve"):
        store.commit(changes(events=[event("third")]))
    assert texts(store) == ["first", "second"]


WRITING = """
import sys
sys.path.insert(0, sys.argv[2])
from boa.store.sql import open_store
from stored import changes, event, job
store = open_store(sys.argv[1])
number = store.load().next_job
while True:
    store.commit(changes(jobs=(job(number),), events=[event(str(number), job=str(number))]))
    print(number, flush=True)
    number += 1
"""


def test_a_service_killed_at_any_moment_has_lost_nothing_that_was_committed(
    database: Database,
) -> None:
    command = [sys.executable, "-c", WRITING, database.url, str(Path(__file__).parents[1])]
    for wait in (0.0, 0.05, 0.11):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
            assert service.stdout is not None
            said = [service.stdout.readline()]
            time.sleep(wait)
            service.send_signal(signal.SIGKILL)
            said += service.stdout.read().split()
        with opened(database.url) as store:
            stored = [int(record.id) for record in store.jobs(limit=100_000)][::-1]
            told = [int(text) for text in texts(store)]
        assert stored == told == list(range(1, len(stored) + 1))
        # What it was at when it died may have been stored or not; no more than that.
        assert len(stored) - int(said[-1]) in (0, 1)
