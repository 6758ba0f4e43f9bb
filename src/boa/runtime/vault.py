"""Secrets of jobs: kept in the store, encrypted with a key that is outside of it.

A secret is a row of the store's `meta`, `secret/NAME`; null is one that was removed. Its value is
encrypted together with its name, so that nobody who can write the database can give one secret the
value of another. Values are decrypted for the launch of a run, and to be masked; nothing shows
them.
"""

import json
import os
import stat
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from boa.atomic_file import replace_file
from boa.engines.processes.masking import Mask, masked
from boa.errors import BoaError, InputError
from boa.formats.job import MAX_VALUE_BYTES, SECRET_NAME
from boa.formats.parts import is_unicode
from boa.model.access import Caller
from boa.model.job import JobRecord, JobSpec
from boa.plain_file import read_plain
from boa.private_files import OTHERS, private_folder
from boa.units import Seconds

PREFIX = "secret/"
MAX_SECRETS = 1000
_KEY_BYTES = 1024
"""Bytes of the longest key file."""


class NotReady(BoaError):
    """A job cannot be started: a secret of its is not to be had. No failure of the job's."""


class NotTheirs(BoaError):
    status = 403

    def __init__(self, name: str) -> None:
        who = "who set it, their team and admins may change it"
        super().__init__(f"secret {name} is somebody else's: {who}")


class NoSuchSecret(InputError):
    status = 404

    def __init__(self, name: str) -> None:
        super().__init__("secret", name, "one that is set (boa secret list)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A secret as it is kept."""

    name: str
    sealed: str
    """Encrypted: the name and the value."""
    set_at: Seconds
    set_by: str = ""
    """Who set it, by the name of the token; empty where there was none."""
    team: str = ""
    """Theirs."""
    for_all: bool = True
    """An admin has set it: jobs of everybody may have it."""

    def document(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "name"}

    @property
    def people(self) -> tuple[str, str, bool]:
        """Whom it is for."""
        return self.set_by, self.team, self.for_all

    def is_for(self, by: Caller) -> bool:
        """Whether their jobs may have it: those of who set it and of their team; everybody's, where
        that was an admin."""
        return self.for_all or by.shares(self.set_by, self.team)


class Vault:
    """Safe to use from any thread. The key is read, and made if there is none, when it is first
    needed: who has no secrets has no key."""

    def __init__(self, key_file: Path, meta: Mapping[str, Any]) -> None:
        self._key_file = key_file
        self._secrets = dict(_stored(meta))
        self._opened: dict[str, str] = {}
        """Values by what they are sealed as: decrypted once."""
        self._cipher: Any = None
        self._changing = threading.Lock()

    def secrets(self) -> list[Secret]:
        """By name."""
        with self._changing:
            return sorted(self._secrets.values(), key=lambda secret: secret.name)

    def get(self, name: str) -> Secret:
        with self._changing:
            found = self._secrets.get(name)
        if found is None:
            raise NoSuchSecret(name[:60])
        return found

    def changeable(self, name: str, by: Caller) -> Secret:
        """One that they may replace or remove: their own, or their team's."""
        found = self.get(name)
        if not by.shares(found.set_by, found.team):
            raise NotTheirs(name)
        return found

    def seal(self, name: str, value: str, *, by: Caller, now: Seconds) -> Secret:
        """A secret to be stored; then `adopt` it. Errors do not quote the value."""
        SECRET_NAME.read(name, "name")
        with suppress(NoSuchSecret):
            self.changeable(name, by)
        size = len(value.encode("utf-8", "replace"))
        if not 0 < size <= MAX_VALUE_BYTES or "\0" in value or not is_unicode(value):
            wrong = "has a NUL in it, or is no text" if 0 < size <= MAX_VALUE_BYTES else ""
            expected = f"1 byte to {MAX_VALUE_BYTES // 1024} KB of Unicode text without NUL"
            raise InputError("value", None, expected, wrong or f"{size:,} bytes long")
        with self._changing:
            if len(self._secrets) >= MAX_SECRETS and name not in self._secrets:
                expected = f"at most {MAX_SECRETS:,} secrets: remove one (boa secret rm)"
                raise InputError("name", name, expected)
        cipher = self._key(make=True)
        sealed = cipher.encrypt(json.dumps([name, value]).encode()).decode()
        return Secret(
            name=name,
            sealed=sealed,
            set_at=now,
            set_by=by.name,
            team=by.team,
            for_all=by.role == "admin",
        )

    def is_as_open(self, secret: Secret) -> bool:
        """Whether one of its name is set, for the same people."""
        with self._changing:
            found = self._secrets.get(secret.name)
        return found is not None and found.people == secret.people

    def adopt(self, secret: Secret) -> None:
        """It is stored: from here on it is so."""
        with self._changing:
            self._secrets[secret.name] = secret

    def drop(self, name: str) -> None:
        with self._changing:
            self._secrets.pop(name, None)

    def check(self, spec: JobSpec, by: Caller, inside: str = "") -> None:
        """Refuse a job that names a secret that nobody has set, or that is not for its owner.
        `inside`: where the job stands, among others."""
        with self._changing:
            for number, use in enumerate(spec.secrets):
                field, found = f"{inside}secrets[{number}]", self._secrets.get(use.name)
                if found is None:
                    how = f"boa secret set {use.name}, or boa secret list"
                    raise InputError(field, use.name, f"a secret that is set: {how}")
                if not found.is_for(by):
                    expected = "one that you, your team or an admin has set: boa secret list"
                    raise InputError(field, use.name, expected, f"{use.name} is somebody else's")

    def values(self, spec: JobSpec) -> dict[str, str]:
        """By the variables that hold them. Raises NotReady."""
        found = {}
        for use in spec.secrets:
            try:
                found[use.env] = self._value(self.get(use.name))
            except NoSuchSecret:
                raise NotReady(
                    f"secret {use.name} is not set any more: boa secret set {use.name}"
                ) from None
            except BoaError as trouble:
                raise NotReady(str(trouble)) from None
        return found

    def of_service(self, name: str) -> str:
        """The value of one that the service itself uses, as `boa.yaml` says. Only of one that an
        admin has set: whoever else could set it would say where the service sends to."""
        found = self.get(name)
        if not found.for_all:
            raise NotReady(f"secret {name} was not set by an admin")
        return self._value(found)

    def mask(self, spec: JobSpec) -> Mask:
        """Over all that is served of a job, beside the one that its supervisor has put there."""
        return Mask(self._known(spec))

    def masked(self, text: str, spec: JobSpec) -> str:
        return masked(text, self._known(spec)) if text and spec.secrets else text

    def _known(self, spec: JobSpec) -> Iterable[str]:
        """Values that can be had."""
        for use in spec.secrets:
            try:
                yield self._value(self.get(use.name))
            except BoaError:
                continue

    def _value(self, secret: Secret) -> str:
        with self._changing:
            known = self._opened.get(secret.sealed)
        if known is not None:
            return known
        from cryptography.fernet import InvalidToken

        cipher = self._key(make=False)
        try:
            name, value = json.loads(cipher.decrypt(secret.sealed.encode())) if cipher else ("", "")
        except (InvalidToken, ValueError):
            name, value = "", ""
        if name != secret.name:
            raise BoaError(
                f"secret {secret.name} cannot be decrypted: {self._key_file} is gone, or not the "
                f"key that it was set with. boa secret set {secret.name} sets it again"
            )
        with self._changing:
            self._opened[secret.sealed] = str(value)
        return str(value)

    def _key(self, *, make: bool) -> Any:
        """None: there is none."""
        from cryptography.fernet import Fernet

        with self._changing:
            if self._cipher is not None:
                return self._cipher
            try:
                key = self._read_key()
            except FileNotFoundError:
                if not make:
                    return None
                key = self._make_key(Fernet.generate_key())
            try:
                self._cipher = Fernet(key)
            except ValueError:
                raise self._wrong("is no key", "32 bytes in URL-safe base64") from None
            return self._cipher

    def _read_key(self) -> bytes:
        try:
            key = read_plain(self._key_file, most=_KEY_BYTES, follow=True).strip()
            mode = stat.S_IMODE(os.stat(self._key_file).st_mode)
        except FileNotFoundError:
            raise
        except OSError as trouble:
            said = f"cannot be read ({trouble.strerror})"
            raise self._wrong(said, "a file of the service's own") from None
        if mode & OTHERS:
            raise self._wrong(f"is open to others ({mode:04o})", "0600: chmod 600 it")
        return key

    def _make_key(self, key: bytes) -> bytes:
        try:
            private_folder(self._key_file.parent)
            replace_file(self._key_file, key + b"\n", durable=True, private=True)
        except OSError as trouble:
            said = f"cannot be written ({trouble.strerror})"
            raise self._wrong(said, "a file of the service's own") from None
        return key

    def _wrong(self, problem: str, expected: str) -> InputError:
        return InputError("secret_key_file", None, expected, f"{self._key_file} {problem}")


def uses(job: JobRecord, name: str) -> bool:
    return any(use.name == name for use in job.spec.secrets)


def _stored(meta: Mapping[str, Any]) -> Iterable[tuple[str, Secret]]:
    for key, value in meta.items():
        if key.startswith(PREFIX) and value is not None:
            name = key.removeprefix(PREFIX)
            yield name, Secret(name=name, **value)
