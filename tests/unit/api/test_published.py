"""What a service tells its user's own commands: found by the address, believed only if private."""

import json
import os
from pathlib import Path

import pytest

from boa.api.published import folders, found, publishing

URL = "http://127.0.0.1:8420"


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The folder of state, and that of what runs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    state, run = folders()
    return state, run


def token_at(url: str) -> str | None:
    one = found(url)
    return None if one is None else one.token


def test_a_token_is_found_by_the_address_until_the_service_ends() -> None:
    with publishing(URL, "first") as files, publishing("http://127.0.0.1:9000", "second"):
        assert token_at(URL) == "first"
        assert token_at("http://localhost:8420") == "first"
        assert token_at("http://127.0.0.1:9000") == "second"
        assert token_at("http://127.0.0.1:9001") is None
        assert token_at("http://elsewhere:8420") is None
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
        assert {file.parent.stat().st_mode & 0o777 for file in files} == {0o700}
    assert token_at(URL) is None
    assert not any(file.exists() for file in files)


def test_it_is_found_with_another_home_and_where_one_cannot_be_written(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    places[0].parent.parent.write_text("in the way")
    with publishing(URL, "token") as files:
        assert [file.parent for file in files] == [places[1]]
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
        assert token_at(URL) == "token"


def test_without_any_folder_to_write_nothing_is_told_and_nothing_raised(
    places: tuple[Path, Path],
) -> None:
    for place in places:
        place.parent.parent.write_text("in the way")
    with publishing(URL, "token") as files:
        assert files == []
        assert token_at(URL) is None


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o602])
def test_a_file_that_others_may_touch_is_not_believed(mode: int) -> None:
    with publishing(URL, "token") as files:
        for file in files:
            file.chmod(mode)
        assert token_at(URL) is None


def test_nor_is_a_folder_that_they_may_write_to() -> None:
    with publishing(URL, "token") as files:
        for file in files:
            file.parent.chmod(0o777)
        assert token_at(URL) is None


@pytest.mark.parametrize("mode", [0o777, 0o720, 0o711])
def test_nor_is_anything_below_a_folder_that_they_may_write_to(
    places: tuple[Path, Path], mode: int
) -> None:
    for place in places:
        place.parent.mkdir(parents=True)
        place.parent.chmod(mode)
    with publishing(URL, "token") as files:
        assert bool(files) == (mode == 0o711), "others may pass through it"
        assert token_at(URL) == ("token" if files else None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
@pytest.mark.parametrize("kind", ["folder", "link"])
def test_nor_is_anything_below_somebody_else_s_folder(
    places: tuple[Path, Path], tmp_path: Path, kind: str
) -> None:
    """Whoever comes first may make /tmp/boa-UID."""
    for n, place in enumerate(places):
        made = place.parent if kind == "folder" else tmp_path / f"ours-{n}"
        made.mkdir(parents=True, mode=0o700)
        if kind == "link":
            place.parent.parent.mkdir(parents=True)
            place.parent.symlink_to(made)
        os.chown(place.parent, 12345, 12345, follow_symlinks=False)
    with publishing(URL, "token") as files:
        assert files == []
        assert token_at(URL) is None


def test_nor_are_a_link_a_pipe_and_nonsense(places: tuple[Path, Path], tmp_path: Path) -> None:
    with publishing(URL, "token") as files:
        linked, piped = files
        (tmp_path / "copy").write_text(linked.read_text())
        (tmp_path / "copy").chmod(0o600)
        for file in files:
            file.unlink()
        linked.symlink_to(tmp_path / "copy")
        os.mkfifo(piped, 0o600)
        assert token_at(URL) is None
        linked.unlink()
        for nonsense in ("", "[]", '{"url": 1}', "{"):
            linked.write_text(nonsense)
            linked.chmod(0o600)
            assert token_at(URL) is None


def test_a_service_forgets_who_had_its_port_and_who_was_killed(places: tuple[Path, Path]) -> None:
    with publishing(URL, "old"):
        killed = places[0] / "127.0.0.1_1234.json"
        killed.write_text(json.dumps({"url": "http://127.0.0.1:1234", "token": "t", "pid": 2**30}))
        killed.chmod(0o600)
        with publishing(URL, None) as files:
            assert files == []
            assert token_at(URL) is None, "it wants none, or one that is not told"
        with publishing("http://127.0.0.1:7", "new"):
            assert not killed.exists()
