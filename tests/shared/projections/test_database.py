"""A connection that takes too long is terminated."""

from __future__ import annotations

import asyncio

from shared.projections.database import terminate_after
from tests.patience import PATIENCE_S


class TerminableConnection:
    def __init__(self) -> None:
        self.terminated = asyncio.Event()

    def terminate(self) -> None:
        self.terminated.set()


async def test_a_block_that_takes_too_long_terminates_its_connection() -> None:
    conn = TerminableConnection()
    with terminate_after(conn, 0.001):
        await asyncio.wait_for(conn.terminated.wait(), timeout=PATIENCE_S)


async def test_a_block_in_time_leaves_its_connection_alone() -> None:
    conn = TerminableConnection()
    with terminate_after(conn, 0.001):
        pass
    await asyncio.sleep(0.005)
    assert not conn.terminated.is_set()
