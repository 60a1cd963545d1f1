"""Reads of the read models; while Postgres is away they are refused, and nothing else is.

Each read is a transaction of its own that says whose rows it may see: Postgres itself, by row-level
security, shows no other, whatever a query forgot to ask.
"""

from __future__ import annotations

import asyncio
import re

import asyncpg
import msgspec

from services.gateway.problem import unavailable
from shared.contracts.registry import Bearer
from shared.projections.database import ALL_TENANTS, OPERATOR, SCHEMA, terminate_after

CONNECT_S = 2.0
ANSWER_S = 5.0
"""From the request to its rows; who waits longer hears that Postgres is away."""
CONNECTIONS = 8
JSON_COLUMNS = frozenset({"spec", "detail", "nodes", "labels", "gpus", "data", "settings", "terms"})
"""Kept as text, so that equal rows are equal bytes; they leave as the JSON that they are."""

A_TENANT = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")

Row = dict[str, object]


class Database:
    """Connects when first asked, and again after every loss."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._pool: asyncpg.Pool | None = None

    async def rows(self, bearer: Bearer, sql: str, *values: object) -> list[Row]:
        """What this bearer may see of it; raises a 503 Refusal where Postgres cannot be asked."""
        if not self._dsn:
            raise unavailable("reads_unavailable", "this gateway has no read models")
        scope = scope_statement(bearer)
        loop = asyncio.get_running_loop()
        ends = loop.time() + ANSWER_S
        try:
            pool = await self._connected()
            async with pool.acquire(timeout=ANSWER_S) as conn:
                with terminate_after(conn, ends - loop.time()):
                    async with conn.transaction(readonly=True):
                        await conn.execute(scope)
                        found = await conn.fetch(sql, *values)
        except (TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as e:
            raise unavailable("reads_unavailable", f"Postgres: {type(e).__name__}") from None
        return [{name: _shown(name, value) for name, value in row.items()} for row in found]

    async def row(self, bearer: Bearer, sql: str, *values: object) -> Row | None:
        found = await self.rows(bearer, sql, *values)
        return found[0] if found else None

    async def stop(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.terminate()

    async def _connected(self) -> asyncpg.Pool:
        if self._pool is None:
            # A rebuild swaps the schema beneath us: no statement may outlive its tables.
            self._pool = await asyncpg.create_pool(
                self._dsn,
                min_size=0,
                max_size=CONNECTIONS,
                timeout=CONNECT_S,
                statement_cache_size=0,
                server_settings={"search_path": SCHEMA, "application_name": "berth-gateway"},
            )
        return self._pool


def seen_by(bearer: Bearer) -> str:
    """The tenant whose rows a session of this bearer sees; only an operator's sees all."""
    if bearer.tenant is None and bearer.has_role("operator"):
        return ALL_TENANTS
    tenant = bearer.tenant or ""
    if not A_TENANT.fullmatch(tenant):
        raise ValueError("a session is a tenant's or an operator's")
    return tenant


def scope_statement(bearer: Bearer) -> str:
    """The first words of its transaction."""
    seen = seen_by(bearer)
    puts_on = f"SET LOCAL ROLE {OPERATOR}; " if seen == ALL_TENANTS else ""
    return f"{puts_on}SET LOCAL app.tenant = '{seen}'"


def _shown(name: str, value: object) -> object:
    if name not in JSON_COLUMNS or not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value
