"""Packages: named by their content, packed the same every time, and read without trust."""

import gzip
import hashlib
import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.errors import InputError
from boa.packing.archive import BadPackage, Contents, read
from boa.packing.ignoring import Ignored
from boa.packing.pack import Package, pack
from boa.packing.unpack import unpack

MOST = 1024**2


def tree(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def names(package: Package) -> list[str]:
    found: list[str] = []
    read([package.data], lambda entry: found.append(entry.path), most=MOST)
    return found


def contents(data: bytes) -> Contents:
    return read([data], lambda entry: None, most=MOST)


def archive(*members: tarfile.TarInfo, format: int = tarfile.USTAR_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    return gzip.compress(out.getvalue())


def member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.size = kind, size
    return found


# The same folder, the same name


def test_a_folder_that_was_packed_comes_back_as_it_was(tmp_path: Path) -> None:
    folder = tree(tmp_path / "a", {"train.py": "print(1)\n", "lib/model.py": "", "ü/x.txt": "y"})
    os.chmod(folder / "train.py", 0o755)
    (folder / "empty").mkdir()
    package = pack(folder, most=MOST)
    found = unpack([package.data], str(tmp_path / "b"), package.digest, most=MOST)
    assert (tmp_path / "b/train.py").read_text() == "print(1)\n"
    assert (tmp_path / "b/ü/x.txt").read_text() == "y"
    assert (tmp_path / "b/empty").is_dir()
    assert os.stat(tmp_path / "b/train.py").st_mode & 0o777 == 0o700
    assert os.stat(tmp_path / "b/lib/model.py").st_mode & 0o777 == 0o600
    assert found == Contents(digest=package.digest, files=3, size=10)


def test_the_name_is_that_of_the_files_and_of_nothing_else(tmp_path: Path) -> None:
    files = {"b.py": "2", "a.py": "1"}
    one = tree(tmp_path / "one", files)
    other = tree(tmp_path / "other", dict(reversed(files.items())))
    os.utime(other / "a.py", (1, 1))
    os.chmod(other / "b.py", 0o600)
    assert pack(one, most=MOST) == pack(other, most=MOST)
    (other / "a.py").write_text("3")
    assert pack(one, most=MOST).digest != pack(other, most=MOST).digest


def test_the_name_is_the_hash_of_the_archive_as_tar_tools_see_it(tmp_path: Path) -> None:
    package = pack(tree(tmp_path, {"a/b.py": "1"}), most=MOST)
    plain = gzip.decompress(package.data)
    assert hashlib.sha256(plain).hexdigest() == package.digest
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        assert tar.getnames() == ["a", "a/b.py"]
    assert contents(gzip.compress(plain, 1)).digest == package.digest


def test_what_tar_packs_with_its_ustar_format_is_read(tmp_path: Path) -> None:
    tree(tmp_path / "a", {"lib/a.py": "1", "b.py": "2"})
    made = subprocess.run(
        ["tar", "-C", str(tmp_path / "a"), "--format=ustar", "-czf", "-", "."],
        capture_output=True,
        check=True,
    )
    assert contents(made.stdout).files == 2


@given(
    st.dictionaries(
        st.text("abcü./ -", min_size=1, max_size=40), st.binary(max_size=2000), max_size=8
    )
)
def test_any_folder_of_plain_files_survives_the_journey(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "in").mkdir()
    for name, data in files.items():
        (folder / "in" / f"x{name.replace('/', '_')}").write_bytes(data)
    package = pack(folder / "in", most=MOST)
    unpack([bytes([b]) for b in package.data], str(folder / "out"), package.digest, most=MOST)
    assert pack(folder / "out", most=MOST).digest == package.digest


# What stays behind


def test_boaignore_leaves_files_behind_and_takes_some_back(tmp_path: Path) -> None:
    tree(
        tmp_path,
        {
            ".boaignore": "data/\n*.ckpt\n!best.ckpt\n/out\ndocs/**/draft.md\n# nothing\n",
            "train.py": "",
            "data/big.bin": "",
            "a/data/big.bin": "",
            "a/x.ckpt": "",
            "best.ckpt": "",
            "out/log": "",
            "a/out/log": "",
            "docs/a/b/draft.md": "",
            "__pycache__/x.pyc": "",
            ".git/HEAD": "",
            ".env": "TOKEN=1",
        },
    )
    kept = [name for name in names(pack(tmp_path, most=MOST)) if "." in name or "out" in name]
    assert kept == [".boaignore", "a/out", "a/out/log", "best.ckpt", "train.py"]


def test_what_is_always_left_behind_can_be_asked_for() -> None:
    assert Ignored([])(".env", is_folder=False)
    assert not Ignored(["!.env"])(".env", is_folder=False)


@pytest.mark.parametrize("pattern", ["[", "[]", "***", "\\", "[!a]x", "(", "a{2}", "/", "!", "[^"])
def test_no_pattern_breaks_the_packing(pattern: str) -> None:
    Ignored([pattern])("a/b", is_folder=False)


def test_a_folder_that_is_too_large_names_its_largest_files(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(os.urandom(5000))
    with pytest.raises(InputError, match=r"too large.*weights\.bin"):
        pack(tmp_path, most=1000)


def test_links_are_their_files_and_those_that_lead_out_are_refused(tmp_path: Path) -> None:
    folder = tree(tmp_path / "a", {"real.py": "1"})
    (folder / "link.py").symlink_to("real.py")
    assert names(pack(folder, most=MOST)) == ["link.py", "real.py"]
    (folder / "out").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match=r"out in it is a link.*\.boaignore"):
        pack(folder, most=MOST)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="no plain file"):
        pack(tmp_path, most=MOST)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no folder"):
        pack(tmp_path / "none", most=MOST)


# Hostile packages


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (archive(member("../x")), "leads out"),
        (archive(member("a/../../x")), "leads out"),
        (archive(member("/etc/passwd")), "leads out"),
        (archive(member("a//b")), "leads out"),
        (archive(member("a\nb")), "no name"),
        (archive(member("link", tarfile.SYMTYPE)), "is a link"),
        (archive(member("link", tarfile.LNKTYPE)), "hard link"),
        (archive(member("null", tarfile.CHRTYPE)), "a device"),
        (archive(member("disk", tarfile.BLKTYPE)), "a device"),
        (archive(member("pipe", tarfile.FIFOTYPE)), "a pipe"),
        (archive(member("a"), member("a")), "twice"),
        (archive(member("a"), member("a/b")), "below a file"),
        (archive(member("a/b"), member("a")), "twice"),
        (archive(member("x", size=MOST + 1)), "more than"),
        (archive(member("n" * 300), format=tarfile.GNU_FORMAT), "ustar"),
        (archive(member("n" * 300), format=tarfile.PAX_FORMAT), "ustar"),
        (archive(member("a")) + b"more", "follows"),
        (archive(member("a"))[:-9], "breaks off"),
        (gzip.compress(b"x" * 512), "no ustar"),
        (gzip.compress(b""), "breaks off"),
        (b"plain text", "no gzip"),
        (b"", "breaks off"),
        (gzip.compress(bytes(MOST * 2)), "follows"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",  # a gzip file knows when it was made
)
def test_whatever_is_no_package_is_refused_and_leaves_nothing(
    tmp_path: Path, bad: bytes, why: str
) -> None:
    with pytest.raises(BadPackage, match=why):
        unpack([bad], str(tmp_path / "out"), "0" * 64, most=MOST)
    assert list(tmp_path.iterdir()) == []


def test_a_package_of_another_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadPackage, match="another"):
        unpack([archive(member("a"))], str(tmp_path / "out"), "0" * 64, most=MOST)
    assert list(tmp_path.iterdir()) == []


def test_a_small_package_that_promises_gigabytes_is_stopped_early() -> None:
    bomb = gzip.compress(bytes(64 * MOST))
    whole = archive(member("x", size=1000))
    with pytest.raises(BadPackage):
        read([whole, bomb], lambda entry: None, most=MOST)


@given(st.binary(max_size=600))
def test_no_bytes_do_anything_but_be_refused(data: bytes) -> None:
    for given_ in (data, gzip.compress(data)):
        try:
            contents(given_)
        except BadPackage:
            continue
