"""Sends one webhook over HTTP or one mail over SMTP, and returns its outcome."""

from __future__ import annotations

import asyncio
import errno
import smtplib
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from email.message import EmailMessage
from typing import NamedTuple

import aiohttp
from yarl import URL

from services.notifier.core.addresses import Network, is_allowed, is_within
from services.notifier.settings import NotifierSettings

TIMEOUT_S = 10.0
"""Longest attempt of a webhook: name, connection, TLS, and the head of the answer."""
HEAD_BYTES = 8190
NOT_ALLOWED = "address not allowed"
UNTRUSTED = "certificate not trusted"
GONE = 410
"""Status of a receiver that is gone for good."""
SMTPLIB_TEXTS = (smtplib.SMTPException, smtplib.SMTPNotSupportedError)
"""Errors that smtplib raises with texts of its own, such as that a server has no STARTTLS."""
SMTP_THREADS = 4
SMTP_TIMEOUT_S = 20.0
AddrInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]]


class Outcome(NamedTuple):
    """The end of an attempt: an empty error is a success; `is_final`: it is not tried again."""

    error: str = ""
    is_final: bool = False


class WebhookSender:
    """Posts bodies; each connection is checked at the address that it really goes to.

    The check is in the function that makes the socket: no name can resolve to one address for the
    check and to another for the connection. Redirects are not followed, no proxy is used, and of
    the answer only the head is read.
    """

    def __init__(self, networks: Sequence[Network]) -> None:
        self._networks = networks
        self._sessions = {
            scheme: aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0,
                    force_close=True,
                    use_dns_cache=False,
                    socket_factory=self._socket(scheme),
                ),
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                max_line_size=HEAD_BYTES,
                max_field_size=HEAD_BYTES,
            )
            for scheme in ("http", "https")
        }

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        """Post the body; the error is a short text without a part of the answer."""
        scheme = "https" if url.startswith("https:") else "http"
        try:
            async with self._sessions[scheme].post(
                URL(url), data=body, headers=headers, allow_redirects=False
            ) as answer:
                status = answer.status
                answer.close()
        except TimeoutError:
            return Outcome(f"no answer in {TIMEOUT_S:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Outcome(_reason(error, scheme))
        if 200 <= status < 300:
            return Outcome()
        return Outcome(f"status {status}", status == GONE)

    def _socket(self, scheme: str) -> Callable[[AddrInfo], socket.socket]:
        def make(info: AddrInfo) -> socket.socket:
            family, kind, protocol, _, address = info
            judge = is_allowed if scheme == "https" else is_within
            if not judge(str(address[0]), self._networks):
                raise PermissionError(errno.EACCES, NOT_ALLOWED)
            connection = socket.socket(family, kind, protocol)
            connection.setblocking(False)
            return connection

        return make


class MailSender:
    """Sends mails over the SMTP server of the installation, in a few threads of its own."""

    def __init__(self, settings: NotifierSettings) -> None:
        self._settings = settings
        self._threads = ThreadPoolExecutor(SMTP_THREADS, "smtp")

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def send(self, message: EmailMessage, address: str) -> Outcome:
        """Send the message to one address."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._send, message, address)

    def _send(self, message: EmailMessage, address: str) -> Outcome:
        settings = self._settings
        try:
            with self._connected() as server:
                if settings.smtp_user:
                    server.login(settings.smtp_user, settings.smtp_password.get_secret_value())
                server.send_message(message, settings.mail_from, [address])
        except smtplib.SMTPRecipientsRefused as refused:
            code, _ = next(iter(refused.recipients.values()))
            return Outcome(f"SMTP {code}: address refused", code >= 500)
        except (smtplib.SMTPException, OSError, ValueError) as error:
            return Outcome(_smtp_reason(error))
        return Outcome()

    def _connected(self) -> smtplib.SMTP:
        settings = self._settings
        host, port = settings.smtp_host, settings.smtp_port
        if settings.smtp_tls == "none":
            return smtplib.SMTP(host, port, timeout=SMTP_TIMEOUT_S)
        context = ssl.create_default_context(cafile=settings.smtp_ca)
        if settings.smtp_tls == "implicit":
            return smtplib.SMTP_SSL(host, port, timeout=SMTP_TIMEOUT_S, context=context)
        server = smtplib.SMTP(host, port, timeout=SMTP_TIMEOUT_S)
        try:
            server.starttls(context=context)
        except BaseException:
            server.close()
            raise
        return server


def _smtp_reason(error: Exception) -> str:
    """Return a short text without a part of the server's answer but its code."""
    match error:
        case smtplib.SMTPAuthenticationError():
            return f"SMTP {error.smtp_code}: login refused"
        case smtplib.SMTPResponseException():
            return f"SMTP {error.smtp_code}"
        case smtplib.SMTPException() if type(error) in SMTPLIB_TEXTS:
            return f"SMTP: {error}"
        case ssl.SSLError():
            return f"SMTP: {UNTRUSTED}"
        case _:
            return f"SMTP: {type(error).__name__}"


def _reason(error: Exception, scheme: str) -> str:
    if NOT_ALLOWED in str(error):
        return f"{NOT_ALLOWED}{'' if scheme == 'https' else ' for plain HTTP'}"
    if isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLError):
        return UNTRUSTED
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "name not resolved"
    if isinstance(error, aiohttp.ClientConnectorError):
        return "not connected"
    return f"no valid answer: {type(error).__name__}"
