"""The HTTP protocol of the gateway's server, with limits that uvicorn itself does not have."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from shared.http.capped_connections import ConnectionCap

HEADERS_S = 10.0
"""Longest s until the headers of a request are here: an idle client keeps no connection open."""


class LimitedProtocol(HttpToolsProtocol):
    """Closes a connection on which no whole header arrives in time, and those above the cap."""

    cap: ConnectionCap
    _address: str | None = None
    _headers_due: asyncio.TimerHandle | None = None

    def connection_made(  # type: ignore[override]
        self, transport: asyncio.Transport
    ) -> None:
        self._address = self.cap.enter(transport)
        if self._address is None:
            transport.abort()
            return
        super().connection_made(transport)
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        if self._headers_due is None and (self.cycle is None or self.cycle.response_complete):
            self._await_headers()
        super().data_received(data)

    def on_headers_complete(self) -> None:
        self._stop_timer()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self._address is not None:
            self.cap.leave(self._address)
            super().connection_lost(exc)

    def _await_headers(self) -> None:
        self._headers_due = self.loop.call_later(HEADERS_S, self.timeout_keep_alive_handler)

    def _stop_timer(self) -> None:
        if self._headers_due is not None:
            self._headers_due.cancel()
            self._headers_due = None


def limited_protocol(connection_cap: ConnectionCap) -> type[LimitedProtocol]:
    """Return the protocol of one server."""

    class Protocol(LimitedProtocol):
        cap = connection_cap

    return Protocol
