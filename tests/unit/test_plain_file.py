"""Only plain files are opened, and nothing is waited for."""

import os
from pathlib import Path

import pytest

from boa.atomic_file import replace_file
from boa.plain_file import NotPlain, open_plain, plain_status, read_plain, remove_folder
from replacing import KINDS, make, promptly


def test_a_plain_file_is_read_as_any_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"words")
    assert read_plain(path) == b"words"
    assert read_plain(path, most=2) == b"wo"
    with open_plain(path, folders=1) as file:
        assert file.read() == b"words"
    status = plain_status(path)
    assert status is not None
    assert status.st_size == 5


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_none_is_refused_at_once_and_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    make(kind, path)
    with pytest.raises(NotPlain, match=f"is a {kind.partition(' to')[0]}, not a plain file"):
        promptly(lambda: read_plain(path))
    assert plain_status(path) is None


def test_a_device_is_refused_too() -> None:
    with pytest.raises(NotPlain, match="is a device"):
        promptly(lambda: read_plain("/dev/zero"))


def test_a_file_that_is_not_there_is_told_as_ever(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_plain(tmp_path / "none")
    assert plain_status(tmp_path / "none") is None


def test_a_folder_above_it_may_be_no_link_if_it_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"words")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert read_plain(tmp_path / "link" / "file") == b"words"
    with pytest.raises(NotPlain, match="in a folder that is a link"):
        open_plain(tmp_path / "link" / "file", folders=1)


def test_a_link_may_be_followed_but_to_a_plain_file_only(tmp_path: Path) -> None:
    make("link", tmp_path / "link")
    assert read_plain(tmp_path / "link", follow=True) == b"somebody else's"
    make("pipe", tmp_path / "elsewhere")
    with pytest.raises(NotPlain):
        promptly(lambda: read_plain(tmp_path / "link", follow=True))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "folder"])
def test_a_file_of_our_own_takes_the_place_of_whatever_stands_there(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "file"
    make(kind, path)
    promptly(lambda: replace_file(path, "ours", private=True))
    assert read_plain(path) == b"ours"
    assert path.stat().st_mode & 0o777 == 0o600
    if kind == "link":
        assert (tmp_path / "elsewhere").read_text() == "somebody else's"


def test_a_folder_there_is_an_error_that_can_be_told(tmp_path: Path) -> None:
    make("folder", tmp_path / "file")
    with pytest.raises(OSError, match="file"):
        replace_file(tmp_path / "file", "ours", private=True)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_is_removed_with_all_that_is_in_it_but_what_links_lead_to(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    (folder / "a" / "b" / "a").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_text("gone")
    (folder / "a" / "link").symlink_to(outside)
    (folder / "link").symlink_to(outside / "kept")
    os.mkfifo(folder / "pipe")
    (folder / "a" / "b").chmod(0)
    remove_folder(folder)
    assert not folder.exists()
    assert (outside / "kept").read_text() == "kept"
    folder.symlink_to(outside)
    with pytest.raises(OSError, match="folder"):
        remove_folder(folder)
    assert (outside / "kept").exists()
