"""Receivers of webhooks and mails, on the loopback."""

from __future__ import annotations

import asyncio
import email
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.message import Message

from aiohttp import web
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

SMTP_USER, SMTP_PASSWORD = "berth", "sesame"
"""The login that mailboxes accept."""


@dataclass
class Receiver:
    """Keeps what it gets, and answers as a test has set it; while `gate` is clear it is silent."""

    url: str = ""
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _ in self.got]

    async def answer(self, request: web.Request) -> web.Response:
        names = {name.lower(): value for name, value in request.headers.items()}
        self.got.append((names, await request.read()))
        self.arrived.set()
        await self.gate.wait()
        return web.Response(status=self.status, headers=self.headers)


@asynccontextmanager
async def receiving(status: int = 204) -> AsyncIterator[Receiver]:
    """Yield a receiver that answers at once."""
    receiver = Receiver(status=status)
    receiver.gate.set()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    receiver.url = f"http://{host}:{port}/hook"
    try:
        yield receiver
    finally:
        receiver.gate.set()
        await runner.cleanup()


@dataclass
class Mailbox:
    """An SMTP server that keeps mails; `refusal` is its answer to each recipient, if not empty.

    `clear` is all that it got without encryption, `logins` are those that it accepted.
    """

    port: int = 0
    refusal: str = ""
    mails: list[tuple[str, list[str], Message]] = field(default_factory=list)
    clear: bytearray = field(default_factory=bytearray)
    logins: list[str] = field(default_factory=list)

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if not self.refusal:
            envelope.rcpt_tos.append(address)
        return self.refusal or "250 ok"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes) and envelope.mail_from is not None
        message = email.message_from_bytes(envelope.content)
        self.mails.append((envelope.mail_from, list(envelope.rcpt_tos), message))
        return "250 kept"

    def authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: object
    ) -> AuthResult:
        is_good = given == LoginPassword(SMTP_USER.encode(), SMTP_PASSWORD.encode())
        if is_good:
            self.logins.append(SMTP_USER)
        return AuthResult(success=is_good, handled=False)


class RecordingSmtp(SMTP):
    """Notes in its mailbox what arrives without encryption."""

    def data_received(self, data: bytes) -> None:
        if self.transport is None or self.transport.get_extra_info("sslcontext") is None:
            self.event_handler.clear.extend(data)
        super().data_received(data)


@asynccontextmanager
async def mailbox(
    tls: ssl.SSLContext | None = None,
    *,
    is_implicit: bool = False,
    has_login: bool = False,
    host: str = "127.0.0.1",
) -> AsyncIterator[Mailbox]:
    """Yield an SMTP server; with a context it has STARTTLS, or TLS from the first byte."""
    box = Mailbox()

    def protocol() -> SMTP:
        return RecordingSmtp(
            box,
            hostname="mail",
            tls_context=None if is_implicit else tls,
            authenticator=box.authenticate if has_login else None,
            auth_require_tls=not is_implicit,
            auth_exclude_mechanism=() if has_login else ("LOGIN", "PLAIN"),
        )

    loop = asyncio.get_running_loop()
    server = await loop.create_server(protocol, host, 0, ssl=tls if is_implicit else None)
    box.port = server.sockets[0].getsockname()[1]
    try:
        yield box
    finally:
        server.close()
