"""A private certificate authority and the server certificates of one Berth, as PEM files.

`python -m infra.security.certificates --out DIR` writes, and run again renews what is near its end:

    ca.crt            what clients trust (libpq's sslrootcert, BERTH_KAFKA_CA, curl --cacert)
    ca.key            signs; only this script reads it, keep it off the servers
    <server>.crt      certificate (uvicorn's ssl_certfile, Postgres' ssl_cert_file)
    <server>.key      its key (uvicorn's ssl_keyfile, Postgres' ssl_key_file)
    <server>.pem      both in one file (Kafka's ssl.keystore.location with ssl.keystore.type=PEM)

Keys are ECDSA P-256 in PKCS #8 without a password: their protection is the file's mode.
"""

from __future__ import annotations

import argparse
import fcntl
import ipaddress
import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA = "ca"
CA_NAME = "Berth private CA"
CA_DAYS = 730
SERVER_DAYS = 30
RENEW_AT = 1 / 3
"""A certificate with less than this share of its life left is made anew."""
SKEW = timedelta(minutes=5)
HERE = ("localhost", "127.0.0.1", "::1")
SERVERS: dict[str, tuple[str, ...]] = {
    "broker": ("broker",),
    "api": ("gateway", "throttle"),
    "postgres": ("postgres",),
}
"""Server certificates, and the compose host names each is valid for beside this machine's."""
ALSO_CLIENTS = frozenset({"broker"})
"""Who also calls with its certificate: the broker its controller, and other brokers."""
LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
NAME = re.compile(rf"(?=.{{1,253}}$){LABEL}(\.{LABEL})*")


class BadCertificates(SystemExit):
    """What lies in the folder, or was asked for, cannot be used; one line says what to do."""


@dataclass(frozen=True, slots=True)
class Made:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: EllipticCurvePrivateKey


@dataclass(frozen=True, slots=True)
class Wish:
    """What a caller wants: extra host names or addresses, and the mode of the servers' keys."""

    hosts: tuple[str, ...] = ()
    key_mode: int = 0o600
    renew: bool = False
    new_ca: bool = False


def make(folder: Path, wish: Wish | None = None, now: datetime | None = None) -> list[str]:
    """Make or renew what has to be; the names of what was written, none when all is good.

    Safe to call at each start and by several processes at once. A new certificate of the CA
    keeps its key, so that those who trust the old one accept the new servers until it ends.
    Raises BadCertificates.
    """
    wish = wish or Wish()
    now = now or datetime.fromtimestamp(time.time(), UTC)
    names = _subject_names(wish.hosts)
    with _locked(folder):
        ca, is_new = _authority(folder, wish, now)
        written = [CA] if is_new else []
        for server, hosts in SERVERS.items():
            wanted = _subject_names((*HERE, *hosts)) + names
            if wish.renew or not _is_good(folder, server, ca, wanted, now):
                _write_server(folder, server, _issue(server, wanted, ca, now), wish.key_mode)
                written.append(server)
        return written


def ends(folder: Path) -> dict[str, datetime]:
    """When each certificate of the folder ends: for `--check` and for a metric."""
    return {
        name: _certificate(folder / f"{name}.crt").not_valid_after_utc for name in (CA, *SERVERS)
    }


# ---- the authority ------------------------------------------------------------------------


def _authority(folder: Path, wish: Wish, now: datetime) -> tuple[Made, bool]:
    """The CA, and whether its certificate was written just now."""
    key_path, path = folder / f"{CA}.key", folder / f"{CA}.crt"
    if path.exists() and not key_path.exists() and not wish.new_ca:
        raise BadCertificates(
            f"{path}: its key {key_path.name} is missing; put it back, or make a new authority "
            "with --new-ca and hand its ca.crt to every client"
        )
    fresh = wish.new_ca or not key_path.exists()
    key = generate_private_key(SECP256R1()) if fresh else _key(key_path)
    if not fresh and path.exists():
        found = Made(_certificate(path), key)
        _check_pair(path, found)
        if not _is_near_end(found.certificate, now):
            return found, False
    made = Made(_self_signed(key, now), key)
    _write(key_path, _key_pem(key), 0o400)
    _write(path, _pem(made.certificate), 0o644)
    return made, True


def _self_signed(key: EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    name = _name(CA_NAME)
    usage = _usage(signs_certificates=True)
    builder = _builder(name, name, key, now, CA_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(usage, critical=True)
    return builder.sign(key, hashes.SHA256())


# ---- the servers --------------------------------------------------------------------------


def _issue(server: str, names: Sequence[x509.GeneralName], ca: Made, now: datetime) -> Made:
    key = generate_private_key(SECP256R1())
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH]
    if server in ALSO_CLIENTS:
        purposes.append(ExtendedKeyUsageOID.CLIENT_AUTH)
    builder = _builder(_name(server), ca.certificate.subject, key, now, SERVER_DAYS)
    for extension, critical in (
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (_usage(signs_certificates=False), True),
        (x509.ExtendedKeyUsage(purposes), False),
        (x509.SubjectAlternativeName(_unique(names)), False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.key.public_key()), False),
    ):
        builder = builder.add_extension(extension, critical=critical)
    return Made(builder.sign(ca.key, hashes.SHA256()), key)


def _is_good(
    folder: Path, server: str, ca: Made, names: Sequence[x509.GeneralName], now: datetime
) -> bool:
    """Whole, signed by this CA, for these names, and far from its end."""
    paths = [folder / f"{server}.{kind}" for kind in ("crt", "key", "pem")]
    if not all(path.exists() for path in paths):
        return False
    found = Made(_certificate(paths[0]), _key(paths[1]))
    _check_pair(paths[0], found)
    whole = paths[2].read_bytes() == _bundle(found)
    return (
        whole
        and _is_signed_by(found.certificate, ca)
        and not _is_near_end(found.certificate, now)
        and set(_unique(names)) == _names_of(found.certificate)
    )


def _is_signed_by(certificate: x509.Certificate, ca: Made) -> bool:
    try:
        certificate.verify_directly_issued_by(ca.certificate)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _is_near_end(certificate: x509.Certificate, now: datetime) -> bool:
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return certificate.not_valid_after_utc - now < life * RENEW_AT


def _names_of(certificate: x509.Certificate) -> set[x509.GeneralName]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return set()
    return set(found.value)


def _write_server(folder: Path, server: str, made: Made, key_mode: int) -> None:
    # The pair goes last: whoever is killed before it leaves files that do not match the bundle.
    _write(folder / f"{server}.key", _key_pem(made.key), key_mode)
    _write(folder / f"{server}.crt", _pem(made.certificate), 0o644)
    _write(folder / f"{server}.pem", _bundle(made), key_mode)


# ---- X.509 --------------------------------------------------------------------------------


def _builder(
    subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _subject_names(hosts: Iterable[str]) -> list[x509.GeneralName]:
    return [_subject_name(host) for host in hosts]


def _subject_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    if not NAME.fullmatch(host):
        raise BadCertificates(
            f"--host {host[:80]!r}: neither an address nor a host name in lower case"
        )
    return x509.DNSName(host)


def _unique(names: Sequence[x509.GeneralName]) -> list[x509.GeneralName]:
    return list(dict.fromkeys(names))


# ---- files --------------------------------------------------------------------------------


def _certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(_read(path))
    except ValueError as error:
        raise BadCertificates(f"{path}: no PEM certificate ({error}); {_ADVICE}") from None


def _key(path: Path) -> EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(_read(path), password=None)
    except (ValueError, TypeError):
        # What the library says of a broken key is not repeated: it may quote it.
        raise BadCertificates(f"{path}: no PEM key without password; {_ADVICE}") from None
    if not isinstance(key, EllipticCurvePrivateKey):
        raise BadCertificates(f"{path}: not an elliptic-curve key; {_ADVICE}")
    return key


_ADVICE = "remove that certificate's files (those of ca: all) and run this again"


def _check_pair(path: Path, found: Made) -> None:
    if found.certificate.public_key() != found.key.public_key():
        raise BadCertificates(f"{path}: belongs to another key; {_ADVICE}")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadCertificates(f"{path}: {error.strerror}") from None


def _write(path: Path, content: bytes, mode: int) -> None:
    """Atomic; never, not even for a moment, with a wider mode."""
    half = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as out:
            os.fchmod(descriptor, mode)
            out.write(content)
            out.flush()
            os.fsync(descriptor)
        half.replace(path)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise BadCertificates(f"{path}: {error.strerror}") from None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise BadCertificates(f"{folder}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _bundle(made: Made) -> bytes:
    return _key_pem(made.key) + _pem(made.certificate)


# ---- command line -------------------------------------------------------------------------


def main(argv: list[str] | None = None, say: Callable[[str], object] = sys.stdout.write) -> None:
    """Make or renew, and say until when each certificate is good."""
    parser = argparse.ArgumentParser(
        prog="python -m infra.security.certificates",
        description=(__doc__ or "").split("\n\n")[0],
        epilog="Run it weekly: servers' certificates live 30 days and are renewed from day 20 on. "
        "Restart the servers afterwards.",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder, closed to others")
    parser.add_argument("--host", action="append", default=[], help="one more name or address")
    parser.add_argument(
        "--key-mode",
        choices=("0400", "0600", "0444"),
        default="0600",
        help="mode of the servers' keys; 0444 only where a container's user must read them",
    )
    parser.add_argument("--renew", action="store_true", help="make the servers' anew in any case")
    parser.add_argument("--new-ca", action="store_true", help="throw the authority away as well")
    options = parser.parse_args(argv)
    wish = Wish(tuple(options.host), int(options.key_mode, 8), options.renew, options.new_ca)
    written = make(options.out, wish)
    for name, end in ends(options.out).items():
        state = "made" if name in written else "kept"
        say(f"{name}\t{state}, good until {end:%Y-%m-%d %H:%M} UTC\n")


if __name__ == "__main__":
    main()
