"""Address and certificate of a service that serves HTTP."""

from __future__ import annotations

import ssl
from ipaddress import ip_address
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator
from pydantic_core.core_schema import ValidationInfo

from shared.settings import BadSettings, Settings


class ServerSettings(Settings):
    """`BERTH_` variables of a service that serves HTTP, with keys in the requests."""

    host: str = Field(default="127.0.0.1", description="Listen address; loopback by default")
    port: int = Field(default=0, ge=0, le=65535, description="Port; 0 = any free one")
    plain_http: Literal["loopback", "anywhere"] = Field(
        default="loopback", description="Addresses on which it may listen without TLS"
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


def is_loopback(host: str) -> bool:
    """Return whether the host is this machine; a name but localhost may be any address."""
    if host in ("", "localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def server_tls(settings: ServerSettings) -> ssl.SSLContext | None:
    """Return a context for TLS 1.2 or later; None for plain HTTP.

    Raises BadSettings for a file that cannot be read, or without a certificate and its key.
    """
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key, password=_no_password)
    except (OSError, ValueError) as error:
        # The files are named, not quoted: one of them is a secret.
        why = "no PEM certificate with its key" if isinstance(error, _NO_PAIR) else error.strerror
        raise BadSettings(
            f"BERTH_TLS_CERT={settings.tls_cert}, BERTH_TLS_KEY={settings.tls_key}: {why}"
        ) from None
    return context


_NO_PAIR = (ssl.SSLError, ValueError)


def _no_password() -> str:
    """Return no password: OpenSSL would prompt at the terminal, and block without one."""
    return ""
