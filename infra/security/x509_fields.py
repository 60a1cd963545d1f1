"""Fields of X.509 certificates: names, usage, validity."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.x509.oid import NameOID

from infra.security.certificate_files import BadCertificates

SKEW = timedelta(minutes=5)
LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
NAME = re.compile(rf"(?=.{{1,253}}$){LABEL}(\.{LABEL})*")


def certificate_builder(
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


def key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
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


def common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def subject_names(hosts: Iterable[str]) -> list[x509.GeneralName]:
    return [subject_name(host) for host in hosts]


def subject_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    if not NAME.fullmatch(host):
        raise BadCertificates(
            f"--host {host[:80]!r}: neither an address nor a host name in lower case"
        )
    return x509.DNSName(host)


def unique_names(names: Sequence[x509.GeneralName]) -> list[x509.GeneralName]:
    return list(dict.fromkeys(names))
