"""The cluster's own authority: who is who, by certificates of elliptic curves (made in no time)."""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAYS = 30


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """Signs for one cluster; its own certificate is `folder`/ca.crt."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("boa-test-cluster", ())
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        signed = (
            _begun(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def client(self, user: str, groups: Sequence[str] = ()) -> Pair:
        """Who may come in as `user`."""
        return self._signed(user, groups, ())

    def server(self, name: str, hosts: Sequence[str]) -> Pair:
        """Who answers at `hosts`: names and addresses."""
        return self._signed(name, (), hosts)

    def signing_key(self, name: str) -> Path:
        """A key alone, for service accounts' tokens."""
        return _write_key(ec.generate_private_key(ec.SECP256R1()), self.folder / f"{name}.key")

    def _signed(self, name: str, groups: Sequence[str], hosts: Sequence[str]) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        begun = _begun(_name(name, groups), self._name, key)
        kind = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        begun = begun.add_extension(x509.ExtendedKeyUsage([kind]), critical=False)
        if hosts:
            begun = begun.add_extension(
                x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False
            )
        stem = name.replace(":", "-")
        pair = Pair(self.folder / f"{stem}.crt", self.folder / f"{stem}.key")
        signed = begun.sign(self._key, hashes.SHA256())
        pair.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        _write_key(key, pair.key)
        return pair


def _name(name: str, groups: Sequence[str]) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_key(key: ec.EllipticCurvePrivateKey, path: Path) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    return path
