"""Receivers of webhooks and mails, on the loopback."""

from __future__ import annotations

import asyncio
import email
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.message import Message

from aiohttp import web

from tests.serving import closed


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
    """An SMTP server that keeps mails; `refusal` is its answer to each recipient, if not empty."""

    port: int = 0
    refusal: str = ""
    mails: list[tuple[str, list[str], Message]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sender, recipients = "", list[str]()
        writer.write(b"220 mail\r\n")
        while line := (await reader.readline()).decode().strip():
            verb, _, rest = line.partition(":")
            match verb.upper().split()[0], verb.upper():
                case "MAIL", _:
                    sender, answer = rest.split()[0].strip("<>"), "250 ok"
                case "RCPT", _:
                    recipients.append(rest.split()[0].strip("<>"))
                    answer = self.refusal or "250 ok"
                case "DATA", _:
                    writer.write(b"354 go on\r\n")
                    body = await reader.readuntil(b"\r\n.\r\n")
                    message = email.message_from_bytes(body.removesuffix(b".\r\n"))
                    self.mails.append((sender, recipients, message))
                    recipients, answer = [], "250 kept"
                case "QUIT", _:
                    writer.write(b"221 bye\r\n")
                    break
                case _:
                    answer = "250 ok"
            writer.write(f"{answer}\r\n".encode())
        await closed(writer)


@asynccontextmanager
async def mailbox() -> AsyncIterator[Mailbox]:
    """Yield an SMTP server without TLS."""
    box = Mailbox()
    server = await asyncio.start_server(box.serve, "127.0.0.1", 0)
    box.port = server.sockets[0].getsockname()[1]
    try:
        yield box
    finally:
        server.close()
