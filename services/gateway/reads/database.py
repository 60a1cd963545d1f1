"""Queries of the read models; while Postgres is unavailable they, and nothing else, answer 503.

Each query is a transaction of its own that sets the tenant whose rows are visible: row-level
security in Postgres hides all others, whatever a query forgets to filter.
"""

from __future__ import annotations

import asyncio

import asyncpg
import msgspec

from services.gateway.responses.problem import unavailable
from shared.contracts.base import NAME
from shared.contracts.registry import Bearer
from shared.projections.database import ALL_TENANTS, OPERATOR, SCHEMA, terminate_after

CONNECT_S = 2.0
ANSWER_S = 5.0
"""Limit from the request to its rows; beyond it the read answers 503."""
CONNECTIONS = 8
JSON_COLUMNS = frozenset(
    {
        "spec",
        "detail",
        "nodes",
        "labels",
        "injection",
        "problems",
        "suspicions",
        "gpus",
        "data",
        "settings",
        "engines",
        "budgets_since",
        "terms",
        "failure",
        "unusable_gpus",
        "transferred_to",
    }
)
"""Stored as text, so that equal rows are equal bytes; returned as JSON."""


Row = dict[str, object]


class Database:
    """A pool of connections that opens at the first query and reopens after every loss."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._pool: asyncpg.Pool | None = None

    async def rows(self, bearer: Bearer, sql: str, *values: object) -> list[Row]:
        """Return the rows visible to the bearer; raises ApiError 503 without Postgres."""
        if not self._dsn:
            raise unavailable("reads_unavailable", "no read models; set BERTH_POSTGRES")
        scope = scope_statement(bearer)
        loop = asyncio.get_running_loop()
        ends = loop.time() + ANSWER_S
        try:
            pool = await self._connected()
            async with pool.acquire(timeout=ANSWER_S) as conn:
                with terminate_after(conn, ends - loop.time()):
                    async with conn.transaction(readonly=True):
                        await conn.execute(scope)
                        records = await conn.fetch(sql, *values)
        except (TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as e:
            raise unavailable(
                "reads_unavailable", f"Postgres unavailable: {type(e).__name__}"
            ) from None
        return [{name: _decoded(name, value) for name, value in row.items()} for row in records]

    async def row(self, bearer: Bearer, sql: str, *values: object) -> Row | None:
        rows = await self.rows(bearer, sql, *values)
        return rows[0] if rows else None

    async def stop(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.terminate()

    async def _connected(self) -> asyncpg.Pool:
        if self._pool is None:
            # A rebuild swaps the schema: no cached statement may outlive its tables.
            self._pool = await asyncpg.create_pool(
                self._dsn,
                min_size=0,
                max_size=CONNECTIONS,
                timeout=CONNECT_S,
                statement_cache_size=0,
                server_settings={"search_path": SCHEMA, "application_name": "berth-gateway"},
            )
        return self._pool


def visible_tenant(bearer: Bearer) -> str:
    """Return the tenant whose rows the bearer may read, `EVERYBODY` for an operator."""
    if bearer.tenant is None and bearer.has_role("operator"):
        return ALL_TENANTS
    tenant = bearer.tenant or ""
    if not NAME.fullmatch(tenant):
        raise ValueError(f"invalid tenant: {tenant!r}; operators alone have none")
    return tenant


def scope_statement(bearer: Bearer) -> str:
    """Return the statement that opens a transaction of this bearer."""
    tenant = visible_tenant(bearer)
    set_role = f"SET LOCAL ROLE {OPERATOR}; " if tenant == ALL_TENANTS else ""
    return f"{set_role}SET LOCAL app.tenant = '{tenant}'"


def _decoded(name: str, value: object) -> object:
    if name not in JSON_COLUMNS or not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value
