"""The shelf of packages: uploaded in parts, checked, kept once, for those who have them."""

import gzip
import io
import os
import tarfile
import threading
from pathlib import Path

import pytest

from boa.errors import InputError
from boa.model.access import Caller
from boa.packing.pack import Package, pack
from boa.runtime import packages
from boa.runtime.packages import DRAFT_S, Kept, NoSuchPackage, PackageShelf
from boa.units import DAY_S

ANN, BOB = Caller(name="ann", role="member", team="vision"), Caller(name="bob", role="member")
EVE, ADMIN = Caller(name="eve", role="member", team="vision"), Caller(name="root", role="admin")


class Shelf(PackageShelf):
    def __init__(self, folder: Path, max_bytes: int = 10**6) -> None:
        self.now = 1e9
        super().__init__(folder, max_bytes=max_bytes, clock=lambda: self.now)

    def put(self, package: Package, by: Caller = ANN, part: int = 10**6) -> Kept | int:
        got: Kept | int = 0
        total = len(package.data)
        for offset in range(0, total, part):
            data = package.data[offset : offset + part]
            got = self.receive(package.digest, by, offset=offset, total=total, data=data)
        return got


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "packages")


@pytest.fixture
def package(tmp_path: Path) -> Package:
    (tmp_path / "code").mkdir()
    (tmp_path / "code/train.py").write_text("print(1)\n")
    return pack(tmp_path / "code", most=10**6)


def files(shelf: Shelf) -> list[str]:
    return sorted(os.listdir(shelf.path("x").parent))


def test_a_package_that_came_in_parts_is_kept_and_known(shelf: Shelf, package: Package) -> None:
    kept = shelf.put(package, part=40)
    assert isinstance(kept, Kept)
    assert kept == shelf.get(package.digest, ANN)
    assert (kept.files, kept.unpacked, kept.paths) == (1, 9, frozenset({"train.py"}))
    assert shelf.path(package.digest).read_bytes() == package.data
    assert [one.digest for one in shelf.listed(ANN)] == [package.digest]


def test_a_package_is_for_those_who_have_it_their_team_and_admins(
    shelf: Shelf, package: Package
) -> None:
    shelf.put(package)
    assert shelf.get(package.digest, EVE)
    assert shelf.get(package.digest, ADMIN)
    with pytest.raises(NoSuchPackage):
        shelf.get(package.digest, BOB)
    assert shelf.listed(BOB) == []
    shelf.put(package, BOB)  # who has it may show so
    assert shelf.get(package.digest, BOB)
    assert shelf.get(package.digest, ANN)
    assert files(shelf) == [f"{package.digest}.json", f"{package.digest}.tar.gz"]


def test_a_part_that_does_not_follow_says_what_would(shelf: Shelf, package: Package) -> None:
    total = len(package.data)
    shelf.receive(package.digest, ANN, offset=0, total=total, data=package.data[:10])
    with pytest.raises(InputError, match=r"offset.*10"):
        shelf.receive(package.digest, ANN, offset=20, total=total, data=package.data[20:30])
    with pytest.raises(InputError, match=r"offset.*0"):  # another's draft is another
        shelf.receive(package.digest, BOB, offset=10, total=total, data=package.data[10:])
    assert shelf.put(package) == shelf.get(package.digest, ANN)  # from the beginning again


@pytest.mark.parametrize("total", [0, -1, 10**6 + 1])
def test_what_is_too_large_is_refused_before_it_is_written(
    shelf: Shelf, package: Package, total: int
) -> None:
    with pytest.raises(InputError, match="max_mb"):
        shelf.receive(package.digest, ANN, offset=0, total=total, data=b"x")
    with pytest.raises(InputError, match="body"):
        shelf.receive(package.digest, ANN, offset=0, total=3, data=b"xxxx")


def test_what_is_no_package_is_refused_and_not_kept(shelf: Shelf) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        link = tarfile.TarInfo("etc")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        tar.addfile(link)
    for data in (gzip.compress(out.getvalue()), b"junk"):
        with pytest.raises(InputError, match="no package"):
            shelf.receive("0" * 64, ANN, offset=0, total=len(data), data=data)
    assert files(shelf) == []


def test_a_package_under_another_name_is_refused(shelf: Shelf, package: Package) -> None:
    with pytest.raises(InputError, match=package.digest):
        shelf.receive("0" * 64, ANN, offset=0, total=len(package.data), data=package.data)
    assert files(shelf) == []


def test_a_package_goes_when_nobody_has_needed_it_for_long(shelf: Shelf, package: Package) -> None:
    shelf.put(package)
    shelf.now += 5 * DAY_S
    assert shelf.sweep({package.digest}, DAY_S) == []
    assert shelf.sweep((), 6 * DAY_S) == []
    shelf.get(package.digest, ANN, using=True)
    shelf.now += 0.9 * DAY_S
    assert shelf.sweep((), DAY_S) == []
    shelf.now += 0.2 * DAY_S
    assert shelf.sweep((), DAY_S) == [package.digest]
    assert files(shelf) == []


def test_an_upload_that_nobody_goes_on_with_is_given_up(shelf: Shelf, package: Package) -> None:
    shelf.receive(package.digest, ANN, offset=0, total=99, data=b"x")
    (draft,) = shelf.path("x").parent.iterdir()
    os.utime(draft, (shelf.now, shelf.now))
    shelf.now += DRAFT_S + 1
    shelf.sweep((), DAY_S)
    assert files(shelf) == []


def test_a_package_whose_description_is_damaged_is_mended_by_another_upload(
    shelf: Shelf, package: Package
) -> None:
    shelf.put(package)
    shelf.path(package.digest).with_name(f"{package.digest}.json").write_text("{")
    with pytest.raises(NoSuchPackage):
        shelf.get(package.digest, ANN)
    shelf.put(package)
    assert shelf.get(package.digest, ANN)


def test_a_package_is_on_the_disk_before_it_is_named(
    shelf: Shelf, package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def synced(path: Path) -> None:
        done.append(path.name)

    def renamed(old: Path, new: Path) -> None:
        done.append(Path(new).name)
        rename(old, new)

    rename = os.replace
    monkeypatch.setattr("boa.runtime.packages.to_disk", synced)
    monkeypatch.setattr(os, "replace", renamed)
    shelf.put(package)
    named = done.index(f"{package.digest}.tar.gz")
    assert done[named - 1].endswith(".part")
    assert done[named + 1] == "packages"


def test_a_package_that_is_submitted_with_is_not_swept_in_between(
    shelf: Shelf, package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.put(package)
    shelf.now += 40 * DAY_S
    known, swept = shelf._known, threading.Thread(target=shelf.sweep, args=((), 30 * DAY_S))

    def looked(digest: str) -> Kept | None:
        found = known(digest)
        swept.start()  # at the worst moment: it was found, and is not used yet
        swept.join(0.2)
        return found

    monkeypatch.setattr(shelf, "_known", looked)
    shelf.get(package.digest, ANN, using=True)
    swept.join()
    assert shelf.path(package.digest).exists()


def test_nobody_has_more_than_a_few_uploads_begun(shelf: Shelf, package: Package) -> None:
    for number in range(20):
        os.makedirs(shelf.path("x").parent, exist_ok=True)
        shelf.receive(f"{number:064x}", ANN, offset=0, total=100, data=b"x")
    shelf.receive("f" * 64, BOB, offset=0, total=100, data=b"x")
    assert len(files(shelf)) == packages.MAX_DRAFTS + 1
    assert shelf.receive("f" * 64, BOB, offset=1, total=100, data=b"x") == 2


def test_a_few_bytes_that_become_gigabytes_are_no_package(shelf: Shelf) -> None:
    assert packages.most_unpacked(10**4) < 2**29
    assert packages.most_unpacked(10**8) > 2 * 10**9
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        entry = tarfile.TarInfo("zeros")
        entry.size = 2**31 - 2**20
        tar.addfile(entry)
    data = gzip.compress(made.getvalue())
    with pytest.raises(InputError, match="bytes once it is unpacked"):
        shelf.receive("0" * 64, ANN, offset=0, total=len(data), data=data)
