"""The certificate of a server, read again whenever its files have changed."""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable
from pathlib import Path

from cryptography import x509

from shared.process.settings import BadSettings

log = logging.getLogger(__name__)

Version = tuple[tuple[int, int, int], ...]
"""Inode, size and time of change in ns of each file."""


class ServerCertificate:
    """A certificate with its chain, and its key, as PEM files that a renewal replaces.

    Each handshake looks whether the files have changed, so that a renewed certificate is served
    without a restart. Files that cannot be used are logged, and the last usable ones stay. The
    constructor raises BadSettings for files that cannot be used.
    """

    def __init__(
        self, certificate: Path, key: Path, now_s: Callable[[], float] = time.time
    ) -> None:
        self._files = (certificate, key)
        self._now_s = now_s
        self._version = self._read_version()
        self.context = self._latest = self._load()
        self._ends_s = self._read_end_s()
        # It is called at each handshake, also of clients that name no server.
        self.context.sni_callback = self._choose

    def expires_in_s(self) -> float:
        """Return the seconds until the served certificate ends, negative afterwards."""
        self._refresh()
        return self._ends_s - self._now_s()

    def _choose(
        self, connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, context: ssl.SSLContext
    ) -> None:
        self._refresh()
        connection.context = self._latest

    def _refresh(self) -> None:
        version = self._read_version()
        if version == self._version:
            return
        # Files that change while they are read have another version at the next look.
        self._version = version
        try:
            self._latest, self._ends_s = self._load(), self._read_end_s()
        except BadSettings as error:
            log.error("renewed certificate not used", extra={"reason": str(error)})
        else:
            log.info("renewed certificate in use", extra={"file": str(self._files[0])})

    def _read_version(self) -> Version:
        """Return the version of the files; empty while one of them is missing."""
        try:
            stats = [path.stat() for path in self._files]
        except OSError:
            return ()
        return tuple((stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats)

    def _load(self) -> ssl.SSLContext:
        """Return a context for TLS 1.2 or later."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(*self._files, password=_no_password)
        except (OSError, ValueError) as error:
            # The files are named, not quoted: one of them is a secret.
            why = "no PEM certificate with its key" if isinstance(error, _NO_PAIR) else None
            raise self._unusable(why or str(getattr(error, "strerror", error))) from None
        return context

    def _read_end_s(self) -> float:
        try:
            certificate = x509.load_pem_x509_certificate(self._files[0].read_bytes())
        except (OSError, ValueError):
            raise self._unusable("no PEM certificate") from None
        return certificate.not_valid_after_utc.timestamp()

    def _unusable(self, reason: str) -> BadSettings:
        certificate, key = self._files
        return BadSettings(f"BERTH_TLS_CERT={certificate}, BERTH_TLS_KEY={key}: {reason}")


_NO_PAIR = (ssl.SSLError, ValueError)


def _no_password() -> str:
    """Return no password: OpenSSL would prompt at the terminal, and block without one."""
    return ""
