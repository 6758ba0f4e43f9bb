"""`notify` in boa.yaml: what is meant, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from boa.errors import InputError
from boa.formats.service import load_config
from boa.model.notices import NOTICE_KINDS, NotifyTarget, SecretFrom

MAIL = {"kind": "email", "to": ["a@example.com"], "from": "boa@example.com", "smtp": "mail:587"}


def read(folder: Path, target: Any) -> NotifyTarget:
    import yaml

    path = folder / "boa.yaml"
    path.write_text(yaml.safe_dump({"notify": {"ops": target}}))
    (found,) = load_config(path, {}, lambda model, types: None).notify
    return found


def test_files_are_relative_to_the_file_and_all_is_told_by_default(tmp_path: Path) -> None:
    found = read(tmp_path, {"kind": "slack", "url_file": "keys/slack"})
    assert found.secret_url == SecretFrom(file=tmp_path / "keys" / "slack")
    assert found.tell == NOTICE_KINDS
    for name in ("HOOK", "_HOOK"):
        signed = read(
            tmp_path, {"kind": "webhook", "url": "https://x.example/y", "key_secret": name}
        )
        assert signed.key == SecretFrom(name=name)
    mail = read(tmp_path, {**MAIL, "user": "boa", "password_file": "p", "tell": ["failed"]})
    assert (mail.sender, mail.security, mail.tell) == ("boa@example.com", "starttls", ("failed",))


@pytest.mark.parametrize(
    ("target", "field", "words"),
    [
        ({"kind": "pager"}, "notify.ops.kind", "one of webhook, slack, email"),
        ({"kind": "slack"}, "notify.ops.url", "exactly one of url, url_file, url_secret"),
        ({"kind": "slack", "url": "ftp://x/"}, "notify.ops.url", "https://HOST/PATH"),
        ({"kind": "slack", "url": "http://u:p@x/"}, "notify.ops.url", "without a user"),
        ({"kind": "slack", "url": "http://x/ y"}, "notify.ops.url", "https://HOST/PATH"),
        ({"kind": "slack", "url": "https://x/", "url_file": "y"}, "notify.ops.url", "exactly one"),
        (
            {"kind": "webhook", "url": "https://x/", "key_file": "a", "key_secret": "B"},
            "notify.ops.key_file",
            "only one of the two",
        ),
        (
            {"kind": "slack", "url_secret": "no.such"},
            "notify.ops.url_secret",
            "letters, digits and _",
        ),
        ({"kind": "slack", "url": "https://x/", "to": ["a@b.c"]}, "notify.ops.to", "not go with"),
        ({**MAIL, "to": ["a@b.c\nBcc: d@e.f"]}, "notify.ops.to[0]", "an address"),
        ({**MAIL, "to": []}, "notify.ops.to", "list"),
        ({"kind": "email", "to": ["a@b.c"], "smtp": "x"}, "notify.ops.from", "to, from and smtp"),
        ({**MAIL, "smtp": "mail:587/x"}, "notify.ops.smtp", "HOST:PORT"),
        ({**MAIL, "user": "boa"}, "notify.ops.user", "password_file or password_secret"),
        (
            {**MAIL, "user": "u", "password_file": "p", "security": "none"},
            "notify.ops.security",
            "not sent in clear",
        ),
        ({**MAIL, "tell": ["everything"]}, "notify.ops.tell[0]", "one of ended, failed"),
        ({**MAIL, "tell": ["test"]}, "notify.ops.tell[0]", "one of ended, failed"),
        ({**MAIL, "alerts": [0]}, "notify.ops.alerts[0]", "> 0"),
        ({**MAIL, "alerts": [50, 50]}, "notify.ops.alerts", "each once"),
        ({**MAIL, "month_usd": 0}, "notify.ops.month_usd", "> 0"),
        ({**MAIL, "password": "hunter2"}, "notify.ops.password", "unknown field"),
        ("ops@example.com", "notify.ops", "a mapping"),
    ],
)
def test_what_is_not_meant_is_refused_by_name(
    tmp_path: Path, target: Any, field: str, words: str
) -> None:
    with pytest.raises(InputError) as wrong:
        read(tmp_path, target)
    assert field in str(wrong.value)
    assert words in str(wrong.value)
    assert "hunter2" not in str(wrong.value)
