"""Address and credentials of the broker: one object for every Kafka library."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MECHANISM = "SCRAM-SHA-512"

Arguments = dict[str, Any]


class BadConnection(ValueError):
    """Parts that do not go together, or an unusable file; never quotes a secret."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Addresses and credentials.

    With a user it is SASL_SSL by password. With a certificate (a PEM file of key and certificate)
    it is mutual TLS, which only the set-up of the broker uses. With neither it is plain: the
    embedded broker on the loopback, which also has no `idempotent` producers.
    """

    servers: str
    idempotent: bool = True
    user: str = ""
    password: str = field(default="", repr=False)
    ca: Path | None = None
    certificate: Path | None = None

    def __post_init__(self) -> None:
        if bool(self.user) != bool(self.password):
            raise BadConnection("a Kafka user and its password go together")
        if self.user and self.certificate:
            raise BadConnection("a Kafka user or a certificate, not both")
        if self.ca is None and (self.user or self.certificate):
            raise BadConnection("credentials require TLS: the file of the CA is missing")

    @property
    def protocol(self) -> str:
        """Kafka's name of the security protocol."""
        if self.user:
            return "SASL_SSL"
        return "PLAINTEXT" if self.ca is None else "SSL"

    def aiokafka(self) -> Arguments:
        """Return the arguments of AIOKafkaProducer and AIOKafkaConsumer."""
        # Clients of files and commands that never open one need no codec.
        from shared.process import gzip_codec

        gzip_codec.install()
        return {"bootstrap_servers": self.servers, **self._security()}

    def producing(self) -> Arguments:
        """Return the arguments of every AIOKafkaProducer of an installation.

        All copies have a record before it is acknowledged. Batches are compressed where the broker
        has a disk; by gzip, which every Kafka client reads without another package. Offsets,
        keys and values are the same for readers.
        """
        return {
            **self.aiokafka(),
            "acks": "all",
            "enable_idempotence": self.idempotent,
            "compression_type": "gzip" if self.idempotent else None,
        }

    def kafka_python(self) -> Arguments:
        """Return the arguments of KafkaAdminClient."""
        return {"bootstrap_servers": self.servers.split(","), **self._security()}

    def tls(self) -> ssl.SSLContext | None:
        """Return a context that trusts this CA alone and checks host names; None if plain.

        Raises BadConnection for a file that cannot be used.
        """
        if self.ca is None:
            return None
        context = _context(self.ca)
        if self.certificate is not None:
            try:
                context.load_cert_chain(self.certificate)
            except (OSError, ssl.SSLError) as error:
                raise BadConnection(f"{self.certificate}: {_describe(error)}") from None
        return context

    def _security(self) -> Arguments:
        context = self.tls()
        if context is None:
            return {}
        arguments: Arguments = {"security_protocol": self.protocol, "ssl_context": context}
        if self.user:
            arguments |= {
                "sasl_mechanism": MECHANISM,
                "sasl_plain_username": self.user,
                "sasl_plain_password": self.password,
            }
        return arguments


def _context(ca: Path) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=str(ca))
    except (OSError, ssl.SSLError) as error:
        raise BadConnection(f"{ca}: {_describe(error)}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _describe(error: OSError) -> str:
    """Return the reason; an SSLError is an OSError without a text of its own."""
    return "holds no usable PEM" if isinstance(error, ssl.SSLError) else str(error.strerror)
