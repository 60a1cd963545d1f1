"""A private certificate authority and the server certificates of an installation, as PEM files.

`python -m infra.security.certificates --out DIR` writes them, and renews expiring ones if run
again:

    ca.crt            for clients (libpq's sslrootcert, BERTH_KAFKA_CA, curl --cacert)
    ca.key            signing key; read by this script only, keep it off the servers
    <server>.crt      certificate (uvicorn's ssl_certfile, Postgres' ssl_cert_file)
    <server>.key      its key (uvicorn's ssl_keyfile, Postgres' ssl_key_file)
    <server>.pem      both in one file (Kafka's ssl.keystore.location with ssl.keystore.type=PEM)

Keys are ECDSA P-256 in PKCS #8 without a password, protected by the mode of the file.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

from infra.security.certificate_files import (
    BadCertificates,
    KeyPair,
    bundle,
    check_pair,
    key_pem,
    locked,
    pem,
    read_certificate,
    read_key,
    write,
)
from infra.security.x509_fields import (
    certificate_builder,
    common_name,
    key_usage,
    subject_names,
    unique_names,
)
from shared.process.progress import ReportLine

CA = "ca"
CA_NAME = "Berth private CA"
CA_DAYS = 730
SERVER_DAYS = 30
RENEW_AT = 1 / 3
"""A certificate with less than this share of its validity left is renewed."""
HERE = ("localhost", "127.0.0.1", "::1")
SERVERS: dict[str, tuple[str, ...]] = {
    "broker": ("broker",),
    "api": ("gateway", "throttle", "executor-agents"),
    "postgres": ("postgres",),
}
"""Server certificates and their host names in compose, beside those of this machine."""
ALSO_CLIENTS = frozenset({"broker"})
"""Servers that are clients too: a broker calls its controller and other brokers."""


@dataclass(frozen=True, slots=True)
class CertificateOptions:
    """Options: additional host names or addresses, mode of the servers' keys, forced renewal.

    Without hosts, a renewed certificate keeps the names of the old one.
    """

    hosts: tuple[str, ...] = ()
    key_mode: int = 0o600
    renew: bool = False
    new_ca: bool = False


def make(
    folder: Path, options: CertificateOptions | None = None, now: datetime | None = None
) -> list[str]:
    """Create or renew certificates as needed; return the names of those written.

    Safe to call at each start and concurrently. A renewed CA certificate keeps its key, so that
    clients with the old one accept new servers until it expires. Raises BadCertificates.
    """
    options = options or CertificateOptions()
    now = now or datetime.fromtimestamp(time.time(), UTC)
    names = subject_names(options.hosts)
    with locked(folder):
        ca, is_new = _authority(folder, options, now)
        written = [CA] if is_new else []
        for server, hosts in SERVERS.items():
            desired = subject_names((*HERE, *hosts)) + (names or _names_in(folder, server))
            if options.renew or not _is_good(folder, server, ca, desired, now):
                _write_server(folder, server, _issue(server, desired, ca, now), options.key_mode)
                written.append(server)
        return written


def ends(folder: Path) -> dict[str, datetime]:
    """Return the end of validity of each certificate in the directory."""
    return {
        name: read_certificate(folder / f"{name}.crt").not_valid_after_utc
        for name in (CA, *SERVERS)
    }


def _authority(folder: Path, options: CertificateOptions, now: datetime) -> tuple[KeyPair, bool]:
    """Return the CA, and whether its certificate was written now."""
    key_path, path = folder / f"{CA}.key", folder / f"{CA}.crt"
    if path.exists() and not key_path.exists() and not options.new_ca:
        raise BadCertificates(
            f"{path}: its key {key_path.name} is missing; put it back, or make a new authority "
            "with --new-ca and hand its ca.crt to every client"
        )
    fresh = options.new_ca or not key_path.exists()
    key = generate_private_key(SECP256R1()) if fresh else read_key(key_path)
    if not fresh and path.exists():
        pair = KeyPair(read_certificate(path), key)
        check_pair(path, pair)
        if not _is_near_end(pair.certificate, now):
            return pair, False
    pair = KeyPair(_self_signed(key, now), key)
    write(key_path, key_pem(key), 0o400)
    write(path, pem(pair.certificate), 0o644)
    return pair, True


def _self_signed(key: EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    name = common_name(CA_NAME)
    usage = key_usage(signs_certificates=True)
    builder = certificate_builder(name, name, key, now, CA_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(usage, critical=True)
    return builder.sign(key, hashes.SHA256())


def _issue(server: str, names: Sequence[x509.GeneralName], ca: KeyPair, now: datetime) -> KeyPair:
    key = generate_private_key(SECP256R1())
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH]
    if server in ALSO_CLIENTS:
        purposes.append(ExtendedKeyUsageOID.CLIENT_AUTH)
    builder = certificate_builder(
        common_name(server), ca.certificate.subject, key, now, SERVER_DAYS
    )
    for extension, critical in (
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (key_usage(signs_certificates=False), True),
        (x509.ExtendedKeyUsage(purposes), False),
        (x509.SubjectAlternativeName(unique_names(names)), False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.key.public_key()), False),
    ):
        builder = builder.add_extension(extension, critical=critical)
    return KeyPair(builder.sign(ca.key, hashes.SHA256()), key)


def _is_good(
    folder: Path, server: str, ca: KeyPair, names: Sequence[x509.GeneralName], now: datetime
) -> bool:
    """Return whether a server's certificate is complete, signed by this CA, for these names, and
    not expiring."""
    paths = [folder / f"{server}.{kind}" for kind in ("crt", "key", "pem")]
    if not all(path.exists() for path in paths):
        return False
    pair = KeyPair(read_certificate(paths[0]), read_key(paths[1]))
    check_pair(paths[0], pair)
    whole = paths[2].read_bytes() == bundle(pair)
    return (
        whole
        and _is_signed_by(pair.certificate, ca)
        and not _is_near_end(pair.certificate, now)
        and set(names) == set(_names_of(pair.certificate))
    )


def _is_signed_by(certificate: x509.Certificate, ca: KeyPair) -> bool:
    try:
        certificate.verify_directly_issued_by(ca.certificate)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _is_near_end(certificate: x509.Certificate, now: datetime) -> bool:
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return certificate.not_valid_after_utc - now < life * RENEW_AT


def _names_of(certificate: x509.Certificate) -> list[x509.GeneralName]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return list(extension.value)


def _names_in(folder: Path, server: str) -> list[x509.GeneralName]:
    """Return the names of a server's present certificate, none without a usable one."""
    try:
        return _names_of(read_certificate(folder / f"{server}.crt"))
    except BadCertificates:
        return []


def _write_server(folder: Path, server: str, pair: KeyPair, key_mode: int) -> None:
    # The bundle is written last: after a kill before it the files do not match, and are renewed.
    write(folder / f"{server}.key", key_pem(pair.key), key_mode)
    write(folder / f"{server}.crt", pem(pair.certificate), 0o644)
    write(folder / f"{server}.pem", bundle(pair), key_mode)


def main(argv: list[str] | None = None, report_line: ReportLine = print) -> None:
    """Create or renew certificates and print when each expires."""
    parser = argparse.ArgumentParser(
        prog="python -m infra.security.certificates",
        description=(__doc__ or "").split("\n\n")[0],
        epilog="Run it weekly: servers' certificates live 30 days and are renewed from day 20 on. "
        "Gateway, LLM proxy and executors take the new one by themselves.",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder, closed to others")
    parser.add_argument(
        "--host",
        action="append",
        default=[],
        help="one more name or address; without it, names of a present one stay",
    )
    parser.add_argument(
        "--key-mode",
        choices=("0400", "0600", "0444"),
        default="0600",
        help="mode of the servers' keys; 0444 only where a container's user must read them",
    )
    parser.add_argument("--renew", action="store_true", help="make the servers' anew in any case")
    parser.add_argument("--new-ca", action="store_true", help="throw the authority away as well")
    arguments = parser.parse_args(argv)
    options = CertificateOptions(
        tuple(arguments.host), int(arguments.key_mode, 8), arguments.renew, arguments.new_ca
    )
    written = make(arguments.out, options)
    for name, end in ends(arguments.out).items():
        state = "made" if name in written else "kept"
        report_line(f"{name}\t{state}, good until {end:%Y-%m-%d %H:%M} UTC")


if __name__ == "__main__":
    main()
