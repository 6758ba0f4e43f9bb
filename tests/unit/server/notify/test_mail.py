"""Notices by e-mail, to a real mail server of the tests."""

import ssl
from pathlib import Path
from typing import Any

import pytest

from boa.model.notices import NotifyTarget
from boa.runtime.vault import Vault
from boa.server.notify import mail
from boa.server.notify.couriers import Sender
from boa.server.notify.errors import NotDelivered
from certificates import certificate
from receivers import Mails, Posts, mail_server
from unit.server.notify.test_couriers import hook, notice, posts, secret_file, vault

assert posts, vault  # fixtures


def mailed(mails: Mails, **fields: Any) -> NotifyTarget:
    given: dict[str, Any] = {
        "name": "mail",
        "kind": "email",
        "to": ("alice@example.com", "bob@example.com"),
        "sender": "boa@example.com",
        "smtp": f"127.0.0.1:{mails.port}",
        "security": "none",
    }
    return NotifyTarget(**{**given, **fields})


def test_an_email_has_all_that_waits_and_its_headers_are_our_own(vault: Vault) -> None:
    with mail_server() as mails:
        evil = notice(1, text="job 1 (net\r\nBcc: eve@example.com\r\n\r\nü) failed")
        Sender(vault, "boa-test")(mailed(mails), [evil, notice(2)])
    (got,) = mails.got
    assert mails.to == [["alice@example.com", "bob@example.com"]]
    assert got["Subject"].startswith("[boa] job 1 (net  Bcc: eve")
    assert got["Subject"].endswith("(and 1 more)")
    assert got["Bcc"] is None
    assert got["Auto-Submitted"] == "auto-generated"
    assert "job 2 succeeded" in got.get_content()
    assert "ü" in got.get_content()


def test_the_same_notices_are_the_same_mail_to_who_gets_them_twice(vault: Vault) -> None:
    with mail_server() as mails:
        for _ in range(2):
            Sender(vault, "boa-test")(mailed(mails), [notice(3), notice(4)])
    first, second = mails.got
    assert first["Message-ID"] == second["Message-ID"]


def test_other_notices_under_a_number_that_an_older_database_gives_again_are_others(
    posts: Posts, vault: Vault
) -> None:
    with mail_server() as mails:
        for at in (5.0, 5.0, 99.0):
            Sender(vault, "boa-test")(mailed(mails), [notice(3, at=at)])
            Sender(vault, "boa-test")(hook(posts), [notice(3, at=at)])
    assert len({mail["Message-ID"] for mail in mails.got}) == 2
    assert len({headers["boa-notice"] for _, headers, _ in posts.got}) == 2


def test_a_password_goes_over_tls_alone_and_into_no_error(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    password = secret_file(tmp_path, "pass-word-1")
    with mail_server(tls=context, user="boa", password="pass-word-1") as mails:
        target = mailed(mails, security="starttls", user="boa", password=password)
        Sender(vault, "boa-test")(target, [notice()])
        assert mails.secured == [True]
        mails.password = "another"
        with pytest.raises(NotDelivered, match=r"user or password \(535\)") as refused:
            Sender(vault, "boa-test")(target, [notice()])
        assert "pass-word-1" not in str(refused.value)
        mails.tls = None
        with pytest.raises(NotDelivered, match="no starttls"):
            Sender(vault, "boa-test")(target, [notice()])
    assert len(mails.got) == 1


def test_a_server_that_takes_no_mail_is_quoted_on_one_line(vault: Vault) -> None:
    with (
        mail_server(refuse="550 no such user here") as mails,
        pytest.raises(NotDelivered, match=r"refuses all addresses .550 no such user here"),
    ):
        Sender(vault, "boa-test")(mailed(mails), [notice()])
    assert mails.got == []


@pytest.mark.parametrize(
    ("smtp", "security", "server"),
    [
        ("h", "starttls", ("h", 587)),
        ("h", "tls", ("h", 465)),
        ("h:25", "none", ("h", 25)),
        ("[::1]:2525", "none", ("::1", 2525)),
        ("[::1]", "none", ("::1", 25)),
    ],
)
def test_ports_of_mail_servers(smtp: str, security: Any, server: tuple[str, int]) -> None:
    target = NotifyTarget(name="m", kind="email", smtp=smtp, security=security)
    assert mail._server(target) == server
