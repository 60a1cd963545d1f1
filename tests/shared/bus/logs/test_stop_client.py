"""A client of the broker that fails inside or hangs is stopped all the same."""

from __future__ import annotations

import asyncio

import pytest

from shared.bus.logs.stop_client import stop_client


class Client:
    """As aiokafka's consumer looks when one of its tasks was cancelled before it ran."""

    def __init__(self, *, hangs: bool) -> None:
        self._hangs = hangs
        self._client = Part()

    async def stop(self) -> None:
        if self._hangs:
            await asyncio.sleep(3600)
        raise asyncio.CancelledError


class Part:
    closed = False

    async def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_client_that_cannot_stop_neither_blocks_nor_ends_its_caller(hangs: bool) -> None:
    client = Client(hangs=hangs)
    await stop_client(client, within_s=0.05)
    assert client._client.closed
