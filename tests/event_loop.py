"""The event loop of all tests: its end is the end of its TLS connections."""

from __future__ import annotations

import asyncio
from asyncio.sslproto import SSLProtocol


class EventLoop(asyncio.SelectorEventLoop):
    """Aborts on `close` the TLS connections whose other end has not confirmed their close.

    `close` of such a connection waits up to half a minute for the other end. A test ends sooner,
    and its socket would be reported as unclosed whenever the garbage collector finds it, in some
    other test. A connection that nothing closed is left alone, and reported.
    """

    def close(self) -> None:
        if not self.is_closed() and (transports := self._closing_tls_transports()):
            for transport in transports:
                transport.abort()
            self.run_until_complete(asyncio.sleep(0))
        super().close()

    def _closing_tls_transports(self) -> list[asyncio.Transport]:
        transports: list[asyncio.Transport] = list(self._transports.values())  # type: ignore[attr-defined]
        return [transport for transport in transports if _is_closing_tls(transport)]


def _is_closing_tls(transport: asyncio.Transport) -> bool:
    protocol = transport.get_protocol()
    if transport.is_closing() or not isinstance(protocol, SSLProtocol):
        return False
    application = protocol._app_transport
    return application is None or application.is_closing()


class EventLoopPolicy(asyncio.DefaultEventLoopPolicy):
    _loop_factory = EventLoop
