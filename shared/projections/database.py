"""A connection to the read models; what needs migrations imports them itself, they are heavy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
from asyncpg import Connection

SCHEMA = "berth"
ALL_TENANTS = "*"
"""What an operator's transaction names as `app.tenant`; no tenant can be called so."""
OPERATOR = "berth_operator"
"""The role that it puts on beside; `roles.py` says what it sees."""


async def connect(dsn: str, schema: str = SCHEMA, *, within_s: float = 60.0) -> Connection:
    """Unqualified names mean the tables of `schema`; TimeoutError where nobody answers in time."""
    return await asyncpg.connect(dsn, server_settings={"search_path": schema}, timeout=within_s)


@contextmanager
def terminate_after(conn: Connection, within_s: float) -> Iterator[None]:
    """A connection that is silent for too long is dropped, and whoever waits for it told so.

    A `command_timeout` is no help: asyncpg then waits for the server to confirm that it gave up.
    """
    giving_up = asyncio.get_running_loop().call_later(within_s, conn.terminate)
    try:
        yield
    finally:
        giving_up.cancel()
