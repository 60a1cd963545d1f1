"""Requests whose bytes are written at once to a connection of aiohttp's connector.

A client session makes a request object, a writer and a task for each request. Here what is the same
for all requests to an address is made once, and the rest is one write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol

import aiohttp
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.http import SERVER_SOFTWARE, RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from services.throttle.upstreams.connections import BUFFER_BYTES
from services.throttle.upstreams.headers import request_headers

ANY, CLOSE = "Accept: */*\r\n", "Connection: close\r\n"
SWITCHED = 101


class EngineResponse(Protocol):
    """A response whose head has arrived; `ClientResponse` of aiohttp is one."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def content(self) -> aiohttp.StreamReader: ...
    @property
    def connection(self) -> Connection | None:
        """None once the body is complete: the connection is free then."""
        ...

    def close(self) -> None:
        """Close the connection, unless the body is complete."""
        ...


class PostTarget:
    """The address of requests, and what their heads share; it needs a running loop."""

    def __init__(self, url: URL) -> None:
        loop = asyncio.get_running_loop()
        self.request = ClientRequest("POST", url, loop=loop)
        """Names the connection to the connector; it is never sent."""
        host = self.request.headers["Host"]
        self._head = (
            f"POST {url.raw_path_qs} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {SERVER_SOFTWARE}\r\n"
        )

    def head(
        self, own: Mapping[str, str], client: Mapping[str, str], size: int, *, closes: bool
    ) -> bytes:
        """Return the head of a request with a body of so many bytes."""
        headers = request_headers(own, client)
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        accept = "" if "accept" in map(str.lower, headers) else ANY
        end = CLOSE if closes else ""
        return f"{self._head}{accept}{lines}{end}Content-Length: {size}\r\n\r\n".encode("ascii")


class PostedResponse:
    """The response to a request that was posted; see `EngineResponse`."""

    __slots__ = ("connection", "content", "headers", "status")

    def __init__(
        self, connection: Connection, message: RawResponseMessage, content: aiohttp.StreamReader
    ) -> None:
        self.connection: Connection | None = connection
        self.status = message.code
        self.headers: Mapping[str, str] = message.headers
        self.content = content
        content.on_eof(self._release)

    def close(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()
            if self.content.exception() is None:
                self.content.set_exception(aiohttp.ClientConnectionError("connection closed"))

    def _release(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.release()


async def post(
    session: aiohttp.ClientSession,
    target: PostTarget,
    own: Mapping[str, str],
    client: Mapping[str, str],
    body: bytes,
) -> PostedResponse:
    """Send a request over a connection of the session; return once the head of the answer is here.

    `own` are headers of this service, such as the key of the upstream; `client` are those passed on
    from the client, of which `request_headers` leaves out names that this service sets itself.

    Raises aiohttp's errors of connections, and ClientError for an answer that is no HTTP.
    """
    connector = session.connector
    if connector is None or session.closed:
        raise aiohttp.ClientConnectionError("the session is closed")
    try:
        connection = await connector.connect(target.request, [], session.timeout)
    except TimeoutError:
        raise aiohttp.ConnectionTimeoutError("connection timed out") from None
    head = target.head(own, client, len(body), closes=connector.force_close)
    try:
        message, content = await _exchange(connection, head + body)
    except BaseException as error:
        _abort(connection)
        if isinstance(error, HttpProcessingError):
            raise aiohttp.ClientError("the answer is not valid HTTP") from None
        raise
    return PostedResponse(connection, message, content)


async def _exchange(
    connection: Connection, data: bytes
) -> tuple[RawResponseMessage, aiohttp.StreamReader]:
    protocol = connection.protocol
    if protocol is None or protocol.transport is None:
        raise aiohttp.ServerDisconnectedError
    protocol.set_response_params(read_until_eof=True, read_bufsize=BUFFER_BYTES)
    protocol.transport.write(data)
    while True:
        message, content = await protocol.read()
        if message.code >= 200 or message.code == SWITCHED:
            return message, content


def _abort(connection: Connection) -> None:
    """Close the connection now: the engine stops its work."""
    transport = connection.transport
    if transport is not None:
        transport.abort()
    connection.close()
