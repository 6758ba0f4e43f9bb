"""TLS: a certificate and its key, checked before anything is begun."""

import os
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from boa.errors import FileError
from boa.model.service import ServiceConfig
from boa.plain_file import read_plain
from boa.private_files import is_open

MOST_BYTES = 1024**2
CERTIFICATE = re.compile(
    r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Tls:
    cert: str
    key: str
    """Files."""


def tls_of(config: ServiceConfig) -> Tls | None:
    """None: served in the clear. Raises what is wrong with the files."""
    if config.tls_cert is None:
        if config.tls_key is not None:
            raise FileError("--tls-key", "has no certificate", "--tls-cert FILE beside it")
        return None
    found = Tls(config.tls_cert, config.tls_key or config.tls_cert)
    if not certificates(found.cert, "--tls-cert"):
        raise FileError(f"--tls-cert {found.cert}", "has no certificate in it", "a PEM file")
    read(found.key, "--tls-key")
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(found.cert, found.key, password=_encrypted)
    except FileError as wrong:
        raise FileError(f"--tls-key {found.key}", wrong.problem, wrong.expected) from None
    except (ssl.SSLError, ValueError) as problem:
        expected = "the certificate's private key (PEM, not encrypted), and a certificate before it"
        reason = getattr(problem, "reason", None) or str(problem)
        raise FileError(
            f"--tls-key {found.key}", f"does not go with --tls-cert ({reason})", expected
        ) from None
    return found


def report_ca(config: ServiceConfig) -> str:
    """Certificates that jobs believe the service by, beside those that their system knows: those in
    $BOA_CA_FILE, or else the service's own. Never a private key."""
    named = os.environ.get("BOA_CA_FILE")
    if named:
        return certificates(named, "BOA_CA_FILE")
    return "" if config.tls_cert is None else certificates(config.tls_cert, "--tls-cert")


def certificates(file: str, option: str) -> str:
    """PEM of all certificates in a file, and of nothing else in it."""
    return "\n".join(CERTIFICATE.findall(read(file, option)))


def read(file: str, option: str) -> str:
    expected = "a file that can be read (PEM)"
    try:
        return read_plain(file, most=MOST_BYTES, follow=True).decode("ascii", "replace")
    except OSError as trouble:
        problem = (trouble.strerror or str(trouble)).lower()
        raise FileError(f"{option} {file}", problem, expected) from None


def is_exposed(tls: Tls) -> bool:
    """Whether others may read the key."""
    return is_open(Path(tls.key))


def _encrypted() -> NoReturn:
    """OpenSSL would ask on the terminal."""
    raise FileError("--tls-key", "is encrypted", "a key without a password (openssl pkey -in)")
