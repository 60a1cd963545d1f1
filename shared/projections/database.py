"""Connections to the read models; the heavy imports of migrations are elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
from asyncpg import Connection

SCHEMA = "berth"
ALL_TENANTS = "*"
"""Value of `app.tenant` in an operator's transaction; no tenant can have this name."""
OPERATOR = "berth_operator"
"""Role that an operator's transaction also takes on; `roles.py` grants its rights."""


async def connect(dsn: str, schema: str = SCHEMA, *, timeout_s: float = 60.0) -> Connection:
    """Connect with `schema` as search path; raises TimeoutError without an answer in time."""
    return await asyncpg.connect(dsn, server_settings={"search_path": schema}, timeout=timeout_s)


async def connect_by_key(dsn: str, schema: str = SCHEMA, *, timeout_s: float = 60.0) -> Connection:
    """Connect for the folds of the read models, which load and store rows by their keys.

    A new table has no statistics for minutes, and a statement keeps the plan of its first rows:
    it would read the whole table for each batch, which grows by hundreds of rows a second.
    """
    conn = await connect(dsn, schema, timeout_s=timeout_s)
    # Before PostgreSQL 18 a scan that is left all the same looks dear enough to be compiled.
    await conn.execute("SET enable_seqscan = off; SET jit = off")
    return conn


@contextmanager
def terminate_after(conn: Connection, timeout_s: float) -> Iterator[None]:
    """Terminate the connection, and so fail its pending queries, if the block takes too long.

    A `command_timeout` does not help: after it asyncpg waits for the server to confirm the cancel.
    """
    timer = asyncio.get_running_loop().call_later(timeout_s, conn.terminate)
    try:
        yield
    finally:
        timer.cancel()
