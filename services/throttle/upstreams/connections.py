"""The client sessions of a pool: keep-alive, and one that always connects anew."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import cast

import aiohttp
from aiohttp.client_proto import ResponseHandler

CONNECT_S = 5.0
KEEP_ALIVE_S = 4.0
"""Below the 5 s of uvicorn, so that an engine rarely closes a connection that is just used."""
UNSENT_MS = 30_000
"""An engine that takes no byte of a request for so long is cut off, also once it is left."""
BUFFER_BYTES = 64 * 1024
DNS_S = 10
AddressInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, object]


class ConnectionMark:
    """Notes that a request had to open a connection, instead of using one that was kept."""

    __slots__ = ("is_new",)

    def __init__(self) -> None:
        self.is_new = False


_MARK: ContextVar[ConnectionMark | None] = ContextVar("connection_mark", default=None)


def new_mark() -> ConnectionMark:
    """Return a mark of the next request of this task."""
    mark = ConnectionMark()
    _MARK.set(mark)
    return mark


class UpstreamSessions:
    """Sessions without cookies, redirects and proxies of the environment."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self.kept = _session(tls, force_close=False)
        self.fresh = _session(tls, force_close=True)

    async def close(self) -> None:
        await self.kept.close()
        await self.fresh.close()


class EngineProtocol(ResponseHandler):
    """One connection to an engine.

    aiohttp resumes the reading at each chunk that is taken, and parses the rest of a pause then,
    also where nothing was paused: that cost more than the chunk.
    """

    def resume_reading(self, resume_parser: bool = True) -> None:
        if self._reading_paused:
            super().resume_reading(resume_parser)


class EngineConnector(aiohttp.TCPConnector):
    """Makes connections of `EngineProtocol`."""

    def __init__(self, tls: ssl.SSLContext | None, *, force_close: bool) -> None:
        super().__init__(
            # The pool bounds the requests per upstream.
            limit=0,
            ttl_dns_cache=DNS_S,
            ssl=tls if tls is not None else True,
            force_close=force_close,
            socket_factory=_new_socket,
            keepalive_timeout=None if force_close else KEEP_ALIVE_S,
        )
        make: Callable[[], ResponseHandler] = partial(EngineProtocol, loop=self._loop)
        self._factory = cast("partial[ResponseHandler]", make)


def _session(tls: ssl.SSLContext | None, *, force_close: bool) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=EngineConnector(tls, force_close=force_close),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_S),
        read_bufsize=BUFFER_BYTES,
        trust_env=False,
    )


def _new_socket(address: AddressInfo) -> socket.socket:
    mark = _MARK.get()
    if mark is not None:
        mark.is_new = True
    connection = socket.socket(address[0], address[1], address[2])
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNSENT_MS)
    return connection
