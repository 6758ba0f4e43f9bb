"""Fields of `boa.yaml` that say who is told of what (`notify`)."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from boa.errors import InputError
from boa.formats.containers import as_given, list_of, mapping_of, object_of
from boa.formats.job import SECRET_NAME
from boa.formats.parts import CLASS, printable
from boa.formats.shapes import Field, choice, needed, number, text
from boa.model.notices import (
    NOTICE_KINDS,
    SECURITIES,
    TARGET_KINDS,
    NotifyTarget,
    SecretFrom,
)

MAX_TARGETS = 20
MAX_ADDRESSES = 50
MAX_NAMES = 200
MAX_URL = 2000
MAX_MONTH_USD = 1e12
MAX_ALERTS = 20
MAX_PERCENT = 10_000
URL = re.compile(r"https?://[^\s/?#@\\]+(?:[/?][^\s#\\]*)?", re.ASCII | re.IGNORECASE)
"""Without a user, which would be shown, and without anything that two readers read differently."""
_ADDRESS = text(
    "an address such as alice@example.com",
    pattern=r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,200}$",
    words="address",
)
_SERVER = text(
    "HOST or HOST:PORT of a mail server, such as smtp.example.com:587",
    pattern=r"^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]{1,200})(:[0-9]{1,5})?$",
    words="`HOST` or `HOST:PORT`",
)
_FILE = text("a file", pattern=r"^(?=[\s\S]*\S)[^\x00]*$", words="path, relative to this file")
_SECRET = replace(SECRET_NAME, words="name of a [secret](secrets.md) that an admin has set")
_USED: dict[str, tuple[str, ...]] = {
    "webhook": ("url", "url_file", "url_secret", "key_file", "key_secret"),
    "slack": ("url", "url_file", "url_secret"),
    "email": ("to", "from", "smtp", "security", "user", "password_file", "password_secret"),
}
"""Fields of a target that go with its kind, beside those that all have."""
_OF_ALL = ("kind", "tell", "teams", "owners", "month_usd", "alerts")


def _names(what: str) -> Any:
    return list_of(CLASS, most=MAX_NAMES, unique="each once", words=f"list of {what}")


_TARGET = object_of(
    needed("kind", choice(TARGET_KINDS), "How it is told."),
    Field(
        "tell",
        list_of(choice(NOTICE_KINDS), unique="each once"),
        "What it is told of.",
        otherwise="all of it",
    ),
    Field("teams", _names("teams"), "Of jobs of these teams …", otherwise="of all jobs"),
    Field("owners", _names("names"), "… and of these owners.", otherwise="of all jobs"),
    Field(
        "month_usd",
        number(above=0, most=MAX_MONTH_USD),
        "What a month may cost: `forecast` is told above it, and `spent` by percent of it.",
        otherwise="5 % more than the budget allows",
    ),
    Field(
        "alerts",
        list_of(
            number(above=0, most=MAX_PERCENT),
            most=MAX_ALERTS,
            unique="each once",
            words=f"list of up to {MAX_ALERTS} numbers > 0",
        ),
        "Percent of the month's budget, or of a part's, at which `spent` is told.",
        otherwise="50, 80, 100",
        example=[50, 80, 100],
    ),
    Field(
        "url",
        text(
            "https://HOST/PATH or http://HOST/PATH, without a user",
            pattern=r"^[Hh][Tt][Tt][Pp][Ss]?://",
            most=MAX_URL,
            fits=lambda given: bool(URL.fullmatch(given)),
            words="URL",
        ),
        "Where `webhook` and `slack` send to. Redirects are not followed.",
        otherwise="in `url_file` or `url_secret`",
    ),
    Field("url_file", _FILE, "A file that has the URL, closed to others (0600).", otherwise="none"),
    Field("url_secret", _SECRET, "Or a secret that has it.", otherwise="none"),
    Field(
        "key_file",
        _FILE,
        "A file with the key that a webhook's requests are signed with (HMAC-SHA256).",
        otherwise="none",
    ),
    Field("key_secret", _SECRET, "Or a secret that is it.", otherwise="not signed"),
    Field(
        "to",
        list_of(_ADDRESS, most=MAX_ADDRESSES, unique="each once"),
        "Who gets an e-mail.",
        otherwise="needed for `email`",
    ),
    Field("from", _ADDRESS, "Whom it is from.", otherwise="needed for `email`"),
    Field("smtp", _SERVER, "The mail server.", otherwise="port 587; 465 with `tls`; 25 with none"),
    Field(
        "security",
        choice(SECURITIES),
        "How the mail server is spoken to.",
        default="starttls",
    ),
    Field("user", printable(), "Who signs in there.", otherwise="nobody does"),
    Field("password_file", _FILE, "A file with that user's password.", otherwise="none"),
    Field("password_secret", _SECRET, "Or a secret that is it.", otherwise="none"),
    make=as_given,
)


NOTIFY = Field(
    "notify",
    mapping_of(
        CLASS,
        _TARGET,
        called="NAME",
        least=0,
        most=MAX_TARGETS,
        expected=f"a mapping from up to {MAX_TARGETS} names to targets of notices",
    ),
    "Who is told of ends, failures and money: see [notify.md](notify.md).",
    otherwise="nobody",
    example={"ops": {"kind": "slack", "url_file": "slack-url", "tell": ["failed", "budget"]}},
)


def targets_of(given: dict[str, dict[str, Any]], home: Path) -> tuple[NotifyTarget, ...]:
    """Targets as a service takes them; `home`: what their files are relative to."""
    return tuple(_target(name, dict(values), home) for name, values in given.items())


def _target(name: str, values: dict[str, Any], home: Path) -> NotifyTarget:
    path, kind = f"notify.{name}", values["kind"]
    security = values.pop("security")
    if kind == "email":
        values["security"] = security
    for field in values:
        if field not in _OF_ALL and field not in _USED[kind]:
            expected = f"with kind {kind}: {', '.join(_USED[kind])}"
            raise InputError(f"{path}.{field}", None, expected, f"does not go with {kind}")
    url = _secret(path, "url", values, home)
    key = _secret(path, "key", values, home)
    password = _secret(path, "password", values, home)
    sender = values.pop("from", "")
    made = NotifyTarget(
        name=name, secret_url=url, key=key, password=password, sender=sender, **values
    )
    _check(path, made)
    return made


def _secret(path: str, what: str, values: dict[str, Any], home: Path) -> SecretFrom | None:
    file, named = values.pop(f"{what}_file", None), values.pop(f"{what}_secret", None)
    if file is not None and named is not None:
        expected = f"{what}_file or {what}_secret"
        raise InputError(f"{path}.{what}_file", None, expected, "only one of the two goes")
    if file is not None:
        return SecretFrom(file=Path(os.path.abspath(home / os.path.expanduser(file))))
    return None if named is None else SecretFrom(name=named)


def _check(path: str, target: NotifyTarget) -> None:
    if target.kind == "email":
        for field, value in (("to", target.to), ("from", target.sender), ("smtp", target.smtp)):
            if not value:
                expected = "to, from and smtp, as kind email needs"
                raise InputError(f"{path}.{field}", None, expected, "missing")
        if bool(target.user) != (target.password is not None):
            expected = "user together with password_file or password_secret"
            raise InputError(f"{path}.user", target.user or None, expected, "one goes with another")
        if target.user and target.security == "none":
            expected = "starttls or tls where somebody signs in: a password is not sent in clear"
            raise InputError(f"{path}.security", target.security, expected)
    elif bool(target.url) == (target.secret_url is not None):
        expected = "exactly one of url, url_file, url_secret"
        problem = "two are given" if target.url else "missing"
        raise InputError(f"{path}.url", None, expected, problem)
