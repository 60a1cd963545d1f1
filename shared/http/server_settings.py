"""Address and certificate of a service that serves HTTP."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_core.core_schema import ValidationInfo

from shared.http.server_certificate import ServerCertificate
from shared.process.settings import Settings

NodeExecutors = Annotated[
    str,
    Field(
        pattern=r"^(https?://[A-Za-z0-9.:\[\]-]+(,https?://[A-Za-z0-9.:\[\]-]+)*)?$",
        description="Addresses at which nodes reach the executors, as https://host:port,...",
    ),
]


class ServerSettings(Settings):
    """`BERTH_` variables of a service that serves HTTP, with keys in the requests."""

    host: str = Field(default="127.0.0.1", description="Listen address; loopback by default")
    port: int = Field(default=0, ge=0, le=65535, description="Port; 0 = any free one")
    plain_http: Literal["loopback", "anywhere"] = Field(
        default="loopback", description="Addresses on which it may listen without TLS"
    )
    connections_per_address: int = Field(
        default=1024,
        ge=1,
        description="Maximum number of connections from one remote address; an agent has four",
    )
    tls_key: Path | None = Field(default=None, description="Key of the certificate, PEM")
    tls_cert: Path | None = Field(
        default=None,
        validate_default=True,
        description="Certificate with its chain, PEM; plain HTTP if not given",
    )

    @field_validator("tls_cert")
    @classmethod
    def _is_safe(cls, cert: Path | None, info: ValidationInfo) -> Path | None:
        if (cert is None) != (info.data.get("tls_key") is None):
            raise ValueError("tls_cert and tls_key must be set together")
        plain_host = info.data.get("host", "") if cert is None else ""
        if info.data.get("plain_http") == "loopback" and not is_loopback(plain_host):
            raise ValueError(
                "keys and tokens would cross the network in the clear: set tls_cert and tls_key, "
                "or plain_http=anywhere behind a proxy that terminates TLS"
            )
        return cert


def addresses_of(executors: NodeExecutors) -> tuple[str, ...]:
    """Return the addresses of the setting, one by one."""
    return tuple(url for url in executors.split(",") if url)


def is_loopback(host: str) -> bool:
    """Return whether the host is this machine; a name but localhost may be any address."""
    if host in ("", "localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def server_certificate(settings: ServerSettings) -> ServerCertificate | None:
    """Return the certificate that the settings name; None for plain HTTP.

    Raises BadSettings for a file that cannot be read, or without a certificate and its key.
    """
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return ServerCertificate(settings.tls_cert, settings.tls_key)
