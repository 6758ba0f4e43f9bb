"""A data folder remembers how far its store was, and which numbers were given out."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from boa.store.memory import FILE, PLACE, FolderMemory, Mark, read_mark
from boa.store.sql import SqlStore, backend_of
from stored import changes, event, job, node


def mark(commits: int, **fields: int) -> Mark:
    known = {"opened": 3, "job": 7, "node": 2, "event": 9, **fields}
    return Mark(commits=commits, nonce="ab12", **known)


def store_in(folder: Path) -> SqlStore:
    return SqlStore(backend_of(f"sqlite:///{folder}/boa.db"), FolderMemory(folder))


def test_the_newest_mark_is_found_again(tmp_path: Path) -> None:
    with closing(FolderMemory(tmp_path)) as memory:
        assert memory.mark is None
        for commits in range(5):
            memory.remember(mark(commits))
            assert memory.mark == read_mark(tmp_path) == mark(commits)
    with closing(FolderMemory(tmp_path)) as memory:
        assert memory.mark == mark(4)
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("place", [0, 1])
def test_a_torn_write_leaves_the_mark_before(tmp_path: Path, place: int) -> None:
    with closing(FolderMemory(tmp_path)) as memory:
        memory.remember(mark(1))
        memory.remember(mark(2))
    data = bytearray((tmp_path / FILE).read_bytes())
    data[place * PLACE + 20] ^= 4
    (tmp_path / FILE).write_bytes(data)
    assert read_mark(tmp_path) == mark(2 - place)
    with closing(FolderMemory(tmp_path)) as memory:
        memory.remember(mark(3))
    assert read_mark(tmp_path) == mark(3)


@pytest.mark.parametrize("odd", ["empty", "short", "noise", "folder", "pipe", "link"])
def test_an_odd_file_is_no_mark_and_keeps_nobody_from_going_on(tmp_path: Path, odd: str) -> None:
    path = tmp_path / FILE
    texts = {"empty": b"", "short": b"12", "noise": os.urandom(3 * PLACE)}
    if odd in texts:
        path.write_bytes(texts[odd])
    elif odd == "folder":
        path.mkdir()
    elif odd == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("elsewhere")
    with closing(FolderMemory(tmp_path)) as memory:
        assert memory.mark is None
        memory.remember(mark(1))
    assert read_mark(tmp_path) == (mark(1) if odd in texts else None)


def test_every_commit_is_remembered_before_it_is_told_of(tmp_path: Path) -> None:
    with closing(store_in(tmp_path)) as store:
        store.commit(changes(jobs=(job(1), job(2)), nodes=(node(4),), events=[event("hello")]))
        known = read_mark(tmp_path)
        assert known is not None
        assert (known.opened, known.commits) == (1, 1)
        assert (known.job, known.node, known.event) == (2, 4, 1)
        store.commit(changes(jobs=(job(1),)))
        known = read_mark(tmp_path)
        assert known is not None
        assert (known.commits, known.job) == (2, 2)


def test_numbers_are_not_given_out_again_though_the_database_is_gone(tmp_path: Path) -> None:
    with closing(store_in(tmp_path)) as store:
        store.commit(changes(jobs=(job(1), job(2)), nodes=(node(4),), events=[event("hello")]))
    (tmp_path / "boa.db").unlink()
    with closing(store_in(tmp_path)) as store:
        saved = store.load()
        assert (saved.next_job, saved.next_node) == (3, 5)
        assert store.commit(changes(events=[event("again")])) == 2
        known = read_mark(tmp_path)
        assert known is not None
        assert (known.opened, known.job) == (2, 2)


def test_a_mark_that_cannot_be_written_is_told_of_once_and_hinders_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_words: object) -> int:
        raise OSError(28, "No space left on device")

    with closing(store_in(tmp_path)) as store:
        with monkeypatch.context() as broken:
            broken.setattr(os, "fdatasync", full)
            store.commit(changes(jobs=(job(1),)))
            store.commit(changes(jobs=(job(2),)))
        assert caplog.text.count("cannot be written") == 1
        store.commit(changes(jobs=(job(3),)))
        known = read_mark(tmp_path)
        assert known is not None
        assert known.job == 3
