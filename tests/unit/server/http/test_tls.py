"""TLS: files that are wrong are told before anything begins; clients and jobs check who answers."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boa.client import Client
from boa.errors import FileError, InputError, NoServer
from boa.runtime.report_tokens import report_token
from boa.server.http.tls import Tls, certificates, report_ca, tls_of
from boa.train.replay import Reporter
from boa.train.sender import Sender
from certificates import certificate
from documents import REPORT
from fakes import SECRET, FakeService
from live import config
from replacing import make, promptly


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return certificate(tmp_path)


@pytest.fixture
def service(tmp_path: Path, files: tuple[Path, Path]) -> FakeService:
    return FakeService(tmp_path / "service", tls=Tls(*map(str, files)))


@pytest.fixture
def url(service: FakeService) -> Iterator[str]:
    with service.serving() as url:
        yield url


def test_a_client_believes_whom_its_file_names_and_nobody_else(
    url: str, files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert url.startswith("https://")
    monkeypatch.delenv("BOA_CA_FILE", raising=False)
    with Client(url) as client, pytest.raises(NoServer, match="BOA_CA_FILE"):
        client.jobs()
    other, _ = certificate(tmp_path, "other")
    monkeypatch.setenv("BOA_CA_FILE", str(other))
    with Client(url) as client, pytest.raises(NoServer, match="not believed"):
        client.jobs()
    monkeypatch.setenv("BOA_CA_FILE", str(files[0]))
    with Client(url) as client:
        assert client.jobs() == []
    monkeypatch.setenv("BOA_CA_FILE", str(tmp_path / "none.pem"))
    with pytest.raises(InputError, match="BOA_CA_FILE"):
        Client(url)


class Reports(list[Any]):
    """What the control loop was told, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.there = threading.Event()

    def append(self, report: Any) -> None:
        super().append(report)
        self.there.set()


def test_jobs_report_over_tls_with_the_certificate_that_they_were_given(
    url: str, service: FakeService, files: tuple[Path, Path]
) -> None:
    job = service.submit()
    service.control.run(job)
    token = report_token(SECRET, job, 1)
    where, ca = f"{url}/api/v1/jobs/{job}/report", certificates(str(files[0]), "")
    service.control.reports = reports = Reports()
    sender = Sender(where, token, 0.0, ca)
    sender.offer(REPORT, prompt=True)
    assert reports.there.wait(300)
    sender.close()
    reporter = Reporter(where, token, ca)
    reporter.post(REPORT)
    reporter.close()
    assert len(reports) == 2
    Reporter(where, token).post(REPORT)  # it does not know whom it talks to
    assert len(reports) == 2


def test_a_sender_takes_the_next_token_from_the_answer(tmp_path: Path) -> None:
    service = FakeService(tmp_path)
    job = service.submit()
    service.control.run(job)
    service.control.reports = reports = Reports()
    import time

    nearly_over = report_token(SECRET, job, 1, int(time.time()) + 60)
    with service.serving() as url:
        sender = Sender(f"{url}/api/v1/jobs/{job}/report", nearly_over, 0.0)
        sender.offer(REPORT, prompt=True)
        assert reports.there.wait(300)
        sender.close()
    assert nearly_over not in sender._headers["Authorization"]


def test_files_that_are_wrong_are_one_clear_error_each(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    cert, key = map(str, files)
    _, other_key = certificate(tmp_path, "other")
    _, locked = certificate(tmp_path, "locked", password=b"word")
    nonsense = tmp_path / "nonsense"
    nonsense.write_text("nothing of the kind")
    wrong: list[tuple[dict[str, str], str]] = [
        ({"tls_cert": "/none.pem"}, "--tls-cert /none.pem: no such file"),
        ({"tls_cert": str(nonsense)}, "no certificate in it"),
        ({"tls_cert": cert, "tls_key": "/none.pem"}, "--tls-key /none.pem: no such file"),
        ({"tls_cert": cert}, "does not go with --tls-cert"),
        ({"tls_cert": cert, "tls_key": str(other_key)}, "does not go with --tls-cert"),
        ({"tls_cert": cert, "tls_key": str(nonsense)}, "does not go with --tls-cert"),
        ({"tls_cert": cert, "tls_key": str(locked)}, "is encrypted"),
        ({"tls_key": key}, "--tls-key: has no certificate"),
    ]
    for fields, words in wrong:
        with pytest.raises(FileError) as told:
            tls_of(config(tmp_path, **fields))
        assert words in str(told.value)
    assert tls_of(config(tmp_path)) is None
    assert tls_of(config(tmp_path, tls_cert=cert, tls_key=key)) == Tls(cert, key)


def test_jobs_get_certificates_and_never_the_key(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BOA_CA_FILE", raising=False)
    both = tmp_path / "both.pem"
    both.write_text(files[1].read_text() + files[0].read_text())
    given = report_ca(config(tmp_path, tls_cert=str(both)))
    assert given == files[0].read_text().strip()
    assert "PRIVATE" not in given
    assert report_ca(config(tmp_path)) == ""
    other, _ = certificate(tmp_path, "other")
    monkeypatch.setenv("BOA_CA_FILE", str(other))
    assert report_ca(config(tmp_path)) == other.read_text().strip()


@pytest.mark.parametrize("kind", ["pipe", "folder", "socket"])
def test_nobody_waits_for_a_certificate_that_is_no_file(tmp_path: Path, kind: str) -> None:
    make(kind, tmp_path / "cert.pem")
    with pytest.raises(FileError, match=f"is a {kind}, not a plain file"):
        promptly(lambda: certificates(str(tmp_path / "cert.pem"), "--tls-cert"))
