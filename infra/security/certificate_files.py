"""Files of certificates and keys: read, checked, and written atomically."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey


class BadCertificates(SystemExit):
    """The existing or requested certificates are unusable; the message says what to do."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: EllipticCurvePrivateKey


def read_certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(_read(path))
    except ValueError as error:
        raise BadCertificates(f"{path}: no PEM certificate ({error}); {_ADVICE}") from None


def read_key(path: Path) -> EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(_read(path), password=None)
    except (ValueError, TypeError):
        # The library's message may quote the key.
        raise BadCertificates(f"{path}: no PEM key without password; {_ADVICE}") from None
    if not isinstance(key, EllipticCurvePrivateKey):
        raise BadCertificates(f"{path}: not an elliptic-curve key; {_ADVICE}")
    return key


_ADVICE = "remove that certificate's files (those of ca: all) and run this again"


def check_pair(path: Path, pair: KeyPair) -> None:
    if pair.certificate.public_key() != pair.key.public_key():
        raise BadCertificates(f"{path}: belongs to another key; {_ADVICE}")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadCertificates(f"{path}: {error.strerror}") from None


def write(path: Path, content: bytes, mode: int) -> None:
    """Write atomically, with the final mode from the beginning."""
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
def locked(folder: Path) -> Iterator[None]:
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


def pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def key_pem(key: EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def bundle(pair: KeyPair) -> bytes:
    return key_pem(pair.key) + pem(pair.certificate)
