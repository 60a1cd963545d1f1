"""The number of connections that one remote address may have open at a server."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

from shared.http.server_settings import is_loopback

log = logging.getLogger(__name__)


class ConnectionCap:
    """Counts the connections of each address; those of this machine are not counted.

    A proxy on this machine speaks for many clients, and has limits of its own.
    """

    def __init__(self, most: int, *, counts_loopback: bool = False) -> None:
        self._most = most
        self._counts_loopback = counts_loopback
        self._open: Counter[str] = Counter()

    def enter(self, transport: asyncio.BaseTransport) -> str | None:
        """Count a new connection; return its address for `leave`, None if there are too many."""
        address = address_of(transport)
        if is_loopback(address) and not self._counts_loopback:
            return ""
        if self._open[address] >= self._most:
            return None
        self._open[address] += 1
        if self._open[address] == self._most:
            log.warning(
                "the address has as many connections as are allowed", extra={"address": address}
            )
        return address

    def leave(self, address: str) -> None:
        """Count a connection no longer."""
        self._open[address] -= 1
        if self._open[address] <= 0:
            del self._open[address]


def address_of(transport: asyncio.BaseTransport) -> str:
    """Return the address of the client; "" where there is none."""
    peer: Any = transport.get_extra_info("peername")
    return str(peer[0]) if isinstance(peer, tuple) else ""


class CappedConnection(asyncio.Protocol):
    """Passes a connection on to the protocol that `make` returns, unless there are too many."""

    def __init__(self, cap: ConnectionCap, make: Callable[[], asyncio.Protocol]) -> None:
        self._cap = cap
        self._make = make
        self._address: str | None = None
        self._inner: asyncio.Protocol = asyncio.Protocol()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._address = self._cap.enter(transport)
        if self._address is None:
            assert isinstance(transport, asyncio.Transport)
            transport.abort()
            return
        self._inner = self._make()
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._address is not None:
            self._cap.leave(self._address)
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
