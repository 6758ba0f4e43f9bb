"""Artifacts of jobs: listed and read without trust, kept for a while."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.runtime.artifacts import (
    ArtifactFolders,
    NoSuchArtifact,
    Retention,
    to_remove,
)
from boa.units import DAY_S


@pytest.fixture
def folders(tmp_path: Path) -> ArtifactFolders:
    return ArtifactFolders(tmp_path / "artifacts")


def left(folders: ArtifactFolders, job: str, **files: str) -> Path:
    folder = folders.root / job
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder


def paths(folders: ArtifactFolders, job: str = "1") -> list[str]:
    return [one.path for one in folders.listing(job).files]


def test_plain_files_are_listed_by_their_paths_and_read(folders: ArtifactFolders) -> None:
    left(folders, "1", model="abc", metrics__last="de")
    found = folders.listing("1")
    assert [(one.path, one.size) for one in found.files] == [("metrics/last", 2), ("model", 3)]
    assert (found.size, found.more, found.odd) == (5, 0, 0)
    with folders.open("1", "metrics/last") as file:
        assert file.read() == b"de"


def test_a_job_that_left_nothing_has_no_files(folders: ArtifactFolders) -> None:
    assert folders.listing("7").files == ()
    with pytest.raises(NoSuchArtifact):
        folders.open("7", "model")


def test_links_pipes_and_odd_names_are_counted_and_never_followed(
    folders: ArtifactFolders, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key").write_text("hidden")
    folder = left(folders, "1", fine="1")
    (folder / "link").symlink_to(tmp_path / "secret/key")
    (folder / "way").symlink_to(tmp_path / "secret")
    os.mkfifo(folder / "pipe")
    (folder / "a\nb").write_text("x")
    found = folders.listing("1")
    assert [one.path for one in found.files] == ["fine"]
    assert found.odd == 4
    for path in ("link", "way/key", "pipe", "a\nb"):
        with pytest.raises(NoSuchArtifact):
            folders.open("1", path)


@pytest.mark.parametrize(
    "path", ["../2/model", "/etc/passwd", "..", ".", "", "a/../../2/model", "a\0b", "x" * 5000, "a"]
)
def test_no_path_leads_out_of_the_jobs_folder(folders: ArtifactFolders, path: str) -> None:
    left(folders, "1", model="1", a__b="1")
    left(folders, "2", model="other")
    with pytest.raises(NoSuchArtifact):
        folders.open("1", path)


def test_a_job_whose_folder_was_replaced_by_a_link_has_none(
    folders: ArtifactFolders, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/key").write_text("hidden")
    folders.root.mkdir()
    (folders.root / "1").symlink_to(tmp_path / "other")
    assert paths(folders) == []
    with pytest.raises(NoSuchArtifact):
        folders.open("1", "key")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads what others may not")
def test_anothers_file_that_was_linked_in_is_not_given_out(
    folders: ArtifactFolders, tmp_path: Path
) -> None:
    folder = left(folders, "1", own="1")
    os.link(folder / "own", folder / "twice")
    (tmp_path / "shadow").write_text("hidden")
    os.link(tmp_path / "shadow", folder / "shadow")
    for path in (folder, folder / "own"):
        os.chown(path, 65534, 65534)
    with folders.open("1", "twice") as file:
        assert file.read() == b"1"
    with pytest.raises(NoSuchArtifact):
        folders.open("1", "shadow")


def test_artifacts_go_after_their_time_and_those_of_active_jobs_stay(tmp_path: Path) -> None:
    folders = ArtifactFolders(tmp_path, Retention(keep_s=10.0))
    for job in ("1", "2", "3", "4"):
        left(folders, job, model="x")
    ends = {"1": 0.0, "2": 95.0, "3": 0.0}  # 4: nobody knows it
    assert folders.sweep({"3"}, ends.get, 100.0) == ["1"]
    assert sorted(os.listdir(tmp_path)) == ["2", "3", "4"]


def test_the_oldest_go_first_where_all_take_too_much(tmp_path: Path) -> None:
    folders = ArtifactFolders(tmp_path, Retention(keep_s=100.0, max_bytes=25))
    for job in ("1", "2", "3"):
        left(folders, job, model="x" * 10)
    ends = {"1": 5.0, "2": 3.0, "3": 4.0}
    assert folders.sweep((), ends.get, 10.0) == ["2"]


@given(
    st.dictionaries(st.text("0123456789", min_size=1), st.tuples(st.floats(0, 99), st.integers(0)))
)
def test_what_stays_is_within_its_time_and_its_bound(
    jobs: dict[str, tuple[float, int]],
) -> None:
    kept = Retention(keep_s=50.0, max_bytes=1000)
    ended, sizes = [(e, j) for j, (e, _) in jobs.items()], {j: s for j, (_, s) in jobs.items()}
    gone = to_remove(ended, sizes, 100.0, kept)
    stay = jobs.keys() - set(gone)
    assert sum(sizes[job] for job in stay) <= 1000
    assert all(jobs[job][0] >= 50.0 for job in stay)
    assert len(gone) == len(set(gone))


def test_the_end_of_their_time_is_known_once_the_job_has_ended() -> None:
    assert Retention(keep_s=DAY_S).kept_until(None) is None
    assert Retention(keep_s=DAY_S).kept_until(5.0) == DAY_S + 5


def test_folders_too_deep_to_walk_are_told_of_and_go_with_the_rest(tmp_path: Path) -> None:
    folders = ArtifactFolders(tmp_path, Retention(keep_s=10, max_bytes=1))
    nested(left(folders, "1", model="abc"), 1500)
    found = folders.listing("1")
    assert ([one.path for one in found.files], found.odd) == (["model"], 1)
    with pytest.raises(NoSuchArtifact):
        folders.open("1", "/".join(["d"] * 1500 + ["f"]))
    assert folders.sweep((), lambda job: 0.0, 20.0) == ["1"]
    assert not (tmp_path / "1").exists()


def nested(folder: Path, levels: int) -> None:
    where = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=where)
        above, where = where, os.open("d", os.O_RDONLY, dir_fd=where)
        os.close(above)
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=where))
    os.close(where)
