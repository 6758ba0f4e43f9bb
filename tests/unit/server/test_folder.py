"""A data folder has one service at a time, and one database for good."""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from boa.api.tokens import weakness_of
from boa.errors import InputError
from boa.server.folder import DataFolder
from boa.server.looking import check_owner


def test_a_second_service_is_refused_and_told_why(tmp_path: Path) -> None:
    first = DataFolder(tmp_path / "data")
    with pytest.raises(InputError, match=r"--data: in use by another boa serve.*to be ended first"):
        DataFolder(tmp_path / "data")
    first.close()
    DataFolder(tmp_path / "data").close()


def test_the_lock_of_a_service_that_was_killed_is_gone(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from boa.server.folder import DataFolder;"
        "DataFolder(Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    DataFolder(tmp_path).close()


def test_a_folder_is_refused_with_another_database_or_a_new_one(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    check_owner(folder.path, {})
    folder.belongs_to("boa-1-a")
    check_owner(folder.path, {"cluster": "boa-1-a"})
    for other in (None, "boa-1-b"):
        with pytest.raises(InputError, match="belongs to another database"):
            check_owner(folder.path, {"cluster": other})
    folder.close()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"--data .*file"):
        DataFolder(tmp_path / "file" / "data")


@pytest.mark.parametrize("odd", ["empty", "zeros", "bytes", "folder", "pipe", "loop"])
def test_an_owner_that_cannot_be_made_out_is_told_of_and_does_not_keep_the_service_down(
    tmp_path: Path, odd: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "owner"
    texts = {"empty": b"", "zeros": b"\0" * 21, "bytes": b"\xff\xfe\x00boa"}
    if odd in texts:
        path.write_bytes(texts[odd])
    elif odd == "folder":
        path.mkdir()
    elif odd == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("owner")
    with closing(DataFolder(tmp_path)) as folder:
        check_owner(folder.path, {"cluster": "boa-1-2"})
        assert "owner" in caplog.text
        folder.belongs_to("boa-1-2")
        check_owner(folder.path, {"cluster": "boa-1-2"})
    if odd in texts:
        assert path.read_text() == "boa-1-2"


def test_the_service_s_own_token_is_made_once_and_for_its_user_alone(tmp_path: Path) -> None:
    with closing(DataFolder(tmp_path / "data")) as folder:
        token = folder.token()
        assert folder.token() == token
    with closing(DataFolder(tmp_path / "data")) as folder:
        assert folder.token() == token, "the same after a restart"
    assert (tmp_path / "data" / "token").stat().st_mode & 0o777 == 0o600
    with closing(DataFolder(tmp_path / "other")) as folder:
        assert folder.token() != token
    assert weakness_of(token) is None


def _opened(path: Path) -> None:
    path.chmod(0o644)


def _emptied(path: Path) -> None:
    path.write_bytes(b"\0" * 40)


def _linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


@pytest.mark.parametrize("harm", [_opened, _emptied, _linked])
def test_a_token_that_others_could_read_or_that_is_damaged_is_made_anew(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    with closing(DataFolder(tmp_path)) as folder:
        before = folder.token()
        harm(tmp_path / "token")
        made = folder.token()
        assert made != before
        assert folder.token() == made
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "token").is_symlink()
