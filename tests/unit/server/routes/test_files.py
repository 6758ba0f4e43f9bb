"""Packages and artifacts over the API: who may, what is refused, what is written down."""

import os
from pathlib import Path
from typing import Any

import pytest

from boa.client import Client
from boa.errors import FileError, InputError, Refused
from boa.packing.pack import Package, pack
from boa.runtime.artifacts import ArtifactFolders, Retention
from boa.runtime.packages import PackageShelf
from boa.runtime.places import Anywhere
from boa.server.files import JobFiles
from fakes import NOW, FakeService
from unit.server.http.test_roles import OWN, ask, record, submitted

OCTETS = {"Content-Type": "application/octet-stream"}


@pytest.fixture
def files(tmp_path: Path) -> JobFiles:
    return JobFiles(
        packages=PackageShelf(tmp_path / "packages", max_bytes=10**5),
        artifacts=ArtifactFolders(tmp_path / "artifacts", Retention(keep_s=60.0)),
        places=Anywhere(),
    )


@pytest.fixture
def service(tmp_path: Path, files: JobFiles) -> FakeService:
    made = FakeService(tmp_path, token=OWN, files=files)
    known = (
        record("vera", "viewer", team="vision"),
        record("mia", "member", team="vision"),
        record("max", "member", team="vision"),
        record("otto", "member", team="speech"),
    )
    made.control.tokens = {token.name: token for token in known}
    return made


@pytest.fixture
def package(tmp_path: Path) -> Package:
    (tmp_path / "code").mkdir()
    (tmp_path / "code/train.py").write_text("print(1)\n")
    return pack(tmp_path / "code", most=10**6)


def put(service: FakeService, who: str, package: Package, **options: Any) -> Any:
    headers = options.pop("headers", OCTETS)
    path = options.pop("path", f"packages/{package.digest}?total={len(package.data)}")
    content = options.pop("content", package.data)
    return ask(service, who, "PUT", path, content=content, headers=headers)


def left(files: JobFiles, job: str) -> None:
    folder = files.artifacts.root / job
    folder.mkdir(parents=True)
    (folder / "model.pt").write_bytes(b"\0weights")


# Packages


def test_a_package_is_uploaded_once_and_written_down(
    service: FakeService, package: Package
) -> None:
    assert ask(service, "mia", "GET", f"packages/{package.digest}").status_code == 404
    answer = put(service, "mia", package)
    assert answer.status_code == 200, answer.text
    found = answer.json()["package"]
    assert (found["digest"], found["files"]) == (package.digest, 1)
    assert ask(service, "max", "GET", f"packages/{package.digest}").json()["package"] == found
    assert ask(service, "mia", "GET", "packages").json() == {
        "packages": [found],
        "max_bytes": 10**5,
        "keep_days": 30.0,
    }
    (line,) = [one for one in service.control.store.audited if one.what == "package upload"]
    assert (line.who, line.subject) == ("mia", package.digest[:12])


def test_packages_are_hidden_from_other_teams_and_viewers(
    service: FakeService, package: Package
) -> None:
    put(service, "mia", package)
    assert ask(service, "otto", "GET", f"packages/{package.digest}").status_code == 404
    assert ask(service, "otto", "GET", "packages").json()["packages"] == []
    assert ask(service, "vera", "GET", "packages").status_code == 403
    assert put(service, "vera", package).status_code == 403


@pytest.mark.parametrize(
    ("options", "status", "field"),
    [
        ({"path": "packages/abc?total=3"}, 422, "package"),
        ({"path": f"packages/{'A' * 64}?total=3"}, 422, "package"),
        ({"path": f"packages/{'0' * 64}"}, 422, "total"),
        ({"path": f"packages/{'0' * 64}?total=99999999"}, 422, "total"),
        ({"path": f"packages/{'0' * 64}?total=99&offset=5"}, 422, "offset"),
        ({"path": f"packages/{'0' * 64}?total=4", "content": b"junk"}, 422, "package"),
        ({"path": f"packages/{'0' * 64}?total=4", "content": b""}, 422, "the body"),
        ({"path": f"packages/{'0' * 64}?totl=4"}, 422, "totl"),
        ({"headers": {"Content-Type": "application/json"}}, 400, None),
        ({"content": b"x" * (8 * 1024**2 + 1)}, 413, None),
    ],
)
def test_a_wrong_upload_is_refused_by_name(
    service: FakeService,
    package: Package,
    options: dict[str, Any],
    status: int,
    field: str | None,
) -> None:
    answer = put(service, "mia", package, **options)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"].get("field") == field


def test_the_client_packs_uploads_and_submits_what_it_sent(
    service: FakeService, files: JobFiles, tmp_path: Path, package: Package
) -> None:
    (tmp_path / "vars").write_text("SEED=1\n")
    job = {
        "class": "a",
        "run": ["python", "train.py"],
        "workdir": str(tmp_path / "code"),
        "package": "workdir",
        "env_file": str(tmp_path / "vars"),
    }
    with service.serving() as url, Client(url, OWN) as client:
        spec = client.submit(job)["spec"]
        (first, second) = client.submit_many([job, job])
        assert client.packages()["packages"][0]["digest"] == package.digest
    assert (spec["package"], spec["env"]) == (package.digest, {"SEED": "1"})
    assert "workdir" not in spec
    assert "env_file" not in spec
    assert service.control.active[second].spec.package == package.digest
    assert files.packages.path(package.digest).read_bytes() == package.data
    assert first != second


def test_a_folder_that_many_share_is_packed_once(
    service: FakeService, tmp_path: Path, package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed: list[str] = []

    def pack(client: Client, folder: str) -> str:
        packed.append(folder)
        return package.digest

    monkeypatch.setattr(Client, "pack", pack)
    folder = str(tmp_path / "code")
    job = {"class": "a", "run": ["true"], "workdir": folder, "package": "workdir"}
    with service.serving() as url, Client(url, OWN) as client:
        client.submit_many([job, job, job])
    assert packed == [folder]


def test_the_client_sends_large_packages_in_parts(
    service: FakeService, tmp_path: Path, package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boa.client.files.PART", 30)
    with service.serving() as url, Client(url, OWN) as client:
        assert client.pack(tmp_path / "code") == package.digest


def test_a_folder_that_is_too_large_is_refused_before_it_is_sent(
    service: FakeService, tmp_path: Path
) -> None:
    (tmp_path / "big").mkdir()
    (tmp_path / "big/random").write_bytes(os.urandom(2 * 10**5))
    with (
        service.serving() as url,
        Client(url, OWN) as client,
        pytest.raises(InputError, match="too large"),
    ):
        client.pack(tmp_path / "big")


# Artifacts


def test_artifacts_are_listed_and_fetched_whole(
    service: FakeService, files: JobFiles, tmp_path: Path
) -> None:
    with service.serving() as url, Client(url, OWN) as client:
        job = client.submit({"class": "a", "run": "true"})["id"]
        assert client.artifacts(job)["files"] == []
        left(files, job)
        found = client.artifacts(job)
        assert [(one["path"], one["size"]) for one in found["files"]] == [("model.pt", 8)]
        assert found["kept_until"] is None
        path = client.fetch_artifact(job, "model.pt", tmp_path / "out")
        assert path.read_bytes() == b"\0weights"
        with pytest.raises(Refused, match="boa artifacts ls"):
            client.fetch_artifact(job, "none", tmp_path / "out")
        with pytest.raises(FileError, match="leads out"):
            client.fetch_artifact(job, "../x", tmp_path / "out")
        assert [one.name for one in (tmp_path / "out").iterdir()] == ["model.pt"]


def test_the_end_of_a_job_begins_the_time_of_its_artifacts(
    service: FakeService, files: JobFiles
) -> None:
    job = submitted(service, "mia")
    left(files, job)
    service.control.end(job, "succeeded", 0)
    assert ask(service, "mia", "GET", f"jobs/{job}/artifacts").json()["kept_until"] == NOW + 60
    service.control.clock += 59
    files.sweep(service.control, service.control.store)
    assert ask(service, "mia", "GET", f"jobs/{job}/artifacts").json()["files"]
    service.control.clock += 2
    files.sweep(service.control, service.control.store)
    assert ask(service, "mia", "GET", f"jobs/{job}/artifacts").json()["files"] == []


def test_artifacts_are_for_the_owner_the_team_and_admins(
    service: FakeService, files: JobFiles
) -> None:
    job = submitted(service, "mia")
    left(files, job)
    refused = {"mia": 0, "max": 0, "own": 0, "otto": 1, "vera": 1}
    for path in ("artifacts", "artifacts/file?path=model.pt"):
        for who, is_refused in refused.items():
            answer = ask(service, who, "GET", f"jobs/{job}/{path}")
            assert answer.status_code == (403 if is_refused else 200), (who, answer.text)


@pytest.mark.parametrize("path", ["../1/model.pt", "/etc/passwd", "none", "..%2F..%2Fx", ""])
def test_a_path_that_leads_elsewhere_is_not_found(
    service: FakeService, files: JobFiles, path: str
) -> None:
    job = submitted(service, "mia")
    left(files, job)
    answer = ask(service, "mia", "GET", f"jobs/{job}/artifacts/file?path={path}")
    assert answer.status_code == 404, answer.text


def test_what_is_sent_is_never_shown_by_a_browser_as_a_page(
    service: FakeService, files: JobFiles
) -> None:
    job = submitted(service, "mia")
    left(files, job)
    headers = ask(service, "mia", "GET", f"jobs/{job}/artifacts/file?path=model.pt").headers
    assert headers["content-type"] == "application/octet-stream"
    assert headers["content-disposition"] == "attachment"
    assert headers["x-content-type-options"] == "nosniff"
